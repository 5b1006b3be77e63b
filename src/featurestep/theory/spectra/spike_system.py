"""The matrix I + 𝒢C of (36) above the bulk, where C is negative: it is singular at a spike.

A continuous readout law needs few groups for the bulk, whose integrals over g are smooth, and many
for the spikes, whose columns are not. A group of no weight changes nothing for the others and sees
them through (22)–(24); two of them see each other through the bulk alone. In scaled units its
fields have covariances of order 1 with themselves, and of order √D_g√D_h with each other: they are
found by giving all such groups the same small D, and scaled to the D_g of their own V2_g (23).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.types import FloatArray, IntArray
from ..exact.dyson import (
    Blocks,
    Covariance,
    averaged,
    covariance,
    covariance_without_readout,
    matmul,
    solve_blocks,
    t_matrix,
    transposed,
)
from ..exact.fixed_point import Evaluation, Samples
from ..exact.regression import field_covariance, gram
from ..exact.step import Step

_SMALL_ROOT = 1e-5  # √|D| of groups without weight: effects of the order of its square are left out
_MAX_TRACE = 6.0  # of |V2|/N, in units of what it is far away: beyond, neurons do not test the bulk
_PASSES = 3  # through (22): what groups without weight add to Ξ is explicit, order by order
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
    is_outside: npt.NDArray[np.bool_]  # (B, K) which groups have eigenvalues further out

    @cached_property
    def _root(self) -> FloatArray:
        """L with LLᵀ = −C; C may be singular, and its fields differ in size."""
        c = field_covariance(self.samples, np.abs(self.v2), self.covariance)
        size = np.sqrt(np.maximum(np.abs(np.einsum("bff->bf", c)), 1e-300))
        values, vectors = np.linalg.eigh(c / (size[:, :, None] * size[:, None, :]))
        return np.asarray(size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

    @cached_property
    def matrix(self) -> FloatArray:
        """P − I with P = Lᵀ𝒢L, (B, F, F), which is singular at a spike (eqs. 17, 36).

        As many eigenvalues lie above z as P has above 1.
        """
        root = self._root
        matrix = matmul(transposed(root), gram(self.samples, self.mass), root)
        return 0.5 * (matrix + transposed(matrix)) - np.eye(root.shape[-1])

    @property
    def columns(self) -> FloatArray:
        """The columns BL along κ, (B, Q, F)."""
        return matmul(self.samples.columns.plain, self._root)


def groups_in_bulk(found: Evaluation, spike_samples: Samples | None) -> GroupsInBulk:
    """The groups of the bulk at real places above it, or the many given in place of them."""
    few, z = found.samples, -found.ridge.real
    rows = np.zeros(z.size, dtype=np.intp)
    step, v2, mass = few.step.take(rows), found.state.v2.real, found.mass.real
    if spike_samples is not None:
        xi = found.mapped_xi.real
        return weightless_groups(spike_samples, step, xi, few.columns.slope, v2, mass, z)
    blocks = Blocks(*(getattr(found.blocks, f.name).real for f in fields(Blocks)))
    fields_of = covariance(step, found.information.real, blocks, found.t_matrices.real)
    return GroupsInBulk(
        samples=replace(few, step=step, columns=few.columns.take(rows)),
        v2=v2,
        covariance=fields_of,
        mass=mass,
        is_outside=np.zeros(v2.shape, dtype=bool),
    )


def weightless_groups(
    many: Samples,
    few: Step,
    xi: FloatArray,
    slope: FloatArray,
    v2: FloatArray,
    mass: FloatArray,
    z: FloatArray,
) -> GroupsInBulk:
    """Many groups of no weight at places z where few with V2 < 0 and Ξ solve (22), (23)."""
    rows = np.zeros(len(z), dtype=np.intp)
    step, columns = many.step.take(rows), many.columns.take(rows)
    size, wide = few.k.shape[1], step.k.shape[1]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(few, name), getattr(step, name)], axis=1)
        for name in _GROUPWISE
    }
    both = replace(few, **joined)
    d = few.d[:, None]
    scaled = np.sqrt(-v2 / d)[:, None, :] * slope
    direction = np.concatenate([scaled, _SMALL_ROOT * columns.slope], axis=2)
    information = -matmul(transposed(direction), direction * mass[:, :, None])
    total = _among_all(xi, size, size + wide)
    inside = _index(np.arange(size), size + wide, 2)
    for _ in range(_PASSES):
        blocks = solve_blocks(both.initial_factor, total, information)
        t_matrices = t_matrix(both, blocks.coupled)
        total = averaged(both.r_weight, t_matrices)
        total[:, inside[:, None], inside] = xi
    blocks = solve_blocks(both.initial_factor, total, information)
    found = covariance(both, information, blocks, t_matrix(both, blocks.coupled))
    zeta = -np.einsum("bgh,bhg->bg", information, blocks.phi_phi)[:, size:] / _SMALL_ROOT**2
    noise = matmul(mass[:, None, :], columns.spread)[:, 0]
    free = (few.n * z)[:, None]
    own = free / (zeta + noise - free)  # V2/N by (23), in units of what it is far away
    is_outside = own > 0.0
    own = -np.where(is_outside, _MAX_TRACE, np.minimum(-own, _MAX_TRACE)) * step.neurons / free
    picked = _index(size + np.arange(wide), size + wide, 2 + few.directions)
    root = np.sqrt(-own / d) / _SMALL_ROOT
    across = np.tile(root, 2 + few.directions)
    unseen = covariance_without_readout(many.step)
    matrix = found.matrix[:, picked[:, None], picked] - unseen.matrix
    with_means = found.with_means[:, size:][:, :, picked] - unseen.with_means
    matrix = unseen.matrix + across[:, :, None] * matrix * across[:, None, :]
    with_means = unseen.with_means + root[:, :, None] * with_means * across[:, None, :]
    return GroupsInBulk(
        samples=replace(many, step=step, columns=columns),
        v2=own,
        covariance=replace(found, matrix=matrix, with_means=with_means),
        mass=mass,
        is_outside=is_outside,
    )


def _index(groups: IntArray, count: int, fields: int) -> IntArray:
    """Places of some of the groups among fields of `count` groups each."""
    return np.asarray((count * np.arange(fields)[:, None] + groups).ravel())


def _among_all(xi: FloatArray, size: int, count: int) -> FloatArray:
    """Ξ of the first groups among all."""
    total = np.zeros((len(xi), 2 * count, 2 * count))
    inside = _index(np.arange(size), count, 2)
    total[:, inside[:, None], inside] = xi
    return total
