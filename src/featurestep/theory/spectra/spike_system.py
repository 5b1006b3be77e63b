"""The matrix I + 𝒢C of (36) above the bulk, where C is negative: it is singular at a spike.

A continuous readout law needs few groups for the bulk, whose integrals over g are smooth, and many
for the spikes, whose columns are not. A group of no weight changes nothing for the others and sees
them through (22)–(24); two of them see each other through the bulk alone. In scaled units its
fields have covariances of order 1 with themselves, and of order √D_g√D_h with each other: they are
found by giving all such groups the same small D, and scaled to the D_g of their own V2_g (23).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import (
    Blocks,
    Covariance,
    averaged,
    covariance,
    covariance_without_readout,
    matmul,
    solve_blocks,
    transposed,
)
from ..exact.fixed_point import Evaluation, Samples
from ..exact.regression import field_covariance, gram
from ..exact.sectors import Sector, SectorAt
from ..exact.step import Step

_SMALL_ROOT = 1e-4  # √n|D| of groups without weight: effects of order n|D| are left out
_MAX_TRACE = 6.0  # of |V2|/N, in units of what it is far away: beyond, neurons do not test the bulk
_PASSES = 3  # through (22): what groups without weight add to Ξ is explicit, order by order
_POWERS = np.arange(1, 5)[:, None]  # of r in T(r) of groups without weight
_GROUPWISE = (
    "neurons", "a", "e", "k", "delta", "initial_factor", "norm", "shift", "norm_on_weights",
    "norm_on_noise", "norm_variance", "norm_slope", "shift_slope",
)  # fmt: skip


@dataclass(frozen=True)
class GroupsInBulk:
    """Groups whose fields may make spikes, at B real places above the bulk."""

    samples: Samples
    v2: FloatArray  # (B, K) < 0, bounded for groups whose own eigenvalues lie further out
    covariance: Covariance
    mass: FloatArray  # (B, Q) n w/(1+χ)
    clearance: FloatArray  # (B, K) negative for groups whose own eigenvalues lie further out

    @cached_property
    def _root(self) -> FloatArray:
        """L with LLᵀ = −C; C may be singular, and its fields differ in size."""
        step, count = self.samples.step, self.samples.columns.plain.shape[2]
        return square_root(field_covariance(step, count, np.abs(self.v2), self.covariance))

    @cached_property
    def matrix(self) -> FloatArray:
        """P − I with P = Lᵀ𝒢L, (B, F, F), which is singular at a spike (eqs. 17, 36).

        As many eigenvalues lie above z as P has above 1.
        """
        return beyond_one(self._root, gram(self.samples, self.mass))

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """The columns BL, (B, Q, F), and their parts along s, (B, r, Q, F)."""
        columns = self.samples.columns
        return matmul(columns.plain, self._root), matmul(columns.linear, self._root[:, None])


def square_root(c: FloatArray) -> FloatArray:
    """L with LLᵀ = C, (B, F, F); C may be singular, and its fields differ in size."""
    size = np.sqrt(np.maximum(np.abs(np.einsum("bff->bf", c)), 1e-300))
    values, vectors = np.linalg.eigh(c / (size[:, :, None] * size[:, None, :]))
    return np.asarray(size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def beyond_one(root: FloatArray, gram_matrix: FloatArray) -> FloatArray:
    """P − I with P = Lᵀ𝒢L, (B, F, F), symmetric."""
    matrix = matmul(transposed(root), gram_matrix, root)
    return 0.5 * (matrix + transposed(matrix)) - np.eye(root.shape[-1])


@dataclass(frozen=True)
class SpikeGroups:
    """Many groups that stand for a law where spikes are concerned."""

    samples: Samples  # of one row

    @cached_property
    def without_readout(self) -> Covariance:
        """Covariances of their fields where there is no readout, explicitly."""
        return covariance_without_readout(self.samples.step)


def groups_in_bulk(found: Evaluation, spike_groups: SpikeGroups | None) -> GroupsInBulk:
    """The groups of the bulk at real places above it, or the many given in place of them."""
    few = found.samples
    rows = np.zeros(found.ridge.size, dtype=np.intp)
    step, v2, mass = few.step.take(rows), found.state.v2.real, found.mass.real
    t_matrices = found.t_matrices.real
    if spike_groups is not None:
        scaled = np.sqrt(-v2 / step.d[:, None])[:, None, :] * few.columns.slope
        sectors = [
            replace(each, table=np.sqrt(-v2 / each.dimension[:, None])[:, None, :] * each.table)
            for each in few.columns.sectors
        ]
        return _weightless(spike_groups, step, t_matrices, scaled, sectors, mass, -found.ridge.real)
    blocks = Blocks(*(getattr(found.blocks, f.name).real for f in fields(Blocks)))
    return GroupsInBulk(
        samples=replace(few, step=step, columns=few.columns.take(rows)),
        v2=v2,
        covariance=covariance(
            step,
            found.state.xi.real,
            blocks.whole[:, None],
            partial(averaged, matrices=t_matrices),
        ),
        mass=mass,
        clearance=np.ones(v2.shape),  # they all make the bulk
    )


def _weightless(
    many: SpikeGroups,
    few: Step,
    t_few: FloatArray,
    scaled: FloatArray,
    sectors: Sequence[Sector],
    mass: FloatArray,
    z: FloatArray,
) -> GroupsInBulk:
    """Many groups of no weight, at places z where few solve (22), (23) with V2 < 0.

    t_few: T(r) of the few, (B, M, 2K, 2K); scaled: their μ√|D|, (B, Q, K); sectors: theirs, with
    tables times √|V2/dim|; mass: n w/(1+χ).
    """
    rows = np.zeros(len(z), dtype=np.intp)
    step, columns = many.samples.step.take(rows), many.samples.columns.take(rows)
    size, wide = few.k.shape[1], step.k.shape[1]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(few, name), getattr(step, name)], axis=1)
        for name in _GROUPWISE
    }
    both = replace(few, **joined)
    small = (_SMALL_ROOT / np.sqrt(few.n))[:, None]
    direction = np.concatenate([scaled, small[:, None] * columns.slope], axis=2)
    information = -matmul(transposed(direction), direction * mass[:, :, None])
    expansion = _Expansion(few, step, t_few)
    coupled = None
    for _ in range(1 + _PASSES):
        xi = expansion.average(few.r_weight, coupled)
        blocks = solve_blocks(both.initial_factor, xi, information)
        coupled = blocks.coupled
    average = partial(expansion.average, coupled=coupled)
    found = covariance(both, xi, blocks.whole[:, None], average)
    zeta = -np.einsum("bgh,bhg->bg", information, blocks.phi_phi)[:, size:] / small**2
    zeta = zeta + _seen_by_sectors(sectors, columns.sectors, mass, small)
    noise = matmul(mass[:, None, :], columns.spread)[:, 0]
    free = (few.n * z)[:, None]
    clearance = 1.0 - (zeta + noise) / free  # −N/V2 by (23), in units of what it is far away
    own = 1.0 / np.maximum(clearance, 1.0 / _MAX_TRACE)
    own = -own * step.neurons / free
    picked = _index(size + np.arange(wide), size + wide, 2 + few.directions)
    root = np.sqrt(-own / few.d[:, None]) / small
    across = np.tile(root, 2 + few.directions)
    without_readout = many.without_readout
    matrix = found.matrix[:, picked[:, None], picked] - without_readout.matrix
    with_means = found.with_means[:, size:][:, :, picked] - without_readout.with_means
    matrix = without_readout.matrix + across[:, :, None] * matrix * across[:, None, :]
    with_means = without_readout.with_means + root[:, :, None] * with_means * across[:, None, :]
    return GroupsInBulk(
        samples=replace(many.samples, step=step, columns=columns),
        v2=own,
        covariance=replace(found, matrix=matrix, with_means=with_means),
        mass=mass,
        clearance=clearance,
    )


def _seen_by_sectors(
    few: Sequence[Sector], many: Sequence[Sector], mass: FloatArray, small: FloatArray
) -> FloatArray:
    """Σ_b (dim_b/V2_g)[Ṽ_bX_b]_gg of (133) for groups of no weight, (B, K).

    It is nE[t_b²/(1+χ)] without what the few take of it. Tables of the few (B, Q, ·) are
    scaled, and those of the many multiplied by `small`, (B, 1).
    """
    found: FloatArray = np.zeros(())
    for own, each in zip(few, many, strict=True):
        table = np.concatenate([own.table, small[:, None] * each.table], axis=2)
        factor = np.concatenate([own.factor + np.zeros((len(table), 1, 1)), each.factor], axis=2)
        joined = Sector(own.dimension, table, own.share, factor)
        at = SectorAt(joined, -matmul(transposed(table), table * mass[:, :, None]))
        freed = (at.information * at.response).sum(axis=2)[:, own.table.shape[2] :]
        found = found - freed / small**2
    return found


class _Expansion:
    """T(r) of few groups f and many groups m of no weight, to leading order in √D_m.

    By themselves the many have Γ = φ0 on p and T_0 = rA_1 + r²A_2, two numbers for each group, in
    A_1 between p and φ̂ and in A_2 on φ̂. With Γ_mm = φ0 + ΔΓ,

        T_fm = T_ff Γ_fm T_0,   T_mm = T_0 + T_0 (ΔΓ + Γ_mf T_ff Γ_fm) T_0,

    so that averages over r are those of r^n and r^n T_ff: no matrix of the many is inverted.
    """

    def __init__(self, few: Step, many: Step, t_few: FloatArray) -> None:
        self.step, self.t_few = few, t_few
        self.k, self.own = many.k, many.delta + many.phi[:, None] * many.k**2
        size, wide = few.k.shape[1], many.k.shape[1]
        self.wide, self.count = wide, size + wide
        self.inside = _index(np.arange(size), self.count, 2)
        self.outside = _index(size + np.arange(wide), self.count, 2)

    def average(self, weights: FloatArray, coupled: FloatArray | None) -> FloatArray:
        """Σ_m w_m T(r_m) of all groups for weights (B, …, M) and G on (p, φ̂): (B, …, 2C, 2C).

        Without G many and few do not meet.
        """
        powers = self.step.r.reshape(len(weights), *[1] * (weights.ndim - 1), -1) ** _POWERS
        weighted = weights[..., None, :] * powers  # (B, …, 4, M)
        moments = weighted.sum(axis=-1)
        total = np.zeros((*weights.shape[:-1], 2 * self.count, 2 * self.count))
        total[..., self.inside[:, None], self.inside] = averaged(weights, self.t_few)
        outer = self._free(moments[..., 0], moments[..., 1])
        if coupled is not None:
            across, change = (
                part.reshape(len(part), *[1] * (weights.ndim - 1), *part.shape[1:])
                for part in self._gamma(coupled)
            )  # for every moment of every weight
            products = matmul(averaged(weighted, self.t_few), across)
            further = moments[..., 1:, None, None] * change
            further += matmul(transposed(across), products[..., 1:, :, :])
            mixed = self._right(products[..., 0, :, :], products[..., 1, :, :])
            outer += self._both(*(further[..., n, :, :] for n in range(3)))
            total[..., self.inside[:, None], self.outside] = mixed
            total[..., self.outside[:, None], self.inside] = transposed(mixed)
        total[..., self.outside[:, None], self.outside] = outer
        return total

    def _gamma(self, coupled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Γ_fm and ΔΓ."""
        gamma = self.step.phi[:, None, None] * coupled
        change = gamma[:, self.outside[:, None], self.outside]
        p = np.arange(self.wide)
        change[:, p, p] -= self.step.phi[:, None]
        return gamma[:, self.inside[:, None], self.outside], change

    def _free(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """A_1 and A_2 times numbers (B, …)."""
        free = np.zeros((*first.shape, 2 * self.wide, 2 * self.wide))
        p, shape = np.arange(self.wide), (-1, *[1] * (first.ndim - 1), self.wide)
        free[..., p, self.wide + p] = first[..., None] * self.k.reshape(shape)
        free[..., self.wide + p, p] = free[..., p, self.wide + p]
        free[..., self.wide + p, self.wide + p] = second[..., None] * self.own.reshape(shape)
        return free

    def _right(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """first·A_1 + second·A_2."""
        shape = (-1, *[1] * (first.ndim - 2), self.wide)
        k, own = self.k.reshape(shape), self.own.reshape(shape)
        hat = first[..., : self.wide] * k + second[..., self.wide :] * own
        return np.concatenate([first[..., self.wide :] * k, hat], axis=-1)

    def _both(self, first: FloatArray, second: FloatArray, third: FloatArray) -> FloatArray:
        """A_1·first·A_1 + A_1·second·A_2 + A_2·second·A_1 + A_2·third·A_2."""
        left, right = self._right(first, second), self._right(second, third)
        return transposed(self._right(transposed(left), transposed(right)))


def _index(groups: IntArray, count: int, fields: int) -> IntArray:
    """Places of some of the groups among fields of `count` groups each."""
    return np.asarray((count * np.arange(fields)[:, None] + groups).ravel())
