"""Laws of the initial readout: a_j = g_j/√N with E g² = 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..core.checks import readable
from ..core.errors import InvalidProblem
from ..core.types import FloatArray

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Law:
    """The law of g: a continuous one by name, or a list of values with probabilities."""

    name: str
    values: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()

    @property
    def is_finite(self) -> bool:
        """True if g has finitely many values."""
        return bool(self.values)

    @property
    def mean(self) -> float:
        """E g (0 for the continuous laws, which are symmetric)."""
        return float(np.dot(self.values, self.probabilities)) if self.is_finite else 0.0

    def distinct_powers(self, degrees: Iterable[int]) -> list[int]:
        """The degrees k whose g^k is not a linear combination of the powers before it."""
        degrees = list(degrees)
        if not self.is_finite:
            return degrees
        taken: list[int] = []
        for k in degrees:
            powers = np.array(self.values)[:, None] ** np.array([*taken, k])
            # The last diagonal element is the norm of the last column's independent part.
            upper = np.asarray(np.linalg.qr(powers / np.linalg.norm(powers, axis=0), mode="r"))
            if len(taken) < len(self.values) and abs(upper[-1, -1]) > 1e-9:
                taken.append(k)
        return taken

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws of g."""
        if self.name == "gaussian":
            return rng.standard_normal(size)
        if self.name == "uniform":
            return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size)
        return rng.choice(np.array(self.values), size=size, p=np.array(self.probabilities))


_NAMED = {
    "gaussian": Law("gaussian"),
    "rademacher": Law("rademacher", (-1.0, 1.0), (0.5, 0.5)),
    "constant": Law("constant", (1.0,), (1.0,)),
    "uniform": Law("uniform"),
}
NAMES = tuple(_NAMED)
RULE = f"must be one of {', '.join(NAMES)}, or a list of (value, probability) pairs"


def resolve_law(spec: object) -> Law:
    """The law that a name or a list of (value, probability) stands for."""
    if isinstance(spec, Law):
        return spec
    if isinstance(spec, str):
        if spec not in _NAMED:
            raise InvalidProblem("readout", RULE, spec)
        return _NAMED[spec]
    return finite_law(freeze_law(spec))


def freeze_law(spec: object) -> tuple[tuple[float, float], ...]:
    """A list of (value, probability) as tuples of floats; InvalidProblem if it is none."""
    with readable("readout", RULE, spec):
        pairs = [tuple(pair) for pair in cast(Any, spec)]
        return tuple((float(value), float(probability)) for value, probability in pairs)


@lru_cache(maxsize=256)
def finite_law(pairs: tuple[tuple[float, float], ...]) -> Law:
    """The law of (value, probability) pairs, checked."""
    if not pairs or len(pairs) > 64:
        raise InvalidProblem("readout", "must list 1 to 64 (value, probability) pairs", pairs)
    values, probabilities = np.array(pairs).T
    if not np.all(np.isfinite(values)):
        raise InvalidProblem("readout", "values must be finite", pairs)
    if not np.all((probabilities > 0) & (probabilities <= 1)):
        raise InvalidProblem("readout", "probabilities must be in (0, 1]", pairs)
    if not abs(probabilities.sum() - 1.0) <= TOLERANCE:
        raise InvalidProblem("readout", "probabilities must sum to 1", float(probabilities.sum()))
    if len(set(values.tolist())) < len(values):
        raise InvalidProblem("readout", "values must differ from each other", pairs)
    second = float(probabilities @ values**2)
    if not abs(second - 1.0) <= TOLERANCE:
        raise InvalidProblem("readout", "must have E g² = 1", second)
    return Law(
        "list", tuple(values.tolist()), tuple((probabilities / probabilities.sum()).tolist())
    )
