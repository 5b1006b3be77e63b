"""The covariance of the inputs, x ~ N(0, Σ): how it is written, and where the target points in it.

Σ is normalised to mean eigenvalue 1. Its eigenvectors come in classes: those of one class share
their eigenvalue, and the target's direction is isotropic among them. The target is
y = σ⋆(t) + ε with t = β⋆·x of variance 1, so that θ = Σ^½β⋆ is a unit vector; its mass in a class
is the sum of its squares there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .checks import number, readable, whole_number
from .errors import InvalidProblem
from .types import FloatArray

MAX_EXPONENT = 4.0  # of a power law
MAX_CLASSES = 10**7  # a power law has one for each coordinate
_POWER = re.compile(r"power\(\s*([0-9.eE+-]+)\s*\)")
_NEGATIVE = 1e-10  # of the largest eigenvalue, that rounding may leave below 0
_EQUAL = 1e-9  # relative difference of eigenvalues that count as one
_SUM = 1e-6  # by which shares may miss 1
_RULE = (
    "must be 'power(a)', a list of (eigenvalue, share), a list of eigenvalues "
    "or a symmetric matrix (d, d)"
)


class Matrix:
    """A matrix that is compared and hashed by its entries."""

    def __init__(self, values: FloatArray) -> None:
        self.values = np.array(values, dtype=np.float64)
        self.values.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.values.shape, self.values.tobytes()))

    def __repr__(self) -> str:
        return f"matrix {self.values.shape}"


Spec = str | tuple[float, ...] | tuple[tuple[float, float], ...] | Matrix


@dataclass(frozen=True, eq=False)
class InputCovariance:
    """The eigenvalues of Σ in K classes, divided by their mean."""

    eigenvalues: FloatArray  # (K,) with Σ counts·eigenvalues = d
    counts: np.ndarray[Any, np.dtype[np.int64]]  # (K,) eigenvectors of each class; their sum is d
    factor: float  # the mean eigenvalue as given: inputs are divided by its root
    vectors: FloatArray | None = None  # (d, d) eigenvectors as rows; None: the coordinates

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.counts.sum())

    @property
    def variances(self) -> FloatArray:
        """The eigenvalue of each eigenvector, (d,)."""
        return np.repeat(self.eigenvalues, self.counts)

    @property
    def root(self) -> FloatArray:
        """Σ^½ where Σ is not diagonal, (d, d)."""
        assert self.vectors is not None
        return np.asarray((self.vectors.T * np.sqrt(self.variances)) @ self.vectors)

    @property
    def spaces(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """A number for each class, (K,), the same for classes of equal eigenvalues."""
        order = np.argsort(-self.eigenvalues, kind="stable")
        values = self.eigenvalues[order]
        new = values[1:] < values[:-1] * (1.0 - _EQUAL)
        found = np.empty(len(order), dtype=np.int64)
        found[order] = np.concatenate([[0], np.cumsum(new)])
        return found


@dataclass(frozen=True, eq=False)
class TargetLaw:
    """Where θ = Σ^½β⋆ lies: its mass in each group of eigenvectors, or θ itself."""

    mass: FloatArray  # (groups,), of sum 1
    groups: np.ndarray[Any, np.dtype[np.int64]]  # (K,) the group of each class
    direction: FloatArray | None = None  # (d,) θ along the eigenvectors, if it is not random

    def draw(self, normals: FloatArray, covariance: InputCovariance) -> FloatArray:
        """θ along the eigenvectors, (d,): isotropic in every group, with the group's mass there."""
        if self.direction is not None:
            return self.direction
        groups = np.repeat(self.groups, covariance.counts)
        squares = np.bincount(groups, normals**2, minlength=len(self.mass))
        return np.asarray(normals * np.sqrt(self.mass / squares)[groups])

    def class_mass(self, covariance: InputCovariance) -> FloatArray:
        """The mass of θ in each class, (K,)."""
        counts = covariance.counts
        if self.direction is not None:
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            return np.asarray(np.add.reduceat(self.direction**2, starts))
        return np.asarray(
            self.mass[self.groups] * counts / np.bincount(self.groups, counts)[self.groups]
        )


def freeze_covariance(spec: Any) -> Spec | None:
    """What was given in a form that can be hashed, checked as far as that needs no d."""
    if spec is None or isinstance(spec, Matrix):
        return spec
    if isinstance(spec, str):
        _power(spec)
        return spec.strip()
    with readable("covariance", _RULE, spec):
        array = np.array(spec, dtype=np.float64)
    pairs = array.ndim == 2 and array.shape[1] == 2
    if pairs and not (isinstance(spec, np.ndarray) and len(array) == 2):
        return _checked_pairs(array)
    if array.ndim == 1 and array.size:
        _check_eigenvalues(array)
        return tuple(array.tolist())
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise InvalidProblem("covariance", _RULE, f"an array {array.shape}")
    if not np.all(np.isfinite(array)) or not np.allclose(array, array.T):
        raise InvalidProblem("covariance", _RULE, "a matrix that is not symmetric or not finite")
    return Matrix(array)


def freeze_direction(direction: Any) -> int | tuple[float, ...] | None:
    """The number of an eigenvector, or a vector as a tuple."""
    if direction is None or np.ndim(direction) == 0:
        return None if direction is None else whole_number("target_direction", direction)
    rule = (
        "must be the number of an eigenvector, 1 that of the largest eigenvalue, or a vector (d,)"
    )
    with readable("target_direction", rule, direction):
        vector = np.array(direction, dtype=np.float64)
    if vector.ndim != 1 or not np.all(np.isfinite(vector)) or not np.any(vector):
        raise InvalidProblem("target_direction", rule, direction)
    return tuple(vector.tolist())


def freeze_mass(mass: Any) -> tuple[float, ...] | None:
    """The target's mass in each class, of sum 1."""
    if mass is None:
        return None
    rule = "must be a list of numbers >= 0, one for each class, of sum 1"
    with readable("target_mass", rule, mass):
        values = np.array(mass, dtype=np.float64)
    if values.ndim != 1 or not np.all(values >= 0.0) or not abs(values.sum() - 1.0) <= _SUM:
        raise InvalidProblem("target_mass", rule, mass)
    return tuple(values.tolist())


@lru_cache(maxsize=64)
def resolve_covariance(spec: Spec, d: int) -> InputCovariance:
    """The eigenvalues of d coordinates, normalised."""
    vectors = None
    if isinstance(spec, str):
        if d > MAX_CLASSES:
            raise InvalidProblem("d", f"must be at most {MAX_CLASSES:.0e} for a power law", d)
        values = np.arange(1.0, d + 1.0) ** -_power(spec)
        counts = np.ones(d, dtype=np.int64)
    elif isinstance(spec, Matrix):
        values, vectors = _eigenpairs(spec.values, d)
        counts = np.ones(d, dtype=np.int64)
    elif isinstance(spec[0], tuple):
        values, shares = np.array(spec).T
        ends = np.rint(np.cumsum(shares) / shares.sum() * d).astype(np.int64)
        counts = np.diff(ends, prepend=0)
    else:
        values = np.array(spec)
        ends = -(-np.arange(1, len(values) + 1) * d // len(values))
        counts = np.diff(ends, prepend=0)
    if counts.min() < 1:
        rule = f"must give every class at least one of d = {d} coordinates"
        raise InvalidProblem("covariance", rule, spec)
    factor = float(counts @ values / d)
    if not factor > 0.0:
        raise InvalidProblem("covariance", "must have eigenvalues >= 0, not all 0", spec)
    return InputCovariance(values / factor, counts, factor, vectors)


def target_law(
    covariance: InputCovariance,
    exponent: float,
    mass: tuple[float, ...] | None,
    direction: int | tuple[float, ...] | None,
) -> TargetLaw:
    """Where the target points; `mass` and `direction` stand in place of the exponent."""
    spaces, values = covariance.spaces, covariance.eigenvalues
    if direction is not None:
        return TargetLaw(np.ones(1), spaces, _unit(covariance, direction))
    if mass is not None:
        if len(mass) != len(values):
            rule = f"must have one number for each of {len(values)} classes"
            raise InvalidProblem("target_mass", rule, mass)
        if np.any(np.array(mass)[values == 0.0]):
            raise InvalidProblem("target_mass", "must be 0 where the eigenvalue is 0", mass)
        return TargetLaw(np.array(mass) / sum(mass), np.arange(len(values)))
    if exponent <= -1.0 and not values.min() > 0.0:
        raise InvalidProblem("target_exponent", "must be > -1 with an eigenvalue 0", exponent)
    each = np.bincount(spaces, covariance.counts * values ** (1.0 + exponent))
    return TargetLaw(each / each.sum(), spaces)


def _unit(covariance: InputCovariance, direction: int | tuple[float, ...]) -> FloatArray:
    """θ of a given direction of β⋆, along the eigenvectors, (d,)."""
    d, variances = covariance.d, covariance.variances
    if isinstance(direction, int):
        if direction > d:
            raise InvalidProblem("target_direction", f"must be <= d = {d}", direction)
        chosen = np.argsort(-variances, kind="stable")[direction - 1]
        vector = np.eye(1, d, chosen)[0]
    else:
        if len(direction) != d:
            raise InvalidProblem("target_direction", f"must have d = {d} numbers", len(direction))
        vector = np.array(direction)
        vector = vector if covariance.vectors is None else covariance.vectors @ vector
    theta = np.sqrt(variances) * vector
    norm = float(np.linalg.norm(theta))
    if not norm > 0.0:
        rule = "must not lie where all eigenvalues are 0"
        raise InvalidProblem("target_direction", rule, direction)
    return np.asarray(theta / norm)


def _power(spec: str) -> float:
    """The exponent a of `power(a)`: eigenvalue i is ∝ i^(−a)."""
    match = _POWER.fullmatch(spec.strip())
    if match is None:
        raise InvalidProblem("covariance", _RULE, spec)
    with readable("covariance", _RULE, spec):
        exponent = float(match.group(1))
    rule = f"must have an exponent in [0, {MAX_EXPONENT:g}]"
    return number("covariance", exponent, rule, lambda v: 0.0 <= v <= MAX_EXPONENT)


def _checked_pairs(pairs: FloatArray) -> tuple[tuple[float, float], ...]:
    _check_eigenvalues(pairs[:, 0])
    shares = pairs[:, 1]
    if not np.all(shares > 0.0) or not abs(shares.sum() - 1.0) <= _SUM:
        raise InvalidProblem("covariance", "must have shares > 0 of sum 1", shares.tolist())
    return tuple((value, share) for value, share in pairs.tolist())


def _check_eigenvalues(values: FloatArray) -> None:
    if not np.all(np.isfinite(values)) or not np.all(values >= 0.0) or not np.any(values):
        rule = "must have eigenvalues >= 0, not all 0"
        raise InvalidProblem("covariance", rule, values.tolist())


def _eigenpairs(matrix: FloatArray, d: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, descending, and eigenvectors as rows; InvalidProblem if one is negative."""
    if len(matrix) != d:
        raise InvalidProblem("covariance", f"must be {d} × {d}", matrix.shape)
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -_NEGATIVE * max(values[-1], 0.0) or values[-1] <= 0:
        rule = "must have eigenvalues >= 0, not all 0"
        raise InvalidProblem("covariance", rule, float(values[0]))
    return np.maximum(values, 0.0)[::-1], np.ascontiguousarray(vectors.T[::-1])
