"""Scalar functions with their Gaussian moments and Hermite coefficients: σ and σ⋆ of the theory.

For s = ρz + t with z ~ N(0,1) (theory, eqs. 5 and 6) a function f has

mean       m = E f(s)
slope      E f′(s) = E[z f(s)]/ρ
spread     ν² = Var f(s) − (ρ·slope)²: the variance of f without its linear part in z

and the means of its derivatives E f^{(k)}(s), of which the mean and the slope are the first two.
They are closed forms (`activations`) or quadratures: an analytic function is averaged by the
equispaced rule. For a user's function the real line is cut into panels, at declared kinks and
wherever a polynomial of moderate degree is not accurate. Where panels would become ever narrower is
an undeclared kink or jump, and the function is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ..core.errors import InaccurateQuadrature
from ..core.types import FloatArray, IntArray
from .lattices import IN_NORM, lattice_averages, ranges
from .quadrature import Rule, gauss_legendre, normal_density, panels, trapezoid_normal

Function = Callable[[FloatArray], FloatArray]
_DIFFERENCE = 1e-4  # relative, of a difference quotient in ρ
ZERO = 1e-12  # a Hermite coefficient smaller than this, relative to √E f², counts as absent


class Moments(NamedTuple):
    """Mean, slope and spread of f(ρz + t), arrays of the shape of ρ and t."""

    mean: FloatArray
    slope: FloatArray
    spread: FloatArray


@dataclass(frozen=True, eq=False)
class Nonlinearity:
    """A scalar function with the Gaussian moments that the theory needs."""

    name: str

    def __call__(self, s: FloatArray) -> FloatArray:
        """f(s), elementwise."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def derivative(self, s: FloatArray) -> FloatArray:
        """f′(s), elementwise (one-sided at kinks)."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E f^{(k)}(ρz + t) for k = 0 … order ≥ 1, then the spread: (order + 2, *shape).

        ρ and t are broadcast to one shape. The means are E[f(ρz + t)H_k(z)]/ρ^k, so that no
        derivative of f is taken.
        """
        rho, t = np.broadcast_arrays(rho, t)
        return self._averages(rho, t, order)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """`averages` for ρ and t of one shape."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def averages_on_lattices(
        self, rho: FloatArray, first: FloatArray, counts: IntArray, order: int
    ) -> FloatArray:
        """`averages` at t = first + jρ/8, j = 0 … count − 1, for ρ, first and counts (C,).

        (order + 2, Σ counts), lattice after lattice.
        """
        size = np.repeat(rho, counts)
        t = np.repeat(first, counts) + ranges(counts) * (size / IN_NORM)
        return self.averages(size, t, order)

    def averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """`averages` for an order ≥ 3, and ρ²∂/∂ρ² of E f(ρz + t)², of the shape of ρ and t."""
        rho, t = np.broadcast_arrays(rho, t)
        return self._averages_with_growth(rho, t, order)

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """The same for ρ and t of one shape, by a difference quotient."""
        sizes = np.multiply.outer([1.0 + _DIFFERENCE, 1.0 - _DIFFERENCE], rho)
        mean, slope, spread = self.averages(sizes, t, 1)
        up, down = mean**2 + (sizes * slope) ** 2 + spread
        return self._averages(rho, t, order), (up - down) / (4.0 * _DIFFERENCE)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        """Moments of f(ρz + t) for every (ρ, t)."""
        return Moments(*self.averages(rho, t, 1))

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E f^{(k)}(ρz + t) for k = 0 … order: (order + 1, *shape)."""
        return self.averages(rho, t, max(order, 1))[: order + 1]

    def normalised_coefficients(self, order: int) -> FloatArray:
        """E[f(z)H_k(z)]/√k! for k = 0 … order, as computed (see the function of that name)."""
        z, w = gaussian_panels(self)
        return normalised_hermite(order, z) @ (w * self(z))

    @property
    def oscillates(self) -> bool:
        """True if f varies at unit scale arbitrarily far from 0."""
        return False

    @property
    def is_odd(self) -> bool:
        """True if f(−s) = −f(s) is known."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where f is not smooth."""
        return ()

    def breaks(self, reach: float) -> FloatArray:
        """Points of [−reach, reach] between which f is close to polynomials of moderate degree."""
        kinks = np.array(self.kinks)
        return np.asarray(kinks[np.abs(kinks) < reach])

    @cached_property
    def second_moment(self) -> float:
        """E f(z)²."""
        mean, slope, spread = self.moments(np.ones(1), np.zeros(1))
        return float(mean[0] ** 2 + slope[0] ** 2 + spread[0])

    @cached_property
    def mean_slope(self) -> float:
        """E f′(z), by integrating the derivative."""
        z, w = gaussian_panels(self)
        return float(w @ self.derivative(z))

    @cached_property
    def slope_variance(self) -> float:
        """Var f′(z)."""
        z, w = gaussian_panels(self)
        slopes = self.derivative(z)
        return float(w @ (slopes - w @ slopes) ** 2)

    def centred(self) -> Nonlinearity:
        """f − E f(z)."""
        if self.is_odd:
            return self
        offset = float(self.normalised_coefficients(0)[0])
        return self if offset == 0.0 else Shifted(self.name, self, offset)

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, eq=False, repr=False)
class Shifted(Nonlinearity):
    """base − offset."""

    base: Nonlinearity
    offset: float

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.base(s) - self.offset

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.base.derivative(s)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = self.base.averages(rho, t, order)
        out[0] -= self.offset
        return out

    def averages_on_lattices(
        self, rho: FloatArray, first: FloatArray, counts: IntArray, order: int
    ) -> FloatArray:
        out = self.base.averages_on_lattices(rho, first, counts, order)
        out[0] -= self.offset
        return out

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        out, growth = self.base.averages_with_growth(rho, t, order)
        out[0] -= self.offset
        return out, growth - self.offset * rho**2 * out[2]

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = self.base.normalised_coefficients(order)
        out[0] -= self.offset
        return out

    @property
    def oscillates(self) -> bool:
        return self.base.oscillates

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.base.kinks

    def breaks(self, reach: float) -> FloatArray:
        return self.base.breaks(reach)


@dataclass(frozen=True, eq=False, repr=False)
class Rescaled(Nonlinearity):
    """base(factor·s)."""

    base: Nonlinearity
    factor: float

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.base(self.factor * s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.base.derivative(self.factor * s))

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = self.base.averages(self.factor * rho, self.factor * t, order)
        for k in range(1, order + 1):
            out[k] *= self.factor**k
        return out

    @property
    def oscillates(self) -> bool:
        return self.base.oscillates

    @property
    def is_odd(self) -> bool:
        return self.base.is_odd

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(kink / self.factor for kink in self.base.kinks)

    def breaks(self, reach: float) -> FloatArray:
        return self.base.breaks(reach * self.factor) / self.factor


def innermost(f: Nonlinearity) -> Nonlinearity:
    """The function without its shifts and changes of scale."""
    while isinstance(f, (Shifted, Rescaled)):
        f = f.base
    return f


def gaussian_panels(f: Nonlinearity) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the average over z ~ N(0,1), for products of f and smooth functions."""
    inside = f.breaks(16.0)
    edges = np.unique(np.concatenate([np.linspace(-16.0, 16.0, 33), inside[np.abs(inside) < 16.0]]))
    z, w = panels(edges, 16)
    return z, w * normal_density(z)


def normalised_hermite(order: int, x: FloatArray) -> FloatArray:
    """H_k(x)/√k! for k = 0 … order: (order + 1, *shape of x)."""
    out = np.empty((order + 1, *np.shape(x)))
    out[0] = 1.0
    if order:
        out[1] = x
    for k in range(1, order):
        out[k + 1] = (x * out[k] - np.sqrt(k) * out[k - 1]) / np.sqrt(k + 1.0)
    return out


def hermite_polynomials(order: int, x: FloatArray) -> FloatArray:
    """H_k(x) for k = 0 … order: (order + 1, *shape of x)."""
    sizes = np.sqrt(factorials(order + 1)).reshape(-1, *[1] * np.ndim(x))
    return normalised_hermite(order, x) * sizes


def divide_by_powers(rows: FloatArray, rho: FloatArray) -> FloatArray:
    """Divide row k by ρ^k, in place."""
    for k in range(1, len(rows)):
        rows[k:] /= rho
    return rows


@lru_cache(maxsize=512)
def coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """c_k = E[f(z)H_k(z)]/k! for k = 0 … order (theory, section 1)."""
    normalised = normalised_coefficients(f, order)
    values = normalised / np.sqrt(factorials(order + 1))
    values.setflags(write=False)
    return values


@lru_cache(maxsize=512)
def normalised_coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """√k!·c_k for k = 0 … order, whose squares sum to E f²; exactly 0 at rounding level."""
    values = f.normalised_coefficients(order)
    values[np.abs(values) < ZERO * np.sqrt(f.second_moment)] = 0.0
    values.setflags(write=False)
    return values


def factorials(count: int) -> FloatArray:
    """0!, 1!, …, (count − 1)! as floats."""
    steps = np.maximum(np.arange(count), 1).astype(np.float64)
    return np.asarray(np.cumprod(steps), dtype=np.float64)


_ORDER = 14  # nodes of a panel when integrating
_TEST_ORDER = 20  # nodes of a panel when testing its accuracy
_RELATIVE_TAIL = 1e-10  # allowed size of the Legendre tail, relative to the panel's values
_ABSOLUTE_TAIL = 1e-14  # the same, relative to the function's values near 0
_MIN_PANEL = 1e-6  # width, relative to 1 + |s|
_NEAR_ENDS = np.concatenate(
    [1.0 - np.array([1e-9, 3e-4, 2e-3]), np.array([1e-9, 3e-4, 2e-3]) - 1.0]
)
_MAX_PANELS = 4000
# Width and centre of the first panels, at no round number. A kink exactly on a cut looks smooth
# from both sides, so that functions are tested with a second set too.
_CUTS = (1.0359, 0.0271)
_OTHER_CUTS = (0.8767, -0.0413)
_MAX_VALUE = 1e9  # of |f| near 0
_REACH = 12.0  # standard deviations over which averages are taken
_PANEL_BLOCK = 1 << 17  # elements of one (points × nodes) block of panels
_EQUISPACED_BLOCK = 1 << 16  # the same for equispaced nodes, small enough to stay in cache
_BLOCK_ROWS = 32  # of one product
_EQUISPACED_MAX_RHO = 6.0  # the equispaced rule up to this ρ, panels beyond
_EQUISPACED_MIN_RHO = 1.0  # below it no finer nodes: the density grows off the real line too


@dataclass(frozen=True, eq=False, repr=False)
class Sampled(Nonlinearity):
    """A function that is averaged by Gauss rules on panels between its breaks."""

    function: Function
    slope_function: Function | None = None
    kinks: tuple[float, ...] = ()
    parameter: str = "activation"
    _breaks: dict[float, FloatArray] = field(default_factory=dict, init=False)

    def breaks(self, reach: float) -> FloatArray:
        """Ends of the panels on [−S, S], S the power of two at or above `reach`."""
        top = max(4.0, 2.0 ** np.ceil(np.log2(reach)))
        if top not in self._breaks:
            self._breaks[top] = self._resolve(top, *_CUTS)
        return self._breaks[top]

    @cached_property
    def _central_size(self) -> float:
        return float(np.abs(self(np.linspace(-4.0, 4.0, 257))).max())

    def _resolve(self, top: float, first: float, centre: float) -> FloatArray:
        """Ends of panels on [−top, top], halved until each is accurate."""
        doubling = first * 2.0 ** np.arange(0, np.log2(top) + 1)
        edges = np.concatenate([-doubling[::-1], [centre], doubling])
        edges = np.unique(np.concatenate([edges, super().breaks(top)]))
        while True:
            unresolved = np.flatnonzero(~self._is_resolved(edges))
            if unresolved.size == 0:
                return edges
            middle = 0.5 * (edges[unresolved] + edges[unresolved + 1])
            width = edges[unresolved + 1] - edges[unresolved]
            stuck = width < _MIN_PANEL * (1.0 + np.abs(middle))
            if np.any(stuck):
                place = float(middle[stuck][0])
                raise InaccurateQuadrature(
                    self.parameter,
                    "must be smooth except at declared kinks: function(f, kinks=[…]) declares them",
                    f"a kink or jump near s = {place:.6g}",
                )
            if edges.size + unresolved.size > _MAX_PANELS:
                raise InaccurateQuadrature(
                    self.parameter,
                    f"must vary slowly enough for {_MAX_PANELS} panels on [-{top:g}, {top:g}]",
                    "a function that varies faster",
                )
            edges = np.unique(np.concatenate([edges, middle]))

    def _is_resolved(self, edges: FloatArray) -> np.ndarray:
        """True for the panels on which a Legendre series is accurate, right up to the ends."""
        x, w = gauss_legendre(_TEST_ORDER)
        half = 0.5 * np.diff(edges)[:, None]
        middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
        values = self(middle + half * x)
        legendre = np.polynomial.legendre.legvander(x, _TEST_ORDER - 1)
        coefficients = (values * w) @ legendre * (np.arange(_TEST_ORDER) + 0.5)
        tail = np.abs(coefficients[:, _ORDER - 2 :]).max(axis=1)
        # There are no Gauss nodes close to the ends: a kink beyond the last one shows here.
        series = coefficients @ np.polynomial.legendre.legvander(_NEAR_ENDS, _TEST_ORDER - 1).T
        missed = np.abs(self(middle + half * _NEAR_ENDS) - series).max(axis=1)
        allowed = _RELATIVE_TAIL * np.abs(values).max(axis=1) + _ABSOLUTE_TAIL * self._central_size
        return np.asarray(np.maximum(tail, 0.01 * missed) <= allowed)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        return self._averages_with_growth(rho, t, order)[0]

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        found = self._by_nodes(rho.ravel(), t.ravel(), order)
        found = found.reshape(order + 3, *t.shape)
        out, growth = found[:-1], found[-1]
        if order > 1:
            growth += out[0] * out[2]
        divide_by_powers(out[:-1], rho)
        return out, growth

    def averages_on_lattices(
        self, rho: FloatArray, first: FloatArray, counts: IntArray, order: int
    ) -> FloatArray:
        return lattice_averages(self, self.breaks, rho, first, counts, order)

    def _by_nodes(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E[f(ρz + t)H_k(z)] for k = 0 … order, then the spread: (order + 3, P) for ρ, t (P,).

        The last row is E[f²H_2]/2 of f without its mean.
        """
        out = np.empty((order + 3, t.size))
        reach = np.abs(t) + _REACH * rho
        level = np.ceil(np.log2(np.maximum(reach, 4.0))).astype(int)
        for value in np.unique(level):
            pick = np.flatnonzero(level == value)
            breaks = self.breaks(2.0 ** int(value))
            rows = max(1, _PANEL_BLOCK // (_ORDER * (breaks.size + 13)))
            for start in range(0, pick.size, rows):
                block = pick[start : start + rows]
                z, w = _split_rule(rho[block], t[block], breaks)
                values = self(rho[block, None] * z + t[block, None])
                out[:, block] = _averages(z, w, values, order)
        return out


def _split_rule(rho: FloatArray, t: FloatArray, breaks: FloatArray) -> Rule:
    """Nodes and weights of the average over z ~ N(0,1), cut where ρz + t is a break: (P, nodes)."""
    cuts = np.clip((breaks - t[:, None]) / rho[:, None], -_REACH, _REACH)
    grid = np.broadcast_to(np.linspace(-_REACH, _REACH, 13), (t.size, 13))
    edges = np.sort(np.concatenate([cuts, grid], axis=1), axis=1)
    z, w = panels(edges, _ORDER)
    return z, w * normal_density(z)


def _averages(z: FloatArray, w: FloatArray, values: FloatArray, order: int) -> FloatArray:
    """Averages of values (P, nodes) times H_k, then the spread and E[f²H_2]/2: (order + 3, P)."""
    mean = np.sum(w * values, axis=1)
    means = [mean]
    # E H_k = 0: without the mean, less is lost to rounding when ρ is small.
    values = values - mean[:, None]
    growth = 0.5 * np.sum(w * (z * values - values) * (z * values + values), axis=1)
    term, below = w * values, np.zeros(())
    for k in range(order):
        term, below = z * term - k * below, term
        means.append(np.sum(term, axis=1))
    rest = values - means[1][:, None] * z
    return np.stack([*means, np.sum(w * rest * rest, axis=1), growth])


@dataclass(frozen=True, eq=False, repr=False)
class Analytic(Sampled):
    """A function analytic for |Im s| < π/2 at least, so that the equispaced rule converges fast."""

    slope_function: Function
    is_ramp: bool = False  # f(s) = s + f(−s): evaluated where it decays, so nothing cancels
    odd: bool = False

    @property
    def is_odd(self) -> bool:
        return self.odd

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.function(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.slope_function(s)

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        if not self.is_ramp:
            return super()._averages_with_growth(rho, t, order)
        out, growth = super()._averages_with_growth(rho, -np.abs(t), order)
        if order > 2:  # E f(s)² = E s² + 2E[s f(−s)] + E f(−s)²
            v = rho**2
            turned = v * (1.0 - 2.0 * out[1] + t * out[2] - v * out[3])
            growth += np.where(t > 0, turned, 0.0)
        out[0] += np.maximum(t, 0.0)
        out[1:-1:2] *= np.where(t > 0, -1.0, 1.0)  # f^{(k)}(s) = (−1)^k f^{(k)}(−s) for k ≥ 2
        out[1] += t > 0
        return out, growth

    def _by_nodes(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """With equispaced nodes for small ρ, with panels for large."""
        out = np.empty((order + 3, t.size))
        for pick, bound in _rho_intervals(rho):
            at = rho[pick], t[pick]
            if bound <= _EQUISPACED_MAX_RHO:
                # Wider and finer for higher orders: H_k grows, off the real line too.
                reach, spacing = (8.5, 0.29) if order == 1 else (10.0, 0.25)
                rule = trapezoid_normal(reach, spacing / bound)
                out[:, pick] = _averages_by_rule(self.function, *at, order, rule)
            else:
                out[:, pick] = super()._by_nodes(*at, order)
        return out


def _rho_intervals(rho: FloatArray) -> Iterator[tuple[IntArray, float]]:
    """Indices of the ρ in each interval [b/2^(1/6), b], and b: they share their nodes."""
    octave = np.ceil(6 * np.log2(np.maximum(rho, _EQUISPACED_MIN_RHO)) - 1e-9).astype(int)
    for level in np.unique(octave):
        yield np.flatnonzero(octave == level), 2.0 ** (level / 6)


def _averages_by_rule(
    f: Function, rho: FloatArray, t: FloatArray, order: int, rule: Rule
) -> FloatArray:
    """E[f(ρz + t)H_k(z)] for k = 0 … order, the spread and E[f²H_2]/2: (order + 3, P), by one rule.

    Products take rows in blocks of one size, the last one filled up: BLAS chooses its kernel by the
    sizes of a product, and the digits of a row would depend on how many rows there are beside it.
    """
    z, w = rule
    count = t.size
    rho, t = (np.append(each, np.repeat(each[-1:], -count % _BLOCK_ROWS)) for each in (rho, t))
    out = np.empty((order + 3, t.size))
    projections = (w * hermite_polynomials(max(order, 2), z)[1:]).T
    weights = np.stack([w, 0.5 * w * (z * z - 1.0)], axis=1)
    rows = _BLOCK_ROWS * max(1, _EQUISPACED_BLOCK // (z.size * _BLOCK_ROWS))
    for start in range(0, t.size, rows):
        block = slice(start, start + rows)
        points = np.multiply.outer(rho[block], z)  # (rows, nodes)
        points += t[block, None]
        values = f(points)
        out[0, block] = mean = _by_blocks(values, weights)[:, 0]
        values -= mean[:, None]  # E H_k = 0: less is lost to rounding when ρ is small
        out[1:-2, block] = _by_blocks(values, projections).T[:order]
        out[-2:, block] = _by_blocks(np.square(values, out=values), weights).T
    out[-2] = np.maximum(out[-2] - out[1] ** 2, 0.0)
    return out[:, :count]


def _by_blocks(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """values @ matrix, (rows, columns), by products of _BLOCK_ROWS rows each."""
    blocks = values.reshape(-1, _BLOCK_ROWS, values.shape[1])
    return np.asarray(np.matmul(blocks, matrix).reshape(len(values), -1))


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction(Sampled):
    """A user's vectorised callable, refused if it has undeclared kinks."""

    def __post_init__(self) -> None:
        """Refuse undeclared kinks near 0, and growth without a Gaussian second moment."""
        if not self._central_size <= _MAX_VALUE:
            raise InaccurateQuadrature(
                self.parameter, f"must stay below {_MAX_VALUE:.0e} near 0", self._central_size
            )
        self.breaks(16.0)
        self._resolve(16.0, *_OTHER_CUTS)
        mean, slope, spread = self.averages(np.ones(1), np.zeros(1), 1)[:, 0]
        ends = np.array([-_REACH, _REACH])
        beyond = float(np.max(self(ends) ** 2 * normal_density(ends)))
        if beyond > 1e-9 * (mean**2 + slope**2 + spread):
            raise InaccurateQuadrature(
                self.parameter, "must have a finite Gaussian second moment", "too fast a growth"
            )

    def __call__(self, s: FloatArray) -> FloatArray:
        """f(s) as float64; InaccurateQuadrature unless f is elementwise, real and finite."""
        values = _call_safely(self.function, s, self.parameter)
        if values.shape != np.shape(s):
            raise InaccurateQuadrature(
                self.parameter,
                f"must be a vectorised function, one value for each of {np.shape(s)}",
                values.shape,
            )
        if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
            raise InaccurateQuadrature(self.parameter, "must return real numbers", values.dtype)
        values = values.astype(np.float64)
        if not np.all(np.isfinite(values)):
            where = np.ravel(s)[~np.isfinite(np.ravel(values))][0]
            raise InaccurateQuadrature(
                self.parameter, f"must be finite; at s = {where:.6g}", "a non-finite value"
            )
        return values

    @property
    def oscillates(self) -> bool:
        """True if the range 16 … 64 needs many panels."""
        return self.breaks(64.0).size > self.breaks(16.0).size + 40

    def derivative(self, s: FloatArray) -> FloatArray:
        """The declared derivative, or a fourth-order difference on one side of every kink."""
        if self.slope_function is not None:
            slopes = _call_safely(self.slope_function, np.asarray(s), "derivative")
            if slopes.shape != np.shape(s) or not np.issubdtype(slopes.dtype, np.number):
                raise InaccurateQuadrature(
                    "derivative", "must return one number for each input", slopes.shape
                )
            return slopes.astype(np.float64)
        return _one_sided_difference(self, np.asarray(s), self.kinks)


def _call_safely(function: Function, s: FloatArray, parameter: str) -> np.ndarray:
    """A user's function of a copy of s; any exception becomes InaccurateQuadrature."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.array(s)))
    except Exception as error:
        raise InaccurateQuadrature(
            parameter, "must accept an array of numbers", f"{type(error).__name__}: {error}"
        ) from error


def _one_sided_difference(f: Function, s: FloatArray, kinks: Sequence[float]) -> FloatArray:
    """f′(s) from five points on the same side of every kink as s."""
    step, stencil = 1e-3, np.arange(-2.0, 3.0)
    shift = np.zeros(np.shape(s))  # in steps, of the stencil's centre
    for kink in kinks:
        gap = (s - kink) / step
        shift = np.where((gap >= 0) & (gap < 2), 2 - gap, shift)
        shift = np.where((gap < 0) & (gap > -2), -2 - gap, shift)
    values = np.stack([f(s + (shift + at) * step) for at in stencil])
    # Derivative at offset −shift of the quartic through the five values.
    quartic = np.tensordot(np.linalg.inv(np.vander(stencil, increasing=True)), values, 1)
    slopes = np.arange(1.0, 5.0).reshape(-1, *[1] * shift.ndim) * quartic[1:]
    return np.asarray(np.polynomial.polynomial.polyval(-shift, slopes, tensor=False) / step)
