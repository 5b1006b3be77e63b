"""Degrees 2 and 3 of the features at finite d: blocks of coordinates, fields, norms (130)–(151).

The part of degree k of a feature has about d^k/k! coordinates, and with that many samples and
neurons the readout learns functions of degree k in all directions. In the resolvent each degree is
one more block of coordinates beside the linear one; of the target it learns the parts of degree 2
and 3 in (κ, s), which are fields. Every table is a function of κ and of the norm of the sample,
‖x‖²/d = 1 + h√(2/d) with h = ±1. All of it vanishes as d → ∞ at fixed n/d and N/d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients, hermite_polynomials
from ..resolution import FEWEST_INPUTS
from .dyson import diagonals, inverted, matmul, symmetric, transposed
from .sectors import MixedCoordinates, Sector, WeightCovariance
from .step import Step

DEGREES = (2, 3)  # that have blocks and fields
_HIGHEST_POWER = 1000.0  # of ‖x‖²/d in ν², far above what is more than rounding
LARGEST_OVERLAP = 0.2  # share of a neuron's square along κ up to which tables are expanded in it


class HigherFields(NamedTuple):
    """Covariances of the fields of degree 2 and 3 in units of D_g, before the readout's own part.

    Of degree 2 are (κκ), (κs), (ss) and, behind them, what the step mixes with them.
    """

    square: FloatArray  # (B, K, c, c)
    cube: FloatArray  # (B, K, 4, 4): (κκκ), (κκs), (κss), (sss)
    share: FloatArray  # (B, a) nodes of the bulk for (149)
    bulk: FloatArray  # (B, a, K)
    norm_share: FloatArray  # (B, K) Z² of (149)

    def take(self, rows: Any) -> HigherFields:
        """The same for some of the rows."""
        return HigherFields(*(part[rows] for part in self))


class TablesAcross(NamedTuple):
    """Slopes in s² − 1 of what the resolvent sees of a feature."""

    products: FloatArray  # (B, Q, TK(K+1)/2) as `Columns.products`
    spread: FloatArray  # (B, Q, K) of ν²

    def take(self, rows: Any) -> TablesAcross:
        """The same for some of the rows."""
        return TablesAcross(self.products[rows], self.spread[rows])


class RadialNodes(NamedTuple):
    """Nodes (κ, h): all κ with h = 1, then all with h = −1."""

    kappa: FloatArray  # (2Q, 1)
    h: FloatArray  # (2Q, 1)

    @classmethod
    def of(cls, kappa: FloatArray) -> RadialNodes:
        """The nodes for κ (Q,)."""
        sign = np.repeat([1.0, -1.0], kappa.size)
        return cls(np.tile(kappa, 2)[:, None], sign[:, None])


class Averages(NamedTuple):
    """s_k = E σ^(k)(ρz + uκ) of (130) for k = 0 … 5 at nodes (κ, h), and what is above degree 3."""

    s: list[FloatArray]  # each (B, 2Q, K)
    tail: FloatArray  # (B, 2Q, K) variance above degree 3
    power: FloatArray  # (B, 2Q, K) p of (137)


def averages_of(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> Averages:
    """Means of derivatives and what of the variance is above degree 3 (eq. 130)."""
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    return split_by_degree(*sigma.averages_with_growth(norm, place, 5), norm)


def split_by_degree(found: FloatArray, growth: FloatArray, norm: FloatArray) -> Averages:
    """The same from means and spreads (7, B, Q, K) and growths (B, Q, K) at norms (B, 1, K)."""
    s, v = found[:6], norm**2
    tail = np.maximum(found[-1] - v**2 * (0.5 * s[2] ** 2 + v * s[3] ** 2 / 6.0), 0.0)
    # v∂/∂v of v^ks_k²/k!, k = 0 … 3, with ∂s_k/∂v = s_{k+2}/2
    lower = s[0] * s[2] + s[1] ** 2 + v * (s[1] * s[3] + s[2] ** 2)
    lower = lower + v**2 * (0.5 * s[2] * s[4] + 0.5 * s[3] ** 2 + v * s[3] * s[5] / 6.0)
    with np.errstate(all="ignore"):
        power = (growth - v * lower) / tail
    power = np.clip(np.nan_to_num(power), 0.0, _HIGHEST_POWER)
    twice = [np.concatenate([part, part], axis=1) for part in (*s, tail, power)]
    return Averages(twice[:6], twice[6], twice[7])


def inputs(step: Step) -> FloatArray:
    """d, (B,), or the least for which two directions of an input leave others."""
    return np.maximum(step.d, FEWEST_INPUTS)


def dimension(d: FloatArray, degree: int) -> FloatArray:
    """Number of traceless coordinates of a degree, as floats (eq. 134)."""

    def choose(top: FloatArray, count: int) -> FloatArray:
        found = np.ones_like(top)
        for i in range(count):
            found = found * (top - i) / (i + 1)
        return found

    lower = choose(d + degree - 3, degree - 2)
    return np.asarray(choose(d + degree - 1, degree) - lower)


def traceless_share(d: FloatArray, degree: int) -> FloatArray:
    """f_k of (134): the traceless part of the variance of degree k."""
    found = np.ones_like(d)
    for i in range(degree):
        found = found * (d - 2 + i) / (d - 2 + 2 * i)
    return found


def limited(values: FloatArray, largest: FloatArray) -> FloatArray:
    """Positive values up to half of the largest; beyond, they tend to it.

    With four continuous derivatives, as rules in g converge slowly at kinks.
    """
    half = 0.5 * largest
    beyond = np.maximum(values / half - 1.0, 0.0)
    return np.asarray(np.minimum(values, half) + half * beyond * (1.0 + beyond**4) ** -0.25)


def positive(x: FloatArray) -> FloatArray:
    """1 + x, continued to x < −½ such that it stays positive, with four continuous derivatives.

    Rules in κ converge slowly where a table has kinks. The logarithm below −½ is that of 1 + x up
    to the fourth order.
    """
    beyond = np.maximum(-0.5 - x, 0.0)
    below = 0.5 * np.exp(-beyond * (2.0 + beyond * (2.0 + beyond * (8.0 / 3.0 + 4.0 * beyond))))
    return np.where(x > -0.5, 1.0 + x, below)


class Tables:
    """What the resolvent sees of a feature at nodes (κ, h) (eqs. 135, 136, 137)."""

    def __init__(
        self,
        d: FloatArray,
        norm: FloatArray,
        seen: Averages,
        nodes: RadialNodes,
        along: FloatArray,
        beside: FloatArray | None = None,
    ) -> None:
        """For d (B,), ρ_g and K_ββ (B, K); `beside` (B, 2Q, K) is the part of Sh not along κ."""
        self.s, self.seen = seen.s, seen
        self.d, self.v = d[:, None, None], norm[:, None, :] ** 2
        self.h = nodes.h
        self.radius = 1.0 + self.h * np.sqrt(2.0 / self.d)  # R, (B, 2Q, 1)
        self.kappa = nodes.kappa
        self.overlap = limited(along[:, None, :] / self.d, LARGEST_OVERLAP * self.v)
        self.beside = beside
        self.shift = (nodes.kappa**2 - 1.0) * self.overlap  # Sh
        if beside is not None:
            self.shift = self.shift + beside
        self._sizes: dict[int, FloatArray] = {}

    def _radial(self, degree: int, outside: int) -> FloatArray:
        """a_k^{(l)} of (135), with l factors ‖x‖ outside."""
        lowered = self.h - outside * np.sqrt(2.0 / self.d)
        return np.asarray(self.v * np.sqrt(2.0 / (self.d + 2 * degree)) * lowered)

    def _power(self, power: Any) -> FloatArray:
        """R^p over its mean."""
        up, down = 1.0 + np.sqrt(2.0 / self.d), np.maximum(1.0 - np.sqrt(2.0 / self.d), 1e-3)
        other = np.where(self.h > 0, down / up, up / down)
        return np.asarray(2.0 / (1.0 + other**power))

    def slope(self) -> FloatArray:
        """μ(κ, h)."""
        return np.asarray(self._root_radius() * self._bent(1, 1))

    def _root_radius(self) -> FloatArray:
        """√R."""
        return np.asarray(np.sqrt(np.maximum(self.radius, 1e-3)))

    def _bent(self, k: int, outside: int) -> FloatArray:
        """s_k with what the norm of a sample and its overlap add, outside it l factors ‖x‖."""
        return self.s[k] + 0.5 * self.s[k + 2] * (self._radial(k, outside) + self.shift)

    def _traceless(self, k: int) -> FloatArray:
        """v^k f_k/k!, of (134)."""
        return np.asarray(self.v**k / math.factorial(k) * traceless_share(self.d, k))

    def _size(self, k: int) -> FloatArray:
        """t_k(κ, h) over s_k with what is added to it."""
        known = self._sizes.get(k)
        if known is None:
            legs, apart = self._power(k), self.beside if k == 2 else self.shift
            if apart is not None:
                legs = positive(k * apart / self.v) * legs
            known = self._sizes[k] = np.sqrt(self._traceless(k) * legs)
        return known

    def of_degree(self, k: int) -> FloatArray:
        """t_k(κ, h); of degree 2 without coordinates κx_i, which are `along_kappa`."""
        return self._size(k) * self._bent(k, k)

    def _size_along_kappa(self) -> FloatArray:
        """t_c(κ, h) over s_2 with what is added to it."""
        size = self._traceless(2) * self.overlap * self.d / self.v
        share = np.sqrt(self.share_along() * size)
        return np.asarray(self.kappa * self._root_radius() * share)

    def along_kappa(self) -> FloatArray:
        """t_c(κ, h): coordinates κx_i of degree 2."""
        return self._size_along_kappa() * self._bent(2, 1)

    def slopes_across(self, across: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """All tables, t_c the last, and their slopes in s² − 1, for K_ss (B, K), of (152)."""
        change = across[:, None, :] / self.d
        leg = change / self.v
        slope = self._root_radius() * (0.5 * leg * self._bent(1, 1) + 0.5 * self.s[3] * change)
        tables, slopes = [self.slope()], [slope]
        for k in DEGREES:
            tables.append(self.of_degree(k))
            bent = 0.5 * self.s[k + 2] * change
            slopes.append(0.5 * k * leg * tables[-1] + self._size(k) * bent)
        rest = 1.0 - self.share_along()
        for each in (tables, slopes):
            each[1] = np.sqrt(rest) * each[1]
        tables.append(self.along_kappa())
        bent = 0.5 * self.s[4] * change
        slopes.append(0.5 * leg * tables[-1] + self._size_along_kappa() * bent)
        return tables, slopes

    def spread_across(self, across: FloatArray) -> FloatArray:
        """The slope of ν² in s² − 1."""
        leg = across[:, None, :] / self.d / self.v
        return np.asarray(self.spread() * self.seen.power * leg)

    def across(self, across: FloatArray) -> TablesAcross:
        """Slopes of products of tables in s² − 1, for K_ss (B, K)."""
        tables, slopes = self.slopes_across(across)
        upper = symmetric(across.shape[1])
        products = [
            t[..., upper.first] * x[..., upper.second] + x[..., upper.first] * t[..., upper.second]
            for t, x in zip(tables, slopes, strict=True)
        ]
        mixed = tables[0][..., :, None] * slopes[-1][..., None, :]
        mixed += slopes[0][..., :, None] * tables[-1][..., None, :]
        products.append(mixed.reshape(*mixed.shape[:2], -1))
        return TablesAcross(np.concatenate(products, axis=2), self.spread_across(across))

    def share_along(self) -> FloatArray:
        """c of (138), (B, 1, 1)."""
        d = self.d[:, 0, 0]
        return np.asarray((d - 1.0) / dimension(d, 2))[:, None, None]

    def spread(self) -> FloatArray:
        """ν²(κ, h): of degrees above those with a block."""
        return self._noise

    @cached_property
    def _noise(self) -> FloatArray:
        tail = self.seen.tail.copy()
        for k in DEGREES:
            bent = (0.5 * self.s[k + 2]) ** 2 * 2.0 / (self.d + 2 * k)
            tail -= self.v ** (k + 2) * bent / math.factorial(k)
        p = self.seen.power
        legs = positive(p * self.shift / self.v)
        return np.asarray(np.maximum(tail, 0.0) * self._power(p) * legs)


def build_sectors(
    tables: Tables, share: FloatArray, bulk: FloatArray
) -> tuple[tuple[Sector, ...], MixedCoordinates]:
    """Blocks of degree 2, one for each pair of nodes of the bulk, and of degree 3.

    Of the coordinates of degree 2 those along κ, a share c, are by themselves. Nodes of the bulk
    are p_a (B, a) and K_ga (B, a, K).
    """
    v = tables.v[:, 0]
    share, factor = pair_blocks(v, share, bulk)
    one = np.ones((len(v), 1))
    plain = np.ones((len(v), 1, v.shape[1]))
    d, rest = tables.d[:, 0, 0], np.sqrt(1.0 - tables.share_along())
    sectors = (
        Sector(dimension(d, 2) - (d - 1.0), rest * tables.of_degree(2), share, factor),
        Sector(dimension(d, 3), tables.of_degree(3), one, plain),
    )
    return sectors, MixedCoordinates(d - 1.0, tables.along_kappa())


def pair_blocks(
    v: FloatArray, share: FloatArray, bulk: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shares (B, P) of coordinates of degree 2, and factors (B, P, K) of their table (eq. 147).

    For ρ_g² (B, K), p_a (B, a) and K_ga (B, a, K) at nodes of the bulk.
    """
    pairs = list(combinations_with_replacement(range(share.shape[1]), 2))
    i, j = np.array(pairs).T
    both = share[:, i] * share[:, j] * np.where(i == j, 1, 2)
    return both, np.sqrt(bulk[:, i] * bulk[:, j]) / v[:, None]


def symmetric_square(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """X ↦ KXK on symmetric matrices in an orthonormal basis, and K itself in it.

    matrix: (…, m, m). The basis begins with (11), (12), (22).
    """
    size = matrix.shape[-1]
    pairs = sorted(combinations_with_replacement(range(size), 2), key=lambda p: (max(p), min(p)))
    i, j = np.array(pairs).T
    scale = np.where(i == j, math.sqrt(0.5), 1.0)
    a, b, c, d = (matrix[..., x[:, None], y] for x, y in ((i, i), (j, j), (i, j), (j, i)))
    square = (a * b + c * d) * scale[:, None] * scale
    return square, matrix[..., i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def symmetric_cube(matrix: FloatArray) -> FloatArray:
    """The same for cubic forms in two variables, (…, 4, 4): κ³, κ²s, κs², s³ of (139)."""
    x, y = matrix[..., 0, :], matrix[..., 1, :]  # linear forms
    counts = (3, 2, 1, 0)  # of κ
    found = np.zeros((*matrix.shape[:-2], 4, 4))
    for row, a in enumerate(counts):
        form = np.ones((*matrix.shape[:-2], 1))  # coefficients by the number of κ, ascending
        for line in [x] * a + [y] * (3 - a):
            grown = np.zeros((*form.shape[:-1], form.shape[-1] + 1))
            grown[..., 1:] += form * line[..., 0, None]
            grown[..., :-1] += form * line[..., 1, None]
            form = grown
        for column, b in enumerate(counts):
            ratio = math.comb(3, a) / math.comb(3, b)
            found[..., row, column] = form[..., b] * math.sqrt(ratio)
    return found


def higher_fields(step: Step, weights: WeightCovariance) -> HigherFields:
    """Covariances of the fields of degree 2 and 3 without the readout (eq. 139).

    The last three members are what the norms of neurons share with the block of degree 2 (149).
    """
    d = inputs(step)[:, None, None, None]
    square, trace = symmetric_square(weights.special)
    square = (square - trace[..., :, None] * trace[..., None, :] / d) / (d + 2.0)
    untrained = ~np.any(step.e, axis=1)  # nothing is mixed with (κκ), (κs), (ss)
    square[untrained, :, :3, 3:] = square[untrained, :, 3:, :3] = 0.0
    cube = symmetric_cube(weights.special[..., :2, :2]) / ((d + 2.0) * (d + 4.0))
    share = norm_share(step.norm_variance, step.norm, weights.share, weights.bulk)
    return HigherFields(square, cube, weights.share, weights.bulk, share)


def norm_share(variance: FloatArray, norm: FloatArray, share: FloatArray, bulk: FloatArray) -> Any:
    """Z² of (149), (B, K), for d·Var_g and ρ_g, (B, K), at nodes p_a (B, a) and K_ga (B, a, K)."""
    apart = 2.0 * (np.einsum("ba,bak->bk", share, bulk**2) - norm**4)  # Y(0)
    part = variance / np.maximum(apart, 1e-300)
    return np.where(apart > 1e-13, np.minimum(part, 1.0), 0.0)


class NormsInBlock:
    """The coordinate that norms of neurons share with the block of degree 2 (149).

    share, bulk: nodes p_a (B, a) and K_ga (B, a, K); norm_share: Z², (B, K); information:
    √D V̂_q √D, (B, K, K).
    """

    def __init__(
        self,
        share: FloatArray,
        bulk: FloatArray,
        norm_share: FloatArray,
        d: FloatArray,
        information: FloatArray,
    ) -> None:
        self.root = np.sqrt(norm_share)
        self.per_share = (d + 2.0)[:, None]
        self.share, self.kappa = share[:, :, None, None], bulk[..., :, None]  # (B, a, K, 1)
        kappa, p = self.kappa, self.share
        across = kappa * transposed(kappa)
        v = (information / self.per_share[:, :, None])[:, None]
        x = across * inverted(np.eye(information.shape[-1]) + across * v)
        self.x = x  # X_a
        self.left = (p * x / transposed(kappa)).sum(axis=1)
        own = (p * x / across).sum(axis=1)
        self.solution = matmul(inverted(own), transposed(self.left))

    @cached_property
    def covariance(self) -> FloatArray:
        """Z(Y(V) − Y(0))Z, what the block takes of the norms of neurons, (B, K, K) (eq. 149)."""
        p, kappa, root = self.share, self.kappa, self.root
        y = 2.0 * ((p * self.x).sum(axis=1) - matmul(self.left, self.solution))
        mean = (p * kappa).sum(axis=1)[..., 0]
        free = 2.0 * ((p * kappa**2).sum(axis=1)[..., 0] - mean**2)
        return np.asarray(root[:, :, None] * (y - diagonals(free)) * root[:, None, :])

    def force(self, dual: FloatArray) -> FloatArray:
        """Minus the gradient of x̃ᵀCx̃ by the information, (B, K, K), for x̃ of the norms (B, K)."""
        z = self.root * dual
        rest = z[:, None] - matmul(self.solution, z[:, :, None])[:, None, :, 0] / self.kappa[..., 0]
        moved = matmul(self.x, rest[..., None])[..., 0]  # (B, a, K)
        weighted = (2.0 * self.share[..., 0] / self.per_share[..., None]) * moved
        return matmul(transposed(weighted), moved)


class Parts(NamedTuple):
    """B_0 … B_3 of one field: its columns are Σ_b h_b(s)B_b(κ, h), each (B, 2Q, K) or 0."""

    b0: Any = 0.0
    b1: Any = 0.0
    b2: Any = 0.0
    b3: Any = 0.0


def stacked_parts(every: Sequence[Parts], like: FloatArray) -> FloatArray:
    """Columns of all fields along h_0(s) … h_3(s), (B, 4, Q, F), at nodes as in (B, Q, K)."""
    rows, count, size = like.shape
    found = np.zeros((rows, 4, count, len(every), size))
    for field, parts in enumerate(every):
        for degree, part in enumerate(parts):
            if np.ndim(part):
                found[:, degree, :, field] = part
    return found.reshape(rows, 4, count, -1)


class OwnShift(NamedTuple):
    """What a neuron's overlap with β⋆ adds to its own shift and norm: (151)."""

    plain: FloatArray  # (B, 2Q, K) x_0 + x_1γκ
    rest: FloatArray  # x_1q, along s
    towards: FloatArray  # (B, 1, K, 2) n, the direction of β⋆ in units of 𝒦^½


def own_shift(
    sigma: Nonlinearity, step: Step, seen: Averages, nodes: RadialNodes, pair: FloatArray
) -> OwnShift:
    """x_0 and x_1 for 𝒦_g, (B, K, 2, 2) (eq. 151)."""
    c, s = coefficients(sigma, 4), seen.s
    e = step.e[:, None, :]
    c1, c2, c3 = (step.target[:, i, None, None] for i in (1, 2, 3))
    kept = (step.initial_factor + step.k * step.r_moments[:, 1, None])[:, None, :]  # g0
    turned = kept + 4.0 * e * c[2] * c2
    beside = square_beside(step.d, nodes)
    s1, s2, s3 = (at_radius(s, k, step.norm[:, None, :] ** 2, beside) for k in (1, 2, 3))
    moved = 12.0 * kept * e * c[3] * c1 * beside
    constant = (36.0 * (e * c[3] * c1) ** 2 + 48.0 * kept * e * c[4] * c2) * beside
    x0 = 0.5 * s2 * constant + s[4] * moved**2 / 8.0
    x1 = s1 * 6.0 * e * c[3] * (c1 + 3.0 * c3) + 0.5 * s3 * turned * moved
    gamma, q = (part[:, None, None] for part in (step.alignment, step.across))
    towards = towards_target(pair, step.alignment, step.across)
    return OwnShift(x0 + gamma * nodes.kappa * x1, q * x1, towards)


def square_beside(d: FloatArray, nodes: RadialNodes) -> FloatArray:
    """‖x‖²/d of a sample beside the special directions, (B, 2Q, 1).

    What moves the norm of a neuron's other weights is seen by samples in proportion to it.
    """
    return 1.0 + np.sqrt(2.0 * (d[:, None, None] - 2.0)) / d[:, None, None] * nodes.h


def at_radius(s: list[FloatArray], k: int, v: FloatArray, beside: FloatArray) -> FloatArray:
    """s_k at samples with the square `beside` of `square_beside`, to first order."""
    return s[k] + 0.5 * s[k + 2] * v * (beside - 1.0)


def towards_target(pair: FloatArray, alignment: FloatArray, across: FloatArray) -> FloatArray:
    """n of (151), (B, 1, K, 2): 𝒦^{-½}(γ, q)."""
    values, vectors = np.linalg.eigh(pair[:, None])
    root = np.einsum("...ij,...j,...kj->...ik", vectors, values**-0.5, vectors)
    towards = np.stack([alignment, across], axis=1)[:, None, None, :]
    return np.asarray(np.einsum("...ij,...j->...i", root, towards))


class FieldColumns:
    """Columns of the fields A, τ, ψ, Δ and of degrees 2 and 3 (eqs. 140, 141, 142, 150)."""

    def __init__(
        self,
        d: FloatArray,
        norm: FloatArray,
        seen: Averages,
        nodes: RadialNodes,
        pair: FloatArray,
        own: OwnShift,
    ) -> None:
        """For d (B,), ρ_g (B, K) and 𝒦_g, (B, K, 2, 2), in `pair`."""
        self.s = seen.s
        self.k, self.h = nodes
        self.d, self.v = d[:, None, None], norm[:, None, :] ** 2
        self.along, self.mixed, self.across = (
            pair[:, None, :, i, j] for i, j in ((0, 0), (0, 1), (1, 1))
        )
        inverse = np.linalg.inv(pair)
        self.inverse = self.v[..., None, None] * inverse[:, None]  # v𝒦⁻¹, (B, 1, K, 2, 2)
        self.own_norm = np.eye(2) - self.inverse  # J
        self.pair = pair[:, None]
        self.hermite = hermite_polynomials(4, self.k)
        self.radius = np.sqrt(2.0 * (self.d - 2.0)) * self.h  # of the other directions, (B, 2Q, 1)
        self.s2 = at_radius(self.s, 2, self.v, square_beside(d, nodes))
        self.plain, self.rest, self.towards = own

    def means(self) -> Parts:
        """A."""
        m1 = 0.5 * self.s[2]
        around = self.radius * self.v / self.d + (self.k**2 - 1.0) * self.along / self.d
        trace = np.einsum("...ij,...ji->...", self.own_norm, self.pair)
        shifted = m1 * trace + self.plain
        return Parts(
            self.s[0] + m1 * around + shifted / self.d,
            2.0 * m1 * self.k * self.mixed / self.d,
            math.sqrt(2.0) * m1 * self.across / self.d,
        )

    def linear(self) -> tuple[Parts, Parts]:
        """τ and ψ."""
        bent = 0.5 * self.s[3]
        far = self.d + 2.0
        radial = self.radius * self.v / far
        tau = self.k * (self.s[1] + bent * (radial + (self.k**2 - 3.0) * self.along / far))
        psi = self.s[1] + bent * (radial + (self.k**2 - 1.0) * self.along / far)
        other = bent * self.across / far
        return (
            Parts(tau, b2=math.sqrt(2.0) * self.k * other),
            Parts(b1=psi, b3=math.sqrt(6.0) * other),
        )

    def norms(self) -> Parts:
        """Δ."""
        return Parts(0.5 * self.s[2])

    def square(self) -> list[Parts]:
        """(κκ), (κs) and (ss)."""
        s2, far = self.s[2], 0.5 * self.s[4] / (self.d + 4.0)
        h, k = self.hermite, self.k
        radial = self.v * self.radius
        two, six = math.sqrt(2.0), math.sqrt(6.0)
        h2 = h[2] / two
        parts = [
            [s2 * h2 + far * (self.along * h[4] / two + h2 * radial), 0.0,
             far * h2 * two * self.across, 0.0],
            [0.0, s2 * k + far * (self.along * h[3] + k * radial), 0.0,
             far * k * six * self.across],
            [0.0, 0.0, s2 + far * (self.along * (k**2 - 1.0) + radial), 0.0],
        ]  # fmt: skip
        for part, (i, j) in zip(parts, ((0, 0), (0, 1), (1, 1)), strict=True):
            size = 1.0 if i != j else math.sqrt(0.5)
            norm = self.s2 * self.own_norm[..., i, j]
            norm = norm - s2 * self.inverse[..., i, j] * np.sqrt(2.0 / self.d) * self.h
            along = 2.0 * size * self.towards[..., i] * self.towards[..., j]
            part[0] = part[0] + size * norm + along * self.plain
            part[1] = part[1] + along * self.rest
        return [Parts(*part) for part in parts]

    def cube(self) -> list[Parts]:
        """(κκκ), (κκs), (κss) and (sss)."""
        s3, k = self.s[3], self.k
        radial = self.radius / (self.d + 2.0)
        rest = 1.0 - 3.0 / (self.d + 2.0)
        h2, h3 = self.hermite[2] / math.sqrt(2.0), self.hermite[3] / math.sqrt(6.0)
        root, two = np.sqrt(rest), math.sqrt(2.0)
        outer = 3.0 * radial / np.sqrt(6.0 * rest)
        return [
            Parts(
                s3 * (h3 * root - k * outer),
                b2=-s3 * 3.0 * k / ((self.d + 2.0) * np.sqrt(3.0 * rest)),
            ),
            Parts(b1=s3 * (h2 - radial / two)),
            Parts(b0=-s3 * k * radial / two, b2=s3 * k),
            Parts(b1=-s3 * outer, b3=s3 * root),
        ]
