"""Targets: functions of one direction or of several, and the basis of eq. 45 for the latter.

A `Teacher` is what the user gives: y = g(z_1, …, z_r) + noise, z_i the input along orthonormal
directions. Its `AlignedTarget` is the same function in the basis whose first axis is C = E[y z],
with the grid on which Gaussian averages of it are taken.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..core.checks import whole_number
from ..core.errors import InaccurateQuadrature, InvalidProblem
from ..core.types import FloatArray
from .activations import NAMED, HermiteSum, function, resolve
from .formula import MAX_DEGREE, Formula, formula
from .nonlinearity import ZERO, Nonlinearity, factorials, normalised_hermite
from .quadrature import Rule, gauss_hermite, trapezoid_normal

_NAMES_ONE = re.compile(r"\bz\d+\b")
MAX_DIRECTIONS = 3  # whose averages a grid can take
_SPACINGS = {2: (0.12, 0.06), 3: (0.32, 0.2)}
_REACH = 9.5  # standard deviations
_SETTLED = 1e-9  # gap between averages on two grids, relative to E g²
_ACCURATE = 1e-6  # the same, above which a note is due
_WORST = 1e-2
_FEW_NODES = 14
_BESIDE = {1: (0.2, 0.1), 2: (0.2, 0.12), 3: (0.5, 0.3)}  # spacings given κ
FINEST = 2
_NEGLIGIBLE = 1e-18  # weight of a node
_ABSENT = 1e-10  # of C, relative to √E g²


def resolve_target(spec: object) -> Nonlinearity | Teacher:
    """The target behind a name, a Hermite sum, a formula in z1, z2, z3, a callable or a Teacher."""
    if isinstance(spec, Teacher):
        return spec if spec.directions > 1 else _single(spec)
    if isinstance(spec, str) and _NAMES_ONE.search(spec):
        return _from_formula(spec.strip())
    return resolve(spec, "target")


def target_formula(spec: object) -> str | None:
    """A formula in z1, z2, z3 in its one spelling, None where the target is something else."""
    if not isinstance(spec, str) or not _NAMES_ONE.search(spec):
        return None
    return formula(spec.strip(), NAMED).canonical


@lru_cache(maxsize=64)
def _single(teacher: Teacher) -> Nonlinearity:
    """A teacher of one direction is a function like any other."""
    return function(lambda t: teacher(t.reshape(-1, 1)).reshape(t.shape), name="target")


@lru_cache(maxsize=256)
def _from_formula(text: str) -> Nonlinearity | Teacher:
    """A target of the directions that the text names."""
    call = formula(text, NAMED)
    if len(call.labels) > 1:
        return Teacher(len(call.labels), call, name=text)
    polynomial = _coefficients(call)
    if polynomial is not None:
        return HermiteSum(text, polynomial)
    return _single(Teacher(1, call, name=text))


def _coefficients(call: Formula) -> tuple[float, ...] | None:
    """Hermite coefficients of a polynomial in one direction, None for other functions."""
    z, w = gauss_hermite(2 * MAX_DEGREE)
    values = call(z[:, None])
    if not np.all(np.isfinite(values)):
        return None
    basis = normalised_hermite(MAX_DEGREE, z)
    c = basis @ (w * values)
    size = np.sqrt(w @ values**2)
    c[np.abs(c) < ZERO * size] = 0.0
    missed = np.abs(values - c @ basis) * np.sqrt(w)
    if not np.any(c) or missed.max() > 10.0 * ZERO * size:
        return None
    plain = c / np.sqrt(factorials(MAX_DEGREE + 1))
    return tuple(float(v) for v in plain[: np.flatnonzero(plain)[-1] + 1])


@dataclass(frozen=True, eq=False)
class Teacher:
    """A target of several directions: y = function(XB) + noise, B orthonormal (d, directions).

    `function` takes an array (rows, directions) and returns (rows,). The theory takes up to three
    directions, simulations any number.

    >>> from featurestep import Problem, Teacher, simulate
    >>> product = Teacher(2, lambda z: z[:, 0] + z[:, 0] * z[:, 1])
    >>> p = Problem(n=200, d=50, width=80, step_exponent=0.3, ridge=0.1, target=product)
    >>> simulate(p, seeds=2, n_test=500).test_error < 2.0
    True
    """

    directions: int
    function: Callable[[FloatArray], Any]
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "directions", whole_number("directions", self.directions))
        if not callable(self.function):
            raise InvalidProblem("function", "must be callable", self.function)
        if self.name is not None and not isinstance(self.name, str):
            raise InvalidProblem("name", "must be text", self.name)

    def __call__(self, projections: FloatArray) -> FloatArray:
        """The clean labels of some rows."""
        try:
            values = np.asarray(self.function(projections), dtype=np.float64)
        except Exception as error:
            rule = f"must map an array {projections.shape} to numbers ({type(error).__name__})"
            raise InvalidProblem("teacher", rule, str(error)) from error
        if values.shape != projections.shape[:1]:
            rule = f"must map {projections.shape} to {projections.shape[:1]}"
            raise InvalidProblem("teacher", rule, values.shape)
        return values

    def __repr__(self) -> str:
        shown = self.name or getattr(self.function, "__name__", "function")
        return f"Teacher({self.directions}, {shown})"

    @property
    def labels(self) -> tuple[str, ...]:
        """What its directions are called."""
        named = getattr(self.function, "labels", None)
        return named or tuple(f"z{i + 1}" for i in range(self.directions))

    @property
    def is_zero(self) -> bool:
        """Whether it vanishes at some typical inputs; whether it is a function of rows at all."""
        probe = np.random.default_rng(0).standard_normal((64, self.directions))
        with np.errstate(all="ignore"):
            return not np.any(self(probe))

    def aligned(self) -> AlignedTarget:
        """The function in the basis of (45), or InvalidProblem where no grid can take it."""
        if self.directions > MAX_DIRECTIONS:
            rule = f"must have at most {MAX_DIRECTIONS} directions in theory (simulations take it)"
            raise InvalidProblem("target", rule, self.directions)
        return _aligned(self)


@dataclass(frozen=True, eq=False)
class AlignedTarget:
    """A teacher in the basis of (45): its first axis is C = E[y z], its others see no C.

    `z` and `weight` are a grid for averages over the teacher's directions, in this basis.
    """

    teacher: Teacher
    rotation: FloatArray  # (r, r) rows are the basis, in the directions as given
    mean: float  # E g
    slope: float  # ‖C‖
    second_moment: float  # E g²
    z: FloatArray  # (points, r)
    weight: FloatArray  # (points,)
    values: FloatArray  # (points,) g there
    gap: float  # between averages on this grid and on another, relative to E g²

    @property
    def directions(self) -> int:
        """r."""
        return self.teacher.directions

    @property
    def is_accurate(self) -> bool:
        """Whether averages can be trusted to 1e-6."""
        return self.gap <= _ACCURATE

    @cached_property
    def is_single(self) -> bool:
        """Whether g depends on one direction alone, however many were given."""
        probe = np.random.default_rng(1).standard_normal((64, self.directions))
        along = probe * (np.arange(self.directions) == 0)
        apart = np.abs(self(probe) - self(along)).max()
        return bool(apart <= _ABSENT * np.sqrt(self.second_moment))

    @cached_property
    def growth(self) -> int:
        """Degree of the polynomial that grows as fast as g, along its steepest diagonal."""
        signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=self.directions)))
        near, far = (np.abs(self(size * signs)).max() for size in (8.0, 16.0))
        if not far > near:
            return 1
        return max(1, int(np.ceil(np.log2(far / max(near, 1e-300)) - 0.1)))

    def __call__(self, z: FloatArray) -> FloatArray:
        """g at points (…, r) of this basis."""
        flat = z.reshape(-1, z.shape[-1]) @ self.rotation
        return _finite(self.teacher, flat).reshape(z.shape[:-1])

    def moments(self, highest: int) -> FloatArray:
        """E[g^j], E[z_i g^j] for j = 0 … highest: (1 + r, highest + 1)."""
        powers = self.values[:, None] ** np.arange(highest + 1)
        left = np.concatenate([np.ones((1, len(self.z))), self.z.T])
        return np.asarray((left * self.weight) @ powers)


def directions_rule(count: int, fineness: int) -> Rule:
    """Nodes of `count` independent normal variables, for (50), those of no weight left out.

    Few Gauss–Hermite nodes are exact for polynomials. Functions that turn a corner far out need
    equispaced ones; the finest are at fineness `FINEST`.
    """
    if fineness == 0:
        return _product(gauss_hermite(_FEW_NODES), count)
    return _product(trapezoid_normal(_REACH - 1.0, _BESIDE[count][fineness - 1]), count)


@lru_cache(maxsize=128)
def _aligned(teacher: Teacher) -> AlignedTarget:
    """Averages on finer and finer grids, until two of them agree."""
    r = teacher.directions
    for spacing in _SPACINGS[r]:
        z, weight = _grid(r, spacing)
        values = _finite(teacher, z)
        first = _averages(z, weight, values)
        # On the grid whose points lie between: the gap is the error of either.
        points, weights = _product(trapezoid_normal(_REACH, spacing, 0.5), r)
        other = _averages(points, weights, _finite(teacher, points))
        gap = float(np.abs(first - other).max() / max(abs(first[1]), 1e-300))
        if gap <= _SETTLED:
            break
    if not gap <= _WORST:
        raise InaccurateQuadrature(
            "target", f"must have averages that a grid takes to {_WORST:g}", f"a gap of {gap:.2g}"
        )
    linear = (weight * values) @ z
    slope = float(np.sqrt(linear @ linear))
    second = float(weight @ values**2)
    curved = z.T @ ((weight * values)[:, None] * z) - (weight @ values) * np.eye(r)
    if slope <= max(_ABSENT, 3.0 * gap) * np.sqrt(second):
        # Any basis will do; a target of one direction is recognised in this one.
        values_2, vectors = np.linalg.eigh(curved)
        linear, slope = vectors[:, int(np.argmax(np.abs(values_2)))], 0.0
    rotation = _basis(linear)
    return AlignedTarget(
        teacher=teacher,
        rotation=rotation,
        mean=float(weight @ values),
        slope=slope,
        second_moment=second,
        z=z @ rotation.T,
        weight=weight,
        values=values,
        gap=gap,
    )


def _basis(first: FloatArray) -> FloatArray:
    """Orthonormal rows, the first along a given vector: the identity where that is an axis."""
    size = first.size
    main = int(np.argmax(np.abs(first)))
    rest = [np.eye(size)[i] for i in range(size) if i != main]
    basis, upper = np.linalg.qr(np.stack([first, *rest], axis=1))
    return np.asarray((basis * np.sign(np.diagonal(upper))).T)


def _finite(teacher: Teacher, z: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        values = teacher(np.array(z))
    if not np.all(np.isfinite(values)):
        where = z[~np.isfinite(values)][0].tolist()
        raise InaccurateQuadrature(
            "target", f"must be finite; at z = {where}", "a non-finite value"
        )
    return values


@lru_cache(maxsize=16)
def _grid(count: int, spacing: float) -> Rule:
    """An equispaced grid, turned: a function of one direction meets points that lie densely."""
    z, weight = _product(trapezoid_normal(_REACH, spacing), count)
    turn = _basis(1.0 + np.sqrt(np.arange(2.0, 2.0 + count)))
    return z @ turn, weight


def _product(rule: Rule, count: int) -> Rule:
    """Points (P, count) and weights of a product rule, without points of no weight."""
    x, w = rule
    points = np.stack(np.meshgrid(*[x] * count, indexing="ij"), axis=-1).reshape(-1, count)
    weights = np.ones(1)
    for _ in range(count):
        weights = np.multiply.outer(weights, w).ravel()
    kept = weights > _NEGLIGIBLE * weights.max()
    return points[kept], weights[kept] / weights[kept].sum()


def _averages(z: FloatArray, weight: FloatArray, values: FloatArray) -> FloatArray:
    """E g, E g², E[g z], E[g (zzᵀ − I)], with the last in units of √E g²."""
    square = float(weight @ values**2)
    scale = np.sqrt(max(square, 1e-300))
    weighted = weight * values
    second = z.T @ (weighted[:, None] * z) - weighted.sum() * np.eye(z.shape[1])
    linear = np.concatenate([[weighted.sum()], weighted @ z, second.ravel()]) * scale
    return np.concatenate([linear[:1], [square], linear[1:]])
