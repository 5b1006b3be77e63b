"""Blocks of coordinates beside the linear one in the resolvent, at a state: (131)–(133), (138).

A sector has coordinates of its own. Coordinates κx_i, quadratic ones with one factor along κ, carry
the same function x_i as the linear ones and are solved together with them: they are eliminated, so
that the linear block sees Ṽ1 − ṼpqX_cṼqp in place of Ṽ1 and μ − Et_c in place of μ. X_c itself is
that of a sector with one block.

Products of coordinates see K_g ⊗ K_g, with K_g the covariances of the weights after the step
(144)–(146). Two reductions of S and S2 are enough: Gauss nodes for the bulk, and the special
directions (β, s) with one step of Lanczos' method beside them. Both need moments of S only, which
are coefficients of power series in the resolvent's trace: with 1/x = 1/g + F(g), the coefficient of
x^n in any series Ψ(g) is that of g^(n−1) in Ψ′(1 + gF)^n/n (Lagrange). Series are in the variable
(S − ⟨S⟩)/√Var S, in which nothing is large or small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .dyson import (
    covariance_without_readout,
    diagonals,
    inverted,
    matmul,
    symmetric_places,
    transposed,
)
from .step import Step, powers


@dataclass(frozen=True)
class Sector:
    """Coordinates of one degree: blocks that share a table, up to a factor for each group.

    Block P has a share of the sector's `dimension` and the table share^½·factor·table of (131).
    """

    dimension: FloatArray  # (B,)
    table: FloatArray  # (B, Q, K) t_g(κ, h)
    share: FloatArray  # (B, P)
    factor: FloatArray  # (B, P, K)

    def take(self, rows: Any) -> Sector:
        """The same for some of the rows."""
        return Sector(*(getattr(self, f.name)[rows] for f in fields(self)))

    @cached_property
    def products(self) -> FloatArray:
        """ffᵀ of every block for its factors f, (B, P, K, K)."""
        return np.asarray(self.factor[..., :, None] * self.factor[..., None, :])

    @cached_property
    def weight(self) -> FloatArray:
        """share·ffᵀ of every block, (B, P, K, K)."""
        return np.asarray(self.share[..., None, None] * self.products)


class SectorBlocks:
    """The P blocks of S sectors, one after the other."""

    def __init__(self, sectors: Sequence[Sector]) -> None:
        counts = [sector.share.shape[1] for sector in sectors]
        self.sectors = sectors
        self.of = np.repeat(np.arange(len(counts)), counts)  # (P,) each block's sector
        self.first = np.concatenate([[0], np.cumsum(counts)[:-1]])  # (S,) each sector's first block
        self.dimension = np.stack([sector.dimension for sector in sectors], axis=1)  # (B, S)
        self.products = np.concatenate([sector.products for sector in sectors], axis=1)
        self.weight = np.concatenate([sector.weight for sector in sectors], axis=1)

    def sums(self, of_blocks: FloatArray) -> FloatArray:
        """Sums over the blocks of every sector, (B, S, …) for (B, P, …)."""
        return np.asarray(np.add.reduceat(of_blocks, self.first, axis=1))


@dataclass(frozen=True)
class SectorsAt:
    """All sectors at one state: Ṽ_P = ffᵀ∘Ṽ with the factors f of block P (eq. 131)."""

    blocks: SectorBlocks
    information: FloatArray  # (B, S, K, K) Ṽ of the sectors' tables

    @cached_property
    def inverse(self) -> FloatArray:
        """X_P = (I + Ṽ_P)⁻¹, (B, P, K, K)."""
        information = self.blocks.products * self.information[:, self.blocks.of]
        return inverted(np.eye(information.shape[-1]) + information)

    @cached_property
    def response(self) -> FloatArray:
        """Σ_P share ffᵀ∘X_P, a sector's part of χ between √V2 t (B, S, K, K) (eq. 132)."""
        return self.blocks.sums(self.blocks.weight * self.inverse)

    @cached_property
    def degrees(self) -> FloatArray:
        """Σ_P dim_P[Ṽ_PX_P]_gg, summed over sectors, (B, K) (eq. 133)."""
        own = (self.information * self.response).sum(axis=3)
        return matmul(self.blocks.dimension[:, None, :], own)[:, 0]

    def take(self, rows: Any) -> SectorsAt:
        """The same for some of the states."""
        return SectorsAt(self.blocks, self.information[rows])

    def reply(self, rows: Any, changed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Changes of the responses, (B, S, K, K), and of the degrees of freedom, (B, K).

        For changes of Ṽ, (B, S, K, K).
        """
        blocks, inverse = self.blocks, self.inverse[rows]
        moved = matmul(inverse, blocks.products[rows] * changed[:, blocks.of], inverse)
        moved = -blocks.sums(blocks.weight[rows] * moved)
        own = changed * self.response[rows]
        own += self.information[rows] * moved
        return moved, matmul(blocks.dimension[rows, None, :], own.sum(axis=3))[:, 0]

    def each(self) -> tuple[SectorAt, ...]:
        """One sector at a time."""
        sectors = self.blocks.sectors
        return tuple(SectorAt(sectors[i], self.information[:, i]) for i in range(len(sectors)))


@dataclass(frozen=True)
class SectorAt:
    """One sector at one state."""

    sector: Sector
    information: FloatArray  # (B, K, K) Ṽ of the sector's table

    @cached_property
    def _alone(self) -> SectorsAt:
        return SectorsAt(SectorBlocks([self.sector]), self.information[:, None])

    @property
    def inverse(self) -> FloatArray:
        """X_P of (131), (B, P, K, K)."""
        return self._alone.inverse

    @property
    def response(self) -> FloatArray:
        """The sector's part of χ of (132), (B, K, K)."""
        return np.asarray(self._alone.response[:, 0])


@dataclass(frozen=True)
class MixedCoordinates:
    """Coordinates κx_i: their number and their table t_c."""

    dimension: FloatArray  # (B,)
    table: FloatArray  # (B, Q, K)

    def take(self, rows: Any) -> MixedCoordinates:
        """The same for some of the rows."""
        return MixedCoordinates(self.dimension[rows], self.table[rows])

    @property
    def sector(self) -> Sector:
        """What they would be without the linear ones: a sector of one block."""
        rows, _, size = self.table.shape
        one = np.ones((rows, 1, size))
        return Sector(self.dimension, self.table, one[:, :, 0], one)


class Forms(NamedTuple):
    """Quadratic forms of tables: of μ, of every sector's and of t_c, and of μ with t_c."""

    own: FloatArray  # (B, T, K, K)
    mixed: FloatArray | None = None  # (B, K, K), rows of μ and columns of t_c

    def take(self, rows: Any) -> Forms:
        """The same for some of the rows."""
        return Forms(self.own[rows], None if self.mixed is None else self.mixed[rows])


@dataclass(frozen=True)
class FormLayout:
    """Forms of T tables of K groups as rows of m numbers: elements g ≤ h, then all mixed ones."""

    tables: int
    size: int
    first: IntArray  # (m,) groups g and h of every element
    second: IntArray
    table: IntArray  # (m,) whose it is; T for mixed ones
    twice: FloatArray  # (m,) 2 for elements that stand for two, else 1

    @cached_property
    def _whole(self) -> IntArray:
        """Where the elements of all whole forms are in a row."""
        count = self.size * (self.size + 1) // 2
        return np.add.outer(count * np.arange(self.tables), symmetric_places(self.size)).ravel()

    @cached_property
    def _upper(self) -> IntArray:
        """Where the elements of a row are among those of all whole forms."""
        own = self.table < self.tables
        return ((self.table * self.size + self.first) * self.size + self.second)[own]

    def pairs(self, values: FloatArray) -> FloatArray:
        """x_gx_h of every element, (B, m), for x (B, K)."""
        return np.asarray(values[:, self.first] * values[:, self.second])

    def forms(self, flat: FloatArray) -> Forms:
        """The forms of rows, (B, m)."""
        rows, size, end = len(flat), self.size, self._upper.size
        whole = flat.take(self._whole, axis=1).reshape(rows, self.tables, size, size)
        if flat.shape[1] == end:
            return Forms(whole)
        return Forms(whole, flat[:, end:].reshape(rows, size, size))

    def flat(self, forms: Forms) -> FloatArray:
        """The rows of forms, (B, m)."""
        rows = len(forms.own)
        own = forms.own.reshape(rows, -1).take(self._upper, axis=1)
        if forms.mixed is None:
            return own
        return np.concatenate([own, forms.mixed.reshape(rows, -1)], axis=1)


@lru_cache(maxsize=64)
def form_layout(tables: int, size: int, mixed: bool) -> FormLayout:
    """The layout of forms of so many tables, with `mixed` ones of the first and the last."""
    first, second = np.triu_indices(size)
    twice = np.where(first == second, 1.0, 2.0)
    table = np.repeat(np.arange(tables), first.size)
    first, second, twice = (np.tile(each, tables) for each in (first, second, twice))
    if mixed:
        g, h = np.divmod(np.arange(size**2), size)
        first, second = np.concatenate([first, g]), np.concatenate([second, h])
        twice = np.concatenate([twice, np.ones(g.size)])
        table = np.concatenate([table, np.full(g.size, tables)])
    return FormLayout(tables, size, first, second, table, twice)


@dataclass(frozen=True)
class MixedAt:
    """Coordinates κx_i at one state, eliminated from the linear block (eq. 138).

    What they would have without the linear ones is in `SectorsAt`. In χ the linear block has d
    coordinates, each beside one of these; in V2 only the `dimension` of these are counted. So (133)
    is not the gradient of a free energy: where that would have d, it has d − 1. The adjoint of what
    is left out is a change of the identity in X_c by (d − `dimension`)/d (`MixedChange`).
    """

    coordinates: MixedCoordinates
    d: FloatArray  # (B,)
    inverse: FloatArray  # (B, K, K) X_c
    cross: FloatArray  # (B, K, K) Ṽ_pq, of μ and t_c

    @cached_property
    def solution(self) -> FloatArray:
        """Y = Ṽ_pqX_c, (B, K, K)."""
        return matmul(self.cross, self.inverse)

    @cached_property
    def eliminated(self) -> FloatArray:
        """Ṽ_pqX_cṼ_qp, what the linear block loses, (B, K, K)."""
        return matmul(self.solution, transposed(self.cross))

    @property
    def ratio(self) -> FloatArray:
        """d over the number of these coordinates, (B, 1, 1)."""
        return np.asarray((self.d / self.coordinates.dimension)[:, None, None])

    def responses(self, linear: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the form of t_c has beside X_c, and that of μ with t_c, for G_φφ (B, K, K)."""
        y, ratio = self.solution, self.ratio
        joint = matmul(linear, y)
        return ratio * matmul(transposed(y), joint), -2.0 * np.sqrt(ratio) * joint

    def taken(self, linear: FloatArray) -> FloatArray:
        """Degrees of freedom that the linear block takes, (B, K), for G_φφ."""
        return np.asarray(self.coordinates.dimension[:, None] * self.own(linear))

    def own(self, linear: FloatArray) -> FloatArray:
        """Diagonal of YᵀG_φφY, (B, K)."""
        return np.asarray((self.solution * matmul(linear, self.solution)).sum(axis=1))

    def seen(self, scale: FloatArray, force: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Forms of t_c, and of μ with t_c, of a form of μ − Et_c, with scale √V2 (B, K)."""
        e = np.sqrt(self.ratio) * self.solution * scale[:, None, :] / scale[:, :, None]
        joint = matmul(force, e)
        return matmul(transposed(e), joint), -2.0 * joint

    def reply(
        self, rows: Any, own: FloatArray, cross: FloatArray, relative: FloatArray
    ) -> MixedChange:
        """Changes for those of Ṽ and of Ṽ_pq, (B, K, K), in the adjoint equations.

        There d log V2, `relative` (B, K), multiplies the gradient of the d − 1 in place of d.
        """
        x, y = self.inverse[rows], self.solution[rows]
        uncounted = relative * (1.0 - self.coordinates.dimension / self.d)[rows, None]
        own = own + diagonals(uncounted)
        through = matmul(cross, transposed(y))
        eliminated = through + transposed(through) - matmul(y, own, transposed(y))
        return MixedChange(self, rows, uncounted, eliminated, matmul(cross - matmul(y, own), x))


@dataclass(frozen=True)
class MixedChange:
    """Changes of what `MixedAt` has."""

    at: MixedAt
    rows: Any
    uncounted: FloatArray  # (B, K), of the identity in X_c
    eliminated: FloatArray  # (B, K, K)
    solution: FloatArray

    def responses(self, linear: FloatArray, moved: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Changes of the two forms, for G_φφ and its change."""
        y, ratio = self.at.solution[self.rows], self.at.ratio[self.rows]
        joint = matmul(moved, y) + matmul(linear, self.solution)
        crossed = matmul(transposed(self.solution), linear, y)
        own = ratio * (crossed + matmul(transposed(y), joint))
        return own, -2.0 * np.sqrt(ratio) * joint

    def taken(self, linear: FloatArray, moved: FloatArray) -> FloatArray:
        """Change of the degrees of freedom that the linear block takes, (B, K)."""
        y = self.at.solution[self.rows]
        joint = matmul(linear, y)
        own = ((2.0 * self.solution + self.uncounted[:, None] * y) * joint).sum(axis=1)
        own += (y * matmul(moved, y)).sum(axis=1)
        return np.asarray(self.at.d[self.rows, None] * own)


def half_sums(relative: FloatArray) -> FloatArray:
    """(x_g + x_h)/2, (B, K, K): the relative change of √V2_g√V2_h."""
    return np.asarray(0.5 * (relative[:, :, None] + relative[:, None, :]))


NODES = 4  # of the bulk
_LENGTH = 2 * NODES  # of the series
_SMALLEST = 1e-12
_ORDER = np.arange(_LENGTH)
_BEFORE = (  # n − j and whether it is not negative, (n, j)
    np.maximum(_ORDER[:, None] - _ORDER, 0),
    np.tri(_LENGTH),
)


class WeightCovariance(NamedTuple):
    """K_g at nodes of the bulk, and on the special directions; the first two are (β, s)."""

    share: FloatArray  # (B, a) p_a
    bulk: FloatArray  # (B, a, K) K_ga
    special: FloatArray  # (B, K, m, m)


def weight_covariance(step: Step) -> WeightCovariance:
    """Both reductions for every group."""
    series = _Series(step)
    return WeightCovariance(*_bulk(step, series), _special(step, series))


def bulk_covariance(step: Step) -> tuple[FloatArray, FloatArray]:
    """p_a, (B, a), and K_ga, (B, a, K), at nodes of the bulk."""
    return _bulk(step, _Series(step))


def _bulk(step: Step, series: _Series) -> tuple[FloatArray, FloatArray]:
    place, share = _gauss_nodes(series.trace)
    node = series.mean[:, None] + series.size[:, None] * place  # λ_a of S, or of S2
    a, k, delta = (x[:, None, :] for x in (step.initial_factor, step.k, step.delta))
    if series.power == 2:
        return share, a**2 + delta * np.maximum(node, 0.0)[:, :, None]
    beside = np.maximum(_on_nodes(place, share, series.with_square), 0.0)
    return share, (a + k * node[:, :, None]) ** 2 + delta * beside[:, :, None]


def pair_covariance(step: Step) -> FloatArray:
    """K_ββ, K_βs and K_ss of (37), the diagonal of (24) at Ṽ = 0: (B, K, 1 + r, 1 + r)."""
    rows, size = step.k.shape
    count = 1 + step.directions  # of the fields τ, ψ_1 … ψ_r
    bulk = covariance_without_readout(step).matrix[:, : count * size, : count * size]
    own = np.einsum("bigkg->bgik", bulk.reshape(rows, count, size, count, size))
    return np.asarray(own)


class _SeriesMoments:
    """Moments of what has a series in g, in units of the spread of S; B of them."""

    def __init__(self, plain: FloatArray, mean: FloatArray, size: FloatArray) -> None:
        """Of S with F_0,1 in `plain` (B, L) in units of `size` (B,), and with this mean."""
        self.mean, self.size = mean, size
        shifted = plain.copy()
        shifted[:, 0] -= mean
        base = _one_plus(shifted / size[:, None])
        times, of_base = _multiplication(base), [base]
        for _ in range(_LENGTH - 1):
            of_base.append(matmul(of_base[-1][:, None], times)[:, 0])
        # Coefficients n − 1 − j of the n-th power, (B, n, j)
        self.powers = np.stack(of_base, axis=1)[:, _ORDER[:, None], _BEFORE[0]] * _BEFORE[1]
        linear = np.zeros_like(plain)
        linear[:, 1] = 1.0
        self.trace = self._moments(linear, _LENGTH)  # ⟨S^p⟩, p = 0 … 7

    def _moments(self, series: FloatArray, count: int) -> FloatArray:
        """Coefficients of x, x², … in a series in g without constant term, (B, count)."""
        slope = series[:, 1:] * np.arange(1, _LENGTH)
        found = matmul(self.powers[:, :count, :-1], slope[:, :, None])[:, :, 0]
        return found / np.arange(1, count + 1)


class SampleSeries(_SeriesMoments):
    """Moments of S = Xᵀdiag(s)X/n for any law of samples and their letters s, as in (144)."""

    def __init__(self, ratio: float, weight: FloatArray, letters: FloatArray) -> None:
        """For d/n, probabilities (M,) and s (M,)."""
        mean = weight @ letters
        size = np.sqrt(max(ratio * float(weight @ letters**2), 1e-300))
        # φ^m s^m in units of the spread, (M, L), times probabilities
        self.steps = weight[:, None] * (ratio * letters[:, None] / size) ** _ORDER
        self.letters, self.ratio = letters, ratio
        super().__init__((letters @ self.steps)[None], np.array([mean]), np.array([size]))

    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Places λ_a and p_a (a,) of (145)."""
        place, share = _gauss_nodes(self.trace)
        return self.mean + self.size * place[0], share[0]

    def on_nodes(self, own: FloatArray) -> FloatArray:
        """What Xᵀdiag(own)X/n has there, (a, K), for values of samples (M, K)."""
        series = _shifted(own.T @ self.steps)
        place, share = _gauss_nodes(self.trace)
        moments = self._moments(series, NODES)
        place, share = (np.repeat(part, len(moments), axis=0) for part in (place, share))
        return _on_nodes(place, share, moments).T

    def on_vectors(self, u: tuple[FloatArray, FloatArray], kept: FloatArray, f: FloatArray) -> Any:
        """⟨a|S^p|b⟩, p = 0 … 3, (4, v, v), for vectors Σ_u kept_u u + v_f.

        u: values (M, …) of E[u_i ·] and E[u_iu_k ·] over the probabilities; f (M, v).
        """
        first, second = u
        scale = (self.ratio * self.letters[:, None] / float(self.size[0])) ** _ORDER  # (M, L)
        plain = self.letters @ self.steps
        across = np.einsum("uvm,ml->luv", second, self.letters[:, None] * scale)
        a = (plain[:, None, None] * np.eye(len(first)) - across) / float(self.size[0])
        h = [np.eye(len(first))]  # H/g
        for n in range(1, _LENGTH):
            h.append(-sum((a[k] @ h[n - 1 - k] for k in range(n)), np.zeros_like(h[0])))
        to_u = np.einsum("mi,um,ml->liu", f, first, scale)
        to_u[0] += kept
        own = np.einsum("mi,mk,ml->lik", f, f, self.steps) * self.ratio
        found = [own[n] for n in range(_LENGTH)]
        for n in range(_LENGTH):
            for i in range(n + 1):
                for k in range(n + 1 - i):
                    found[n] = found[n] + to_u[i] @ h[k] @ to_u[n - i - k].T
        count = f.shape[1]
        series = _shifted(np.stack(found).reshape(_LENGTH, -1).T)
        return self._moments(series, 4).T.reshape(4, count, count)


class _Series(_SeriesMoments):
    """Moments of S (power 1), or of S2 (power 2) if c_2 = 0, in units of their spread (eq. 144)."""

    def __init__(self, step: Step) -> None:
        power = 1 if np.any(step.k) else 2
        self.step, self.power = step, power
        laws = np.stack([step.r_weight, step.r_first[:, 0], step.r_second[:, 0, 0]], axis=1)
        of_r = powers(step.r, power * _LENGTH + 3)
        self.averages = np.einsum("bfm,bjm->bfj", laws, of_r)  # E[t^f r^j]
        variance = step.phi * self.averages[:, 0, 2 * power]
        self.size = np.sqrt(np.maximum(variance, 1e-300))
        plain, along = self._averaged(0, power), self._averaged(2, power)
        super().__init__(plain, self.averages[:, 0, power], self.size)
        self.special = _shifted(_inverse(_one_plus((plain - along) / self.size[:, None])))  # H
        self.overlap = self._averaged(1, 1)
        self.second = self._averaged(0, 2)
        self.with_square = self._moments(_shifted(self.second), NODES)  # ⟨S^pS2⟩

    def _averaged(self, along: int, order: int) -> FloatArray:
        """F of (144) in g: φ0^m E[t^b r^{pm + j}] over the size^m."""
        m = np.arange(_LENGTH)
        scale = (self.step.phi / self.size)[:, None] ** m
        return np.asarray(scale * self.averages[:, along, self.power * m + order])

    def on_pair(self, count: int) -> FloatArray:
        """⟨·|S^p|·⟩ on (β/‖β‖, s), p = 0 … count − 1: (B, count, 2, 2)."""
        phi = self.step.phi[:, None]
        mixed = _product(self.overlap, self.special)
        own = phi * _shifted(self.second) + _product(self.overlap, mixed)
        parts = (self._moments(part, count) for part in (own, mixed, self.special))
        return on_frame(self.step, *parts)


def on_frame(step: Step, own: FloatArray, mixed: FloatArray, star: FloatArray) -> FloatArray:
    """⟨β|·|β⟩, ⟨β|·|β⋆⟩ and ⟨β⋆|·|β⋆⟩, (B, …), on the orthonormal pair (β/‖β‖, s)."""
    shape = (-1, *[1] * (own.ndim - 1))
    beta, gamma, q = (x.reshape(shape) for x in (step.beta, step.alignment, step.across))
    own, mixed = own / beta**2, mixed / beta
    cross = (mixed - gamma * own) / q
    rest = (star - 2.0 * gamma * mixed + gamma**2 * own) / q**2
    return np.stack([np.stack([own, cross], axis=-1), np.stack([cross, rest], axis=-1)], axis=-2)


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Of two power series (B, L), cut off."""
    return matmul(a[:, None], _multiplication(b))[:, 0]


def _multiplication(b: FloatArray) -> FloatArray:
    """The matrices (B, L, L) that multiply a power series, a row, by the series b."""
    return np.asarray(np.swapaxes(b[:, _BEFORE[0]] * _BEFORE[1], 1, 2))


def _inverse(a: FloatArray) -> FloatArray:
    """1/a for a power series that begins with 1."""
    found = np.zeros_like(a)
    found[:, 0] = 1.0
    for i in range(1, a.shape[-1]):
        found[:, i] = -(a[:, 1 : i + 1] * found[:, i - 1 :: -1][:, :i]).sum(axis=1)
    return found


def _shifted(a: FloatArray) -> FloatArray:
    """g times a power series in g."""
    return np.concatenate([np.zeros((len(a), 1)), a[:, :-1]], axis=1)


def _one_plus(a: FloatArray) -> FloatArray:
    """1 + g times a power series in g."""
    found = _shifted(a)
    found[:, 0] = 1.0
    return found


def _gauss_nodes(moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (B, 4) of the Gauss rule of moments (B, 8) (eq. 145).

    Chebyshev's algorithm for the recurrence of orthogonal polynomials, whose matrix has the nodes
    for eigenvalues.
    """
    above, row = np.zeros_like(moments), moments
    alpha: list[FloatArray] = [moments[:, 1]]
    beta: list[FloatArray] = []
    for k in range(1, NODES):
        last = row
        lower = beta[-1] if beta else np.zeros(len(moments))
        row = np.zeros_like(moments)
        inside = slice(k, 2 * NODES - k)
        row[:, inside] = (
            last[:, k + 1 : 2 * NODES - k + 1]
            - alpha[-1][:, None] * last[:, inside]
            - lower[:, None] * above[:, inside]
        )
        above = last
        own = np.maximum(row[:, k], _SMALLEST)
        alpha.append(row[:, k + 1] / own - last[:, k] / np.maximum(last[:, k - 1], _SMALLEST))
        beta.append(own / np.maximum(last[:, k - 1], _SMALLEST))
    matrix = diagonals(np.stack(alpha, axis=1))
    index = np.arange(NODES - 1)
    matrix[:, index, index + 1] = matrix[:, index + 1, index] = np.sqrt(np.stack(beta, axis=1))
    place, vectors = np.linalg.eigh(matrix)
    return place, vectors[:, 0] ** 2


def _on_nodes(place: FloatArray, share: FloatArray, moments: FloatArray) -> FloatArray:
    """f_a with Σ p_af_aλ_a^p = moments, (B, 4), of (145)."""
    powers = np.swapaxes(place[:, :, None] ** np.arange(NODES), 1, 2)
    weighted = np.linalg.solve(powers, moments[:, :, None])[:, :, 0]
    return np.asarray(weighted / np.maximum(share, _SMALLEST))


def lanczos_corner(moments: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The blocks of S_4 of (146), from M_p, p = 0 … 3, (4, …, 2, 2)."""
    _, m1, m2, m3 = moments
    values, vectors = np.linalg.eigh(m2 - matmul(m1, m1))
    root = np.sqrt(np.maximum(values, _SMALLEST))[..., None, :]
    b = matmul(vectors * root, np.swapaxes(vectors, -1, -2))
    b_inverse = matmul(vectors / root, np.swapaxes(vectors, -1, -2))
    inner = m3 - matmul(m1, m2) - matmul(m2, m1) + matmul(m1, m1, m1)
    return m1, b, matmul(b_inverse, inner, b_inverse)


def _special(step: Step, series: _Series) -> FloatArray:
    """K_g on (β, s) and on what S makes of them, (B, K, 4, 4) (eq. 146).

    For `full`, whose β contains the direction of the initial readout, on the pair alone.
    """
    if step.is_full:
        return pair_covariance(step)
    m1, b, corner = lanczos_corner(np.moveaxis(series.on_pair(4), 1, 0))
    s = np.concatenate(
        [np.concatenate([m1, b], axis=2), np.concatenate([b, corner], axis=2)], axis=1
    )
    s = series.size[:, None, None] * s + series.mean[:, None, None] * np.eye(4)
    a, k, delta = (x[:, :, None, None] for x in (step.initial_factor, step.k, step.delta))
    if series.power == 2:
        return np.asarray(a**2 * np.eye(4) + delta * s[:, None])
    square = np.zeros_like(s)
    square[:, :2, :2] = _square_on_pair(step, series.averages)
    square[:, 2, 2] = square[:, 3, 3] = series.averages[:, 0, 2]
    moved = a * np.eye(4) + k * s[:, None]
    return np.asarray(matmul(moved, moved) + delta * square[:, None])


def _square_on_pair(step: Step, averages: FloatArray) -> FloatArray:
    """S2 on (β, s), of (146), (B, 2, 2)."""
    phi, c = step.phi, step.r_overlaps[:, 0, 1]
    star, cross = averages[:, 2, 2], averages[:, 1, 3]  # E[t²r²], E[tr³]
    b2, b4 = averages[:, 0, 2], averages[:, 0, 4]
    mixed = c * star + phi * cross
    own = c**2 * star + phi * b2**2 + 2.0 * phi * c * cross + phi**2 * b4
    return on_frame(step, own, mixed, star)
