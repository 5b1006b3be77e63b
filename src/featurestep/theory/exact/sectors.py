"""Blocks of coordinates beside the linear one in the resolvent, at a state: (131)–(133), (138).

A sector has coordinates of its own. Coordinates κx_i, quadratic ones with one factor along κ, carry
the same function x_i as the linear ones and are solved together with them: they are eliminated, so
that the linear block sees Ṽ1 − ṼpqX_cṼqp in place of Ṽ1 and μ − Et_c in place of μ. X_c itself is
that of a sector with one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .dyson import diagonals, inverted, matmul, symmetric_places, transposed


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
