"""Blocks of coordinates beside the linear one in the resolvent, at a state: (131)–(133), (138).

A sector has coordinates of its own. Coordinates κx_i, quadratic ones with one factor along κ, carry
the same function x_i as the linear ones and are solved together with them: they are eliminated, so
that the linear block sees Ṽ1 − ṼpqX_cṼqp in place of Ṽ1 and μ − Et_c in place of μ.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray
from .dyson import inverted, matmul, transposed


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


@dataclass(frozen=True)
class SectorAt:
    """Blocks of one degree at one state: Ṽ_P = ffᵀ∘Ṽ with the factors f of block P (eq. 131)."""

    sector: Sector
    information: FloatArray  # (B, K, K) Ṽ of the sector's table

    @cached_property
    def inverse(self) -> FloatArray:
        """X_P = (I + Ṽ_P)⁻¹, (B, P, K, K)."""
        return _resolvent(self.sector.products * self.information[:, None])

    @cached_property
    def response(self) -> FloatArray:
        """Σ_P share ffᵀ∘X_P, the blocks' part of χ between √V2 t (B, K, K) (eq. 132)."""
        return np.asarray((self.sector.weight * self.inverse).sum(axis=1))

    @cached_property
    def degrees(self) -> FloatArray:
        """Σ_P dim_P[Ṽ_PX_P]_gg, (B, K) (eq. 133)."""
        own = (self.information * self.response).sum(axis=2)
        return np.asarray(self.sector.dimension[:, None] * own)

    def reply(
        self, rows: Any, relative: FloatArray, asked: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Changes of the response, (B, K, K), and of the degrees of freedom, (B, K).

        For d log V2, `relative`, and the change of Ṽ at fixed V2, `asked`.
        """
        sector = self.sector
        products, weight = sector.products[rows], sector.weight[rows]
        information, inverse = self.information[rows], self.inverse[rows]
        changed = asked + half_sums(relative) * information
        moved = (-weight * matmul(inverse, products * changed[:, None], inverse)).sum(axis=1)
        own = (changed * self.response[rows] + information * moved).sum(axis=2)
        return moved, sector.dimension[rows, None] * own


@dataclass(frozen=True)
class MixedCoordinates:
    """Coordinates κx_i: their number and their table t_c."""

    dimension: FloatArray  # (B,)
    table: FloatArray  # (B, Q, K)

    def take(self, rows: Any) -> MixedCoordinates:
        """The same for some of the rows."""
        return MixedCoordinates(self.dimension[rows], self.table[rows])


class Forms(NamedTuple):
    """Quadratic forms of tables: of μ, of every sector's and of t_c, and of μ with t_c."""

    own: FloatArray  # (B, T, K, K)
    mixed: FloatArray | None = None  # (B, K, K), rows of μ and columns of t_c

    def take(self, rows: Any) -> Forms:
        """The same for some of the rows."""
        return Forms(self.own[rows], None if self.mixed is None else self.mixed[rows])


@dataclass(frozen=True)
class MixedAt:
    """Coordinates κx_i at one state, eliminated from the linear block (eq. 138).

    The free energy has the d coordinates of the linear block and the `dimension` of these.
    """

    coordinates: MixedCoordinates
    d: FloatArray  # (B,)
    information: FloatArray  # (B, K, K) Ṽ of t_c
    cross: FloatArray  # (B, K, K) Ṽ_pq, of μ and t_c

    @cached_property
    def inverse(self) -> FloatArray:
        """X_c = (I + Ṽ)⁻¹, (B, K, K)."""
        return _resolvent(self.information)

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
        """Forms of t_c, and of μ with t_c, between √V2 in χ, for G_φφ (B, K, K)."""
        y, ratio = self.solution, self.ratio
        joint = matmul(linear, y)
        own = self.inverse + ratio * matmul(transposed(y), joint)
        return own, -2.0 * np.sqrt(ratio) * joint

    def degrees(self, linear: FloatArray) -> FloatArray:
        """Degrees of freedom, (B, K), for G_φφ."""
        y = self.solution
        taken = (y * matmul(linear, y)).sum(axis=1)
        free = (self.information * self.inverse).sum(axis=2)  # 1 − X_c, for small groups too
        return np.asarray(self.coordinates.dimension[:, None] * free - self.d[:, None] * taken)

    def seen(self, scale: FloatArray, force: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Forms of t_c, and of μ with t_c, of a form of μ − Et_c, with scale √V2 (B, K)."""
        e = np.sqrt(self.ratio) * self.solution * scale[:, None, :] / scale[:, :, None]
        joint = matmul(force, e)
        return matmul(transposed(e), joint), -2.0 * joint

    def reply(
        self,
        rows: Any,
        relative: FloatArray,
        asked: FloatArray,
        asked_cross: FloatArray,
    ) -> MixedChange:
        """Changes for d log V2, `relative`, and changes of Ṽ and Ṽ_pq at fixed V2."""
        mean = half_sums(relative)
        x, y = self.inverse[rows], self.solution[rows]
        own = asked + mean * self.information[rows]
        cross = asked_cross + mean * self.cross[rows]
        through = matmul(cross, transposed(y))
        eliminated = through + transposed(through) - matmul(y, own, transposed(y))
        return MixedChange(self, rows, eliminated, -matmul(x, own, x), matmul(cross - y @ own, x))


@dataclass(frozen=True)
class MixedChange:
    """Changes of what `MixedAt` has."""

    at: MixedAt
    rows: Any
    eliminated: FloatArray  # (B, K, K)
    inverse: FloatArray
    solution: FloatArray

    def responses(self, linear: FloatArray, moved: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Changes of the two forms, for G_φφ and its change."""
        y, ratio = self.at.solution[self.rows], self.at.ratio[self.rows]
        joint = matmul(moved, y) + matmul(linear, self.solution)
        crossed = matmul(transposed(self.solution), linear, y)
        own = self.inverse + ratio * (crossed + matmul(transposed(y), joint))
        return own, -2.0 * np.sqrt(ratio) * joint

    def degrees(self, linear: FloatArray, moved: FloatArray) -> FloatArray:
        """Change of the degrees of freedom, (B, K)."""
        y, dimension = self.at.solution[self.rows], self.at.coordinates.dimension[self.rows, None]
        taken = 2.0 * (self.solution * matmul(linear, y)).sum(axis=1)
        taken += (y * matmul(moved, y)).sum(axis=1)
        free = np.einsum("bgg->bg", self.inverse)
        return np.asarray(-dimension * free - self.at.d[self.rows, None] * taken)


def half_sums(relative: FloatArray) -> FloatArray:
    """(x_g + x_h)/2, (B, K, K): the relative change of √V2_g√V2_h."""
    return np.asarray(0.5 * (relative[:, :, None] + relative[:, None, :]))


def _resolvent(information: FloatArray) -> FloatArray:
    """(I + Ṽ)⁻¹, (…, K, K)."""
    if information.shape[-1] == 1:
        return np.asarray(1.0 / (1.0 + information))
    return inverted(np.eye(information.shape[-1]) + information)
