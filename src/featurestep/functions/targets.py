"""Targets: functions of one direction, or of several in the basis of eq. 45.

A `Teacher` is the user's target of several directions: y = g(z_1, …, z_r) + noise, z_i the input
along orthonormal directions. An `AlignedTarget` is the same function in the basis whose first axis
is C = E[y z], with the grid on which its Gaussian averages are taken.

Labels ±1 of a target are y = sign(σ⋆(t) + ε), some of them flipped (theory, section 30).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from ..core.checks import whole_number
from ..core.errors import InaccurateQuadrature, InvalidProblem
from ..core.types import FloatArray
from .activations import NAMED, VARIABLE, from_formula, function, resolve
from .formula import formula
from .nonlinearity import Nonlinearity, divide_by_powers, gaussian_panels, hermite_polynomials
from .quadrature import Rule, gauss_hermite, normal_density, panels, trapezoid_normal
from .roots import find_root

MAX_DIRECTIONS = 3  # of a target in theory: averages are taken on grids
FINEST = 2  # the finest `directions_rule`
_HALF_WIDTH = 9.5  # of grids, in standard deviations
_SPACINGS = {2: (0.12, 0.06), 3: (0.32, 0.2)}  # of grids for all directions, by their number
_CONDITIONAL_SPACINGS = {1: (0.2, 0.1), 2: (0.2, 0.12), 3: (0.5, 0.3)}  # the same, given κ
_FEW_NODES = 14  # for each direction, of the coarsest `directions_rule`
_NEGLIGIBLE = 1e-18  # weight of a node, relative to the largest
# Gap between the averages on two grids, relative to E g²:
_CONVERGED_GAP = 1e-9  # no finer grid is tried
_ACCURATE_GAP = 1e-6  # no note is given
_MAX_GAP = 1e-2  # the target is accepted
_ABSENT = 1e-10  # a smaller C, relative to √E g², counts as 0


def resolve_target(spec: object) -> Nonlinearity | Teacher:
    """The target that a name, a Hermite sum, a formula, a callable or a Teacher stands for."""
    if isinstance(spec, Teacher):
        return spec if spec.directions > 1 else _single(spec)
    if isinstance(spec, str) and VARIABLE.search(spec):
        return _from_formula(spec.strip())
    return resolve(spec, "target")


def target_formula(spec: object) -> str | None:
    """A formula in z1, z2, z3 with uniform spaces and brackets; None for other targets."""
    if not isinstance(spec, str) or not VARIABLE.search(spec):
        return None
    return formula(spec.strip(), NAMED).canonical


@lru_cache(maxsize=64)
def _single(teacher: Teacher) -> Nonlinearity:
    """The function of a teacher of one direction."""
    return function(lambda t: teacher(t.reshape(-1, 1)).reshape(t.shape), name="target")


@lru_cache(maxsize=256)
def _from_formula(text: str) -> Nonlinearity | Teacher:
    """The target of a formula, in the directions that it names."""
    call = formula(text, NAMED)
    if len(call.labels) > 1:
        return Teacher(len(call.labels), call, name=text)
    return from_formula(text, call, "target")


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
        """Labels without noise, (rows,), of projections (rows, directions)."""
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
        """Names of the directions."""
        named = getattr(self.function, "labels", None)
        return named or tuple(f"z{i + 1}" for i in range(self.directions))

    @property
    def is_zero(self) -> bool:
        """True if the function is 0 at random inputs; InvalidProblem if it cannot be evaluated."""
        probe = np.random.default_rng(0).standard_normal((64, self.directions))
        with np.errstate(all="ignore"):
            return not np.any(self(probe))

    def aligned(self) -> AlignedTarget:
        """The function in the basis of eq. 45; InvalidProblem if a grid cannot average it."""
        if self.directions > MAX_DIRECTIONS:
            rule = f"must have at most {MAX_DIRECTIONS} directions in theory (use simulate)"
            raise InvalidProblem("target", rule, self.directions)
        return _aligned(self)


@dataclass(frozen=True, eq=False)
class AlignedTarget:
    """A target g of several directions in the basis of (45), whose first axis is C = E[y z].

    `z` and `weight` are a grid for averages over the directions, in this basis.
    """

    teacher: Teacher
    rotation: FloatArray  # (r, r) rows are the basis, in the directions as given
    mean: float  # E g
    slope: float  # ‖C‖
    second_moment: float  # E g²
    z: FloatArray  # (points, r)
    weight: FloatArray  # (points,)
    values: FloatArray  # (points,) g there
    gap: float  # between averages on this grid and on a shifted one, relative to E g²

    @property
    def directions(self) -> int:
        """r."""
        return self.teacher.directions

    @property
    def is_accurate(self) -> bool:
        """True if averages are accurate to 1e-6."""
        return self.gap <= _ACCURATE_GAP

    @cached_property
    def is_single(self) -> bool:
        """True if g depends on the first direction only."""
        probe = np.random.default_rng(1).standard_normal((64, self.directions))
        along = probe * (np.arange(self.directions) == 0)
        apart = np.abs(self(probe) - self(along)).max()
        return bool(apart <= _ABSENT * np.sqrt(self.second_moment))

    @cached_property
    def growth(self) -> int:
        """Degree of a polynomial that grows as fast as g along its steepest axis or diagonal."""
        signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=self.directions)))
        near, far = (np.abs(self(size * signs)).max() for size in (8.0, 16.0))
        if not far > near:
            return 1
        return max(1, int(np.ceil(np.log2(far / max(near, 1e-300)) - 0.1)))

    def __call__(self, z: FloatArray) -> FloatArray:
        """g at points (…, r) in this basis."""
        flat = z.reshape(-1, z.shape[-1]) @ self.rotation
        return _finite(self.teacher, flat).reshape(z.shape[:-1])

    def moments(self, highest: int) -> FloatArray:
        """E[g^j], E[z_i g^j] for j = 0 … highest: (1 + r, highest + 1)."""
        powers = self.values[:, None] ** np.arange(highest + 1)
        left = np.concatenate([np.ones((1, len(self.z))), self.z.T])
        return np.asarray((left * self.weight) @ powers)


def directions_rule(count: int, fineness: int) -> Rule:
    """Rule for `count` independent normal variables, for (50): nodes (P, count), weights (P,).

    fineness 0: few Gauss–Hermite nodes, exact for polynomials of degree 27. Functions that change
    quickly need equispaced nodes: fineness 1, or `FINEST`.
    """
    if fineness == 0:
        return _product(gauss_hermite(_FEW_NODES), count)
    return _product(
        trapezoid_normal(_HALF_WIDTH - 1.0, _CONDITIONAL_SPACINGS[count][fineness - 1]), count
    )


@lru_cache(maxsize=128)
def _aligned(teacher: Teacher) -> AlignedTarget:
    """`Teacher.aligned`, on the coarsest grid that agrees with itself shifted by half a spacing."""
    r = teacher.directions
    for spacing in _SPACINGS[r]:
        z, weight = _grid(r, spacing)
        values = _finite(teacher, z)
        first = _averages(z, weight, values)
        points, weights = _product(trapezoid_normal(_HALF_WIDTH, spacing, 0.5), r)
        other = _averages(points, weights, _finite(teacher, points))
        gap = float(np.abs(first - other).max() / max(abs(first[1]), 1e-300))
        if gap <= _CONVERGED_GAP:
            break
    if not gap <= _MAX_GAP:
        raise InaccurateQuadrature(
            "target",
            f"must have averages accurate to {_MAX_GAP:g} on a grid",
            f"a gap of {gap:.2g}",
        )
    linear = (weight * values) @ z
    slope = float(np.sqrt(linear @ linear))
    second = float(weight @ values**2)
    curved = z.T @ ((weight * values)[:, None] * z) - (weight @ values) * np.eye(r)
    if slope <= max(_ABSENT, 3.0 * gap) * np.sqrt(second):
        # C = 0: any basis is right. In this one a target of one direction depends on the first.
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
    """Orthonormal rows, the first along a given vector; of an axis, the identity."""
    size = first.size
    main = int(np.argmax(np.abs(first)))
    rest = [np.eye(size)[i] for i in range(size) if i != main]
    basis, upper = np.linalg.qr(np.stack([first, *rest], axis=1))
    return np.asarray((basis * np.sign(np.diagonal(upper))).T)


def _finite(teacher: Teacher, z: FloatArray) -> FloatArray:
    """Values of a teacher at points (P, r); InaccurateQuadrature if one is not finite."""
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
    """An equispaced grid, rotated: its points lie densely along every direction."""
    z, weight = _product(trapezoid_normal(_HALF_WIDTH, spacing), count)
    turn = _basis(1.0 + np.sqrt(np.arange(2.0, 2.0 + count)))
    return z @ turn, weight


def _product(rule: Rule, count: int) -> Rule:
    """A product rule: nodes (P, count), weights (P,); nodes of negligible weight left out."""
    x, w = rule
    points = np.stack(np.meshgrid(*[x] * count, indexing="ij"), axis=-1).reshape(-1, count)
    weights = np.ones(1)
    for _ in range(count):
        weights = np.multiply.outer(weights, w).ravel()
    kept = weights > _NEGLIGIBLE * weights.max()
    return points[kept], weights[kept] / weights[kept].sum()


def _averages(z: FloatArray, weight: FloatArray, values: FloatArray) -> FloatArray:
    """E g², and E g, E[g z], E[g (zzᵀ − I)] times √E g²: all of the size of E g²."""
    square = float(weight @ values**2)
    scale = np.sqrt(max(square, 1e-300))
    weighted = weight * values
    second = z.T @ (weighted[:, None] * z) - weighted.sum() * np.eye(z.shape[1])
    linear = np.concatenate([[weighted.sum()], weighted @ z, second.ravel()]) * scale
    return np.concatenate([linear[:1], [square], linear[1:]])


REACH = 8.0  # |t| up to which the target's sign is looked at
_LEVELS = np.array([0.0, 2.2, -2.2, 6.0, -6.0])  # of σ⋆/σ_ε, between which Φ is near a polynomial
_GRID = np.linspace(-REACH, REACH, 1601)
_CLOSE = 1e-9  # crossings that count as one
_ORDER = 16  # nodes of a panel
_EDGES = np.array([-9.0, -6.0, -3.0, 0.0, 3.0, 6.0, 9.0])


@dataclass(frozen=True, eq=False, repr=False)
class MeanSign(Nonlinearity):
    """E[y|t] = 2π(t) − 1 of labels y = ±1."""

    base: Nonlinearity  # σ⋆
    noise_std: float
    flip: float

    def probability(self, t: FloatArray) -> FloatArray:
        """π(t) = P(y = 1|t) (eq. 71): flip + (1 − 2·flip)·Φ(σ⋆(t)/σ_ε)."""
        value = self.base(t)
        if self.noise_std == 0.0:
            clean = (value >= 0.0).astype(np.float64)
        else:
            clean = special.ndtr(value / self.noise_std)
        return np.asarray(self.flip + (1.0 - 2.0 * self.flip) * clean)

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.asarray(2.0 * self.probability(s) - 1.0)

    def derivative(self, s: FloatArray) -> FloatArray:
        if self.noise_std == 0.0:
            return np.zeros_like(s)
        density = normal_density(self.base(s) / self.noise_std) / self.noise_std
        return np.asarray(2.0 * (1.0 - 2.0 * self.flip) * density * self.base.derivative(s))

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Places where σ⋆ changes its sign: jumps of labels without noise."""
        return tuple(_sign_changes(self.base, 0.0, at_zero=True))

    def breaks(self, reach: float) -> FloatArray:
        found = np.concatenate([self.base.breaks(reach), self.crossings])
        return np.unique(found[np.abs(found) < reach])

    @cached_property
    def crossings(self) -> tuple[float, ...]:
        """Places where σ⋆/σ_ε crosses 0, ±2.2 and ±6, or σ⋆ changes its sign without noise."""
        levels = _LEVELS[:1] if self.noise_std == 0.0 else _LEVELS * self.noise_std
        found = [
            t
            for level in levels
            for t in _sign_changes(self.base, float(level), at_zero=self.noise_std == 0.0)
        ]
        ordered = sorted(found)
        kept = ordered[:1]
        for t in ordered[1:]:
            if t - kept[-1] > _CLOSE:
                kept.append(t)
        return tuple(kept)

    @cached_property
    def second_moment(self) -> float:
        z, w = gaussian_panels(self)
        return float(w @ self(z) ** 2)

    @cached_property
    def share(self) -> float:
        """P(y = 1)."""
        z, w = gaussian_panels(self)
        return float(w @ self.probability(z))

    @cached_property
    def by_label(self) -> FloatArray:
        """E[t^k (1 − π)] and E[t^k π] for k = 0, 1, 2, (3, 2): moments of t with either label."""
        z, w = gaussian_panels(self)
        probability = self.probability(z)
        powers = z ** np.arange(3)[:, None] * w
        return np.stack([powers @ (1.0 - probability), powers @ probability], axis=1)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """By panels between the places where the label's mean changes fast."""
        inside = (np.array(self.breaks(REACH)) - t[..., None]) / rho[..., None]
        standard = np.broadcast_to(_EDGES, (*t.shape, _EDGES.size))
        edges = np.sort(np.concatenate([standard, np.clip(inside, -9.0, 9.0)], axis=-1), axis=-1)
        z, w = panels(edges, _ORDER)
        weighted = w * normal_density(z)
        value = self(rho[..., None] * z + t[..., None])
        out = np.empty((order + 2, *t.shape))
        hermite = hermite_polynomials(order, z)
        out[:-1] = (hermite * (weighted * value)).sum(axis=-1)
        out[-1] = (weighted * value**2).sum(axis=-1) - out[0] ** 2 - out[1] ** 2
        divide_by_powers(out[:-1], rho)
        return out


def _sign_changes(f: Nonlinearity, level: float, *, at_zero: bool) -> FloatArray:
    """Places in [−REACH, REACH] where f − level changes its sign.

    With `at_zero` 0 counts as positive, as it does for labels without noise.
    """
    values = f(_GRID) - level
    high = values >= 0.0
    places = np.flatnonzero(high[1:] != high[:-1])
    if not places.size:
        return np.empty(0)

    def shifted(t: FloatArray) -> FloatArray:
        found = f(t) - level
        return np.where(found >= 0.0, np.maximum(found, 1e-300), found) if at_zero else found

    return find_root(shifted, _GRID[places], _GRID[places + 1], absolute=1e-13)


@lru_cache(maxsize=256)
def mean_sign(star: Nonlinearity, noise_std: float, flip: float) -> MeanSign:
    """The mean label of a target, noise and share of flips: one object for each."""
    return MeanSign(f"sign({star.name})", star, noise_std, flip)
