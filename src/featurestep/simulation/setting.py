"""What goes beyond the Problem: inputs and labels outside the theory's assumptions, as laws."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ..core.checks import number, readable
from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..core.results import Note, equal_values
from ..core.types import FloatArray
from ..functions.targets import Teacher
from .philox import TAU, Array, Pair, Transform, normals

ROOT_THREE = 3.0**0.5
_MIXTURE = re.compile(r"mixture\(\s*(?:([0-9]+)\s*,\s*)?([0-9.eE+-]+)\s*\)")


@dataclass(frozen=True)
class RowLaw:
    """How the entries of a row are drawn, and to which length the row is then scaled."""

    name: str = "gaussian"  # or rademacher, uniform, student_t, corruption
    df: float = 0.0  # of student_t
    length: float | None = None  # of every row; None leaves it
    scale: float = 1.0

    def fill(self, generator: np.random.Generator, out: FloatArray) -> None:
        """Some rows, by NumPy."""
        if self.name == "gaussian":
            generator.standard_normal(out=out)
        elif self.name == "rademacher":
            out[:] = 2.0 * generator.integers(0, 2, out.shape) - 1.0
        elif self.name == "uniform":
            out[:] = generator.uniform(-ROOT_THREE, ROOT_THREE, out.shape)
        elif self.name == "corruption":
            generator.standard_normal(out=out)
            out[:, 0] = generator.random(len(out))
        else:
            out[:] = generator.standard_t(self.df, out.shape) * self._student_scale
        if self.length is not None:
            out *= self.length / np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        if self.scale != 1.0:
            out *= self.scale

    def finish(self, torch: Any, out: Array) -> None:
        """The same scaling, of a tensor; a corruption's first column becomes uniform."""
        if self.name == "corruption":
            out[..., 0] = torch.special.ndtr(out[..., 0])
        if self.length is not None:
            squares = torch.linalg.vector_norm(out, dim=-1, keepdim=True, dtype=torch.float64)
            out.mul_((self.length / squares).to(out.dtype))
        if self.scale != 1.0:
            out.mul_(self.scale)

    @property
    def transform(self) -> Transform:
        """Two entries from two uniforms."""
        laws: dict[str, Transform] = {
            "gaussian": normals,
            "rademacher": _signs,
            "uniform": _uniform,
            "corruption": normals,
            "student_t": self._student,
        }
        return laws[self.name]

    @property
    def _student_scale(self) -> float:
        return float(((self.df - 2.0) / self.df) ** 0.5)

    def _student(self, torch: Any, u: Array, v: Array) -> Pair:
        """Bailey's polar form: exact for every df. Of its two numbers, which depend on each other,
        one is taken.
        """
        radius = torch.sqrt(self.df * torch.expm1(-2.0 / self.df * torch.log(u)))
        return radius * torch.cos(TAU * v) * self._student_scale, None


def _signs(torch: Any, u: Array, v: Array) -> Pair:
    return 2.0 * (u > 0.5) - 1.0, 2.0 * (v >= 0.5) - 1.0


def _uniform(torch: Any, u: Array, v: Array) -> Pair:
    return ROOT_THREE * (2.0 * u - 1.0), ROOT_THREE * (2.0 * v - 1.0)


NORMAL = RowLaw()
CORRUPTION = RowLaw("corruption")  # a uniform number, then normals


def law_of_inputs(law: tuple[str, float] | None, d: int) -> RowLaw:
    """The law behind a setting's inputs; an array's rows are not drawn."""
    name, df = law or ("gaussian", 0.0)
    return RowLaw(length=d**0.5) if name == "sphere" else RowLaw(name, df)


def law_of_initial(initial: str, d: int) -> RowLaw:
    """The first layer's rows: of norm 1, or N(0, I/d) (theory, section 1)."""
    return RowLaw(length=1.0) if initial == "sphere" else RowLaw(scale=1.0 / d**0.5)


def parse_mixture(inputs: str) -> tuple[int, float] | None:
    """Clusters and separation behind `mixture(K, s)` or `mixture(s)`; None for another law."""
    match = _MIXTURE.fullmatch(inputs.strip())
    if match is None:
        return None
    rule = "mixture needs K >= 2 clusters and a finite separation >= 0"
    with readable("inputs", rule, inputs):
        clusters, separation = int(match.group(1) or 2), float(match.group(2))
    if clusters < 2 or not 0 <= separation < np.inf:
        raise InvalidProblem("inputs", rule, inputs)
    return clusters, separation


def corners(clusters: int, separation: float) -> FloatArray:
    """Centres (K, K − 1): a regular simplex of radius s around 0."""
    from scipy.linalg import helmert  # slow to load

    # Orthonormal rows that sum to 0.
    return np.asarray(helmert(clusters).T * separation * (clusters / (clusters - 1.0)) ** 0.5)


def borders(clusters: int) -> FloatArray:
    """Quantiles of a normal number that cut its law into equal parts, (K + 1,)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.linspace(0.0, 1.0, clusters + 1)))


LAWS = ("gaussian", "rademacher", "uniform", "student_t(df)", "mixture(K, s)", "sphere")
_PLAIN = ("gaussian", "rademacher", "uniform", "sphere")
MOVED = {  # names of old, and how a problem says it
    "data": "rows=…",
    "steps": "steps=…) or Problem(step_sizes=…",
    "batches": "batches=…",
    "spectrum": "covariance=…",
    "covariance": "covariance=…",
    "direction": "target_direction=…",
}
_STUDENT = re.compile(r"student_t\(\s*([0-9.eE+]+)\s*\)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """How the experiment departs from theory, section 1; the default does not.

    inputs
        Law of the inputs' coordinates (mean 0, variance 1): `gaussian`, `rademacher`, `uniform`,
        `student_t(df)` with df > 2; `sphere` (radius √d); `mixture(K, s)`, K Gaussian clusters, 2
        if left out, at the corners of a regular simplex of radius s in the first K − 1
        coordinates, each scaled to variance 1; or an array (rows, d) from which the samples are
        taken without replacement.
    teacher
        A target in place of the problem's, which may have several directions itself.
    corrupted
        Fraction of the training labels replaced by the label of an unrelated Gaussian input.
        Test labels are never corrupted.
    """

    inputs: Any = "gaussian"
    teacher: Teacher | None = None
    corrupted: float = 0.0

    def __new__(cls, **fields: Any) -> Setting:
        """Refuse fields that are a problem's, with their name there."""
        refuse_moved(fields)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.inputs, str):
            object.__setattr__(self, "inputs", _checked_array(self.inputs))
        elif self.law is None:
            raise InvalidProblem(
                "inputs", f"must be one of {', '.join(LAWS)}, or an array", self.inputs
            )
        if self.teacher is not None and not isinstance(self.teacher, Teacher):
            raise InvalidProblem("teacher", "must be a Teacher", self.teacher)
        number("corrupted", self.corrupted, "must be in [0, 1]", lambda v: 0 <= v <= 1)

    @cached_property
    def law(self) -> tuple[str, float] | None:
        """Name and parameter of the inputs' law, None for an array or an unknown name."""
        if not isinstance(self.inputs, str):
            return None
        if self.inputs in _PLAIN:
            return self.inputs, 0.0
        if self.mixture is not None:
            return "gaussian", 0.0
        match = _STUDENT.fullmatch(self.inputs.strip())
        if match is None:
            return None
        try:
            df = float(match.group(1))
        except ValueError:
            return None
        if not 2 < df < math.inf:
            raise InvalidProblem("inputs", "student_t needs df > 2 for a variance", self.inputs)
        return "student_t", df

    @cached_property
    def mixture(self) -> tuple[int, float] | None:
        """Clusters and separation, where the inputs are a mixture."""
        return parse_mixture(self.inputs) if isinstance(self.inputs, str) else None

    def directions(self, problem: Problem) -> int:
        """How many directions the target has."""
        return problem.directions if self.teacher is None else self.teacher.directions

    def teacher_of(self, problem: Problem) -> Teacher | None:
        """The target of several directions, where there is one."""
        return problem.teacher if self.teacher is None else self.teacher

    @property
    def departures(self) -> tuple[Note, ...]:
        """In words, where the theory's assumptions are left; empty when they hold.

        There it claims nothing, so that these notes admit any error.
        """
        named = self.inputs if isinstance(self.inputs, str) else "a given array"
        checks = (
            (
                named != "gaussian",
                f"expect deviations from the theory: inputs are {named}, not Gaussian",
            ),
            (
                self.teacher is not None,
                "expect deviations from the theory: a teacher replaces the problem's target",
            ),
            (
                self.corrupted > 0,
                f"expect deviations from the theory: a share {self.corrupted:.3g} of the training "
                "labels is corrupted",
            ),
        )
        return tuple(Note(text, size=math.inf) for departs, text in checks if departs)

    @property
    def given(self) -> dict[str, Any]:
        """What differs from the default, ready for JSON; of arrays their shape."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {f.name: f.default for f in fields(self)}
        return {name: _shown(v) for name, v in found.items() if not equal_values(v, plain[name])}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and equal_values(self, other)

    def __hash__(self) -> int:
        return hash(self.corrupted)


def refuse_moved(fields: Collection[str], prefix: str = "") -> None:
    """Refuse fields that a Setting had before they were those of a problem."""
    for name in fields:
        if name in MOVED:
            rule = f"is a field of the problem now: Problem({MOVED[name]})"
            raise InvalidProblem(f"{prefix}{name}", rule, name)


def _shown(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f"array {value.shape}"
    return list(value) if isinstance(value, tuple) else value


def _checked_array(inputs: Any) -> FloatArray:
    with readable("inputs", "must be a law's name or an array (rows, d)", inputs):
        array = np.array(inputs, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InvalidProblem("inputs", "must be an array (rows, d)", array.shape)
    if not np.all(np.isfinite(array)):
        raise InvalidProblem("inputs", "must be finite", "non-finite entries")
    array.setflags(write=False)
    return array
