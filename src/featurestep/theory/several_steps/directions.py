"""Covariances of the fields along the special directions, batch by batch (170)–(172), (175)–(179).

A row is one field of one group along one direction. Before batch τ the rows are the frame's members
times the fields that later batches and the readout still use, and Δ_{τ−1} of every group. A batch
changes the covariance along the frame (171), adds the vectors made of its samples (172), replaces
the frame, and moves shifts by the norms' fluctuations, with the energy that this costs (179). Every
change is a linear map of rows, independent noise, or a matrix added to the inverse covariance: the
gradient of zᵀΩz runs through the same changes backward, with vectors in the place of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from ...core.types import FloatArray, IntArray
from .batches import Batch
from .chain import DenseResponses, Responses, averaged, coupled, field

R = TypeVar("R", bound=Responses, covariant=True)


class Bulk(NamedTuple, Generic[R]):
    """Solution of the chain: G on all fields, T at the nodes of every batch, Ξ and V."""

    whole: FloatArray  # (F, F), F = (2T + 1)K
    responses: Sequence[R]
    xi: Sequence[FloatArray]  # (2K, 2K) each
    information: FloatArray  # (K, K) V


class Gradient(NamedTuple):
    """Of zᵀΩz, with respect to the bulk."""

    self_energy: FloatArray  # (F, F) by G
    information: FloatArray  # (K, K) by V


@dataclass(frozen=True)
class Rows:
    """The rows of the covariance before batch `step`; `step` = T + 1 are the readout's fields."""

    step: int
    steps: int
    size: int  # K
    members: int  # of the frame

    @cached_property
    def fields(self) -> list[int]:
        """Fields that are still used."""
        later = [self.steps + s for s in range(self.step, self.steps + 1)]
        return [*range(self.step - 1, self.steps + 1), *later]

    @cached_property
    def of_fields(self) -> IntArray:
        """Rows of G of the fields."""
        return np.concatenate([field(f, self.size) for f in self.fields])

    @property
    def width(self) -> int:
        """Rows of one member of the frame."""
        return len(self.fields) * self.size

    def at(self, member: int, which: int) -> IntArray:
        """Rows of one field along one member of the frame."""
        return member * self.width + field(self.fields.index(which), self.size)

    @property
    def norms(self) -> IntArray:
        """Rows of Δ."""
        return self.members * self.width + np.arange(self.size)

    @property
    def count(self) -> int:
        """All rows."""
        return self.members * self.width + self.size


class Change:
    """What one batch does to the rows: constants of the step, without the bulk."""

    def __init__(self, batches: Sequence[Batch], step: int, norm_variance: float = 0.0) -> None:
        steps, batch = len(batches), batches[step - 1]
        size = batch.cross.shape[1]
        self.batch, self.step, self.size = batch, step, size
        self.last = step == steps
        self.following = None if self.last else batches[step]
        self.inside = coupled(step, steps, size)
        self.old = Rows(step, steps, size, batch.law.count)
        self.new = Rows(step + 1, steps, size, batch.after.axes + batch.after.directions)
        self.norm_variance = norm_variance  # d·Var of Δ before the step, beside its rows
        moves = batch.moved_axes.shape[1] if step > 1 or norm_variance else 0
        ahead = [step] if self.last else [step, steps + step + 1]  # φ_τ, φ̂_{τ+1}
        fields = [self.new.of_fields] * batch.axes.shape[1]
        for which in ahead:
            fields += [field(which, size)] * moves
        of_norms = [field(step - 1, size), field(steps + step, size)]
        self.fields = np.concatenate([*fields, *of_norms])  # (v,) rows of G of the new vectors
        axes = batch.axes.shape[1]
        kinds = [*range(axes), *[axes + k for k in range(moves)] * len(ahead)]
        count = [len(rows) for rows in fields]
        self.kind = np.repeat(
            np.array(kinds, dtype=np.intp), count
        )  # their functions, but of norms
        self.moves, self.ahead = moves, len(ahead)
        self.to_rows = self._to_rows()
        self.to_fields = self._to_fields()

    def functions(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """f of the new vectors v_f, (p, M), which rows of G share, and those of norms (2K, M)."""
        shared = np.concatenate([batch.axes.T, batch.moved_axes.T[: self.moves]])
        return shared, np.concatenate([batch.norm_on_bulk.T, batch.norm_on_noise.T])

    @property
    def extra(self) -> int:
        """Where Δ_{τ−1}, π_k and π̂_k begin, after the new rows."""
        return self.new.count

    def pi(self, which: int, k: int) -> IntArray:
        """Rows π_k (`which` = 0) or π̂_k (1)."""
        return self.extra + field(1 + which * self.moves + k, self.size)

    def _to_rows(self) -> sparse.csr_array:
        """Old rows and new vectors ↦ new rows, then Δ_{τ−1}, π_k, π̂_k.

        In the place of Δ_τ stands what the batch adds to R′Δ_{τ−1}.
        """
        batch, old, new, size = self.batch, self.old, self.new, self.size
        axes, unit = batch.after.axes, np.eye(size)
        found = np.zeros(
            (self.extra + size * (1 + self.ahead * self.moves), old.count + len(self.fields))
        )
        vectors = old.count
        for i in range(axes):
            for f in new.fields:
                rows = new.at(i, f)
                for u in range(old.members):
                    found[np.ix_(rows, old.at(u, f))] = batch.kept[i, u] * unit
                place = vectors + i * new.width + field(new.fields.index(f), size)
                found[rows, place] = 1.0
        inverse = np.linalg.inv(batch.after.across)
        target, gamma = inverse @ batch.before.target, inverse @ batch.after.gamma
        for f in new.fields:
            for k in range(batch.after.directions):  # ŝ′
                rest = new.at(axes + k, f)
                for u, along in enumerate(target[k]):
                    found[np.ix_(rest, old.at(u, f))] += along * unit
                for i in range(axes):
                    found[rest] -= gamma[k, i] * found[new.at(i, f)]
        start = vectors + axes * new.width
        for which in range(self.ahead):
            for k in range(self.moves):
                found[self.pi(which, k), start + np.arange(size)] = 1.0
                start += size
        found[new.norms, start + np.arange(size)] = 1.0
        found[new.norms, start + size + np.arange(size)] = 1.0
        found[self.extra + np.arange(size), old.norms] = 1.0
        return sparse.csr_array(found)

    def _to_fields(self) -> sparse.csr_array:
        """The rows after the shifts have moved: φ_τ along the frame, and Δ (eqs. 175, 176)."""
        batch, new, size = self.batch, self.new, self.size
        found = np.zeros((new.count, self.to_rows.shape[0]))
        found[np.arange(new.count), np.arange(new.count)] = 1.0
        before = self.extra + np.arange(size)
        for member, moved in enumerate(batch.moved):
            found[new.at(member, self.step), before] = moved
        found[new.norms, before] = batch.norm_gain
        return sparse.csr_array(found)

    def energy(self, bulk: Bulk[Responses]) -> FloatArray:
        """δV on the rows of `to_rows`, for the form that φ_τ meets next (eq. 178)."""
        found = np.zeros((self.to_rows.shape[0],) * 2, dtype=bulk.whole.dtype)
        size = self.size
        before = self.extra + np.arange(size)
        form, passed = self._next_form(bulk)
        for k, parts in enumerate(self.batch.moved_parts[: self.moves]):
            found[np.ix_(self.pi(0, k), before)] = form * parts
            found[np.ix_(before, self.pi(0, k))] = parts[:, None] * form
            found[np.ix_(before, before)] += parts[:, None] * form * parts
            if passed is not None:
                found[np.ix_(self.pi(1, k), before)] = -passed.T * parts
                found[np.ix_(before, self.pi(1, k))] = -parts[:, None] * passed
        return found

    def _next_form(self, bulk: Bulk[Responses]) -> tuple[FloatArray, FloatArray | None]:
        """V after the last step; else −E and P of the batch that follows."""
        if self.last:
            return bulk.information, None
        following, size = bulk.xi[self.step], self.size
        return -following[:size, :size], np.eye(size) + following[:size, size:]


@dataclass(frozen=True)
class Stage:
    """One batch with the covariances on its way."""

    change: Change
    along: FloatArray  # Ω′ of the old rows, with the batch's own effect on the frame (171)
    own: FloatArray  # 𝒫 on the frame's rows (φ_{τ−1}, φ̂_τ)
    frame: IntArray  # these rows
    overlaps: FloatArray  # ℒ, new vectors as combinations of old rows
    energy: FloatArray  # δV
    moved: FloatArray  # Ω of the rows of `to_rows`, after (179)


def covariance(changes: Sequence[Change], bulk: Bulk[Responses]) -> tuple[FloatArray, list[Stage]]:
    """Ĉ of the fields (τ_1 … τ_Q, ψ_1 … ψ_r, Δ), and the stages on the way to it (eq. 170).

    It begins with G along each of the target's directions, and with the initial norms.
    """
    rows = changes[0].old
    omega = np.zeros((rows.count, rows.count), dtype=bulk.whole.dtype)
    for member in range(rows.members):
        place = slice(member * rows.width, (member + 1) * rows.width)
        omega[place, place] = bulk.whole[np.ix_(rows.of_fields, rows.of_fields)]
    omega[rows.norms, rows.norms] = changes[0].norm_variance
    stages = []
    for change in changes:
        omega, stage = _stage(change, bulk, omega)
        stages.append(stage)
    return omega, stages


def _stage(change: Change, bulk: Bulk[Responses], omega: FloatArray) -> tuple[FloatArray, Stage]:
    responses = bulk.responses[change.step - 1]
    frame = _frame_rows(change)
    own = _own_effect(change, responses)
    along = _with_own_effect(omega, frame, own)
    overlaps, noise = _new_vectors(change, bulk, responses)
    crossed = overlaps @ along
    whole = np.block([[along, crossed.T], [crossed, noise + crossed @ overlaps.T]])
    rows = change.to_rows @ whole @ change.to_rows.T
    norms = change.new.norms
    rows[norms, norms] += change.batch.norm_variance
    energy = change.energy(bulk)
    if change.moves:
        rows = _with_energy(rows, energy, change.extra)
    found = change.to_fields @ rows @ change.to_fields.T
    return found, Stage(change, along, own, frame, overlaps, energy, rows)


def _frame_rows(change: Change) -> IntArray:
    """Rows (φ_{τ−1}, φ̂_τ) along every member of the frame."""
    old, step = change.old, change.step
    both = (step - 1, old.steps + step)
    return np.concatenate([old.at(u, f) for u in range(old.members) for f in both])


def _own_effect(change: Change, responses: Responses) -> FloatArray:
    """𝒫 = E[(u_iu_k − δ_ik)T], the effect of a batch along its own special directions."""
    law = change.batch.shown.law
    second = law.second - np.eye(law.count)[:, :, None] * law.weight
    mean = responses.averaged(second).transpose(0, 2, 1, 3)
    width = law.count * mean.shape[1]
    return np.asarray(mean.reshape(width, width))


def _with_own_effect(omega: FloatArray, frame: IntArray, own: FloatArray) -> FloatArray:
    """Covariances with the batch's effect along its frame (eq. 171)."""
    across = omega[:, frame]
    inner = np.eye(frame.size) - across[frame] @ own
    return np.asarray(omega + across @ own @ np.linalg.solve(inner, across.T))


def _new_vectors(
    change: Change, bulk: Bulk[Responses], responses: Responses
) -> tuple[FloatArray, FloatArray]:
    """ℒ (v, old rows) of the batch's vectors v_f, and their covariance beside it (eq. 172)."""
    batch, old, fields = change.batch, change.old, change.fields
    law, shared, own = batch.law, *change.functions(batch)
    response = batch.ratio * bulk.whole  # φG
    functions = np.concatenate([shared, own])
    which = np.append(change.kind, len(shared) + np.arange(len(own)))  # of every vector, (v,)
    products = (functions * law.weight) @ functions.T
    noise = response[np.ix_(fields, fields)] * products[np.ix_(which, which)]
    into = response[np.ix_(change.inside, fields)]  # (2K, v)
    law, shared, own = batch.shown.law, *change.functions(batch.shown)
    # E[ff°T] of functions that many vectors share; products with T for those of norms alone.
    twice = responses.averaged(shared[:, None] * shared * law.weight)  # (p, p, 2K, 2K)
    once = responses.averaged(shared[:, None] * law.first)  # (p, S, 2K, 2K)
    single = responses.times(into[:, change.kind.size :])  # (M, 2K, 2K)
    single *= own.T[:, None, :]
    mixed = averaged(shared * law.weight, single)  # (p, 2K, 2K)
    sets = [np.flatnonzero(change.kind == k) for k in range(len(shared))]
    last = np.arange(change.kind.size, fields.size)
    along = np.empty((law.count, *into.shape), dtype=noise.dtype)  # E[f u T]φG
    for i, rows in enumerate(sets):
        for k, columns in enumerate(sets):
            noise[np.ix_(rows, columns)] += into[:, rows].T @ twice[i, k] @ into[:, columns]
        crossed = into[:, rows].T @ mixed[i]
        noise[np.ix_(rows, last)] += crossed
        noise[np.ix_(last, rows)] += crossed.T
        along[:, :, rows] = once[i] @ into[:, rows]
    along[:, :, last] = averaged(law.first, single)
    weighted = into[:, last] * (own * law.weight).T[:, None, :]
    noise[np.ix_(last, last)] += weighted.reshape(-1, last.size).T @ single.reshape(-1, last.size)
    law = batch.law
    overlaps = np.zeros((fields.size, old.count), dtype=noise.dtype)
    place = {row: i for i, row in enumerate(old.of_fields)}
    columns = np.array([place[row] for row in fields])
    inner = np.array([place[row] for row in change.inside])
    for u, first in enumerate(law.first):
        overlaps[:, u * old.width + inner] = along[u].T
        overlaps[np.arange(fields.size), u * old.width + columns] += (functions @ first)[which]
    return overlaps, noise


def _with_energy(rows: FloatArray, energy: FloatArray, start: int) -> FloatArray:
    """Covariances with the energy of the shifts' motion, on rows from `start` on (eq. 179)."""
    form, seen = energy[start:, start:], rows[start:]
    inner = np.eye(len(form)) + seen[:, start:] @ form
    return np.asarray(rows - rows[:, start:] @ form @ np.linalg.solve(inner, seen))


def gradient(stages: Sequence[Stage], bulk: Bulk[DenseResponses], z: FloatArray) -> Gradient:
    """Gradient of zᵀĈz by G and V, for z (f,) of the fields (τ_1 … τ_Q, ψ_1 … ψ_r, Δ).

    At a node of batch τ with coordinates u, θ = (I + TφG)ξ + Σ_i u_i T c_i, where ξ is the part of
    z on vectors of the batch and c = Ω′z along its frame: each batch adds φE[θθᵀ].
    """
    by_g = np.zeros_like(bulk.whole)
    by_v = np.zeros_like(bulk.information)
    for stage in reversed(stages):
        z = stage.change.to_fields.T @ z
        if stage.change.moves:
            c = stage.moved @ z
            z = z - stage.energy @ c
            by_v += _energy_gradient(stage, bulk, c, by_g)
        z = stage.change.to_rows.T @ z
        count = stage.change.old.count
        vectors, z = z[count:], z[:count]
        z = z + stage.overlaps.T @ vectors
        c = (stage.along @ z)[stage.frame]
        _add_samples(stage.change, bulk, vectors, c, by_g)
        z = z.copy()
        z[stage.frame] += stage.own @ c
    rows = stages[0].change.old
    first = z[: rows.members * rows.width].reshape(rows.members, rows.width)
    by_g[np.ix_(rows.of_fields, rows.of_fields)] += first.T @ first
    return Gradient(by_g, by_v)


def _energy_gradient(
    stage: Stage, bulk: Bulk[DenseResponses], c: FloatArray, by_g: FloatArray
) -> FloatArray:
    """−∂(cᵀδVc)/∂V; by Ξ of the next batch it is added to the gradient by G."""
    change, size = stage.change, stage.change.size
    before = c[change.extra + np.arange(size)]
    own, passed = np.zeros((2, size, size), dtype=c.dtype)
    for k, parts in enumerate(change.batch.moved_parts[: change.moves]):
        moved, pi = parts * before, c[change.pi(0, k)]
        own += np.outer(pi + moved, pi + moved) - np.outer(pi, pi)
        if not change.last:
            passed += np.outer(moved, c[change.pi(1, k)])
    if change.last:
        return -own
    xi = np.block([[own, passed], [passed.T, np.zeros_like(own)]])
    following = coupled(change.step + 1, change.old.steps, size)
    assert change.following is not None
    changed = bulk.responses[change.step].change(change.following, xi)
    by_g[np.ix_(following, following)] += changed
    return np.zeros_like(own)


def _add_samples(
    change: Change, bulk: Bulk[DenseResponses], vectors: FloatArray, c: FloatArray, by_g: FloatArray
) -> None:
    """Add φE[θθᵀ] of a batch to the gradient by G."""
    batch, law, inside = change.batch, change.batch.law, change.inside
    responses = bulk.responses[change.step - 1]
    shared, own = change.functions(batch)
    combine = np.zeros((len(shared), len(bulk.whole)), dtype=c.dtype)
    np.add.at(
        combine, (change.kind, change.fields[: change.kind.size]), vectors[: change.kind.size]
    )
    xi = shared.T @ combine
    last = slice(change.kind.size, None)
    xi[:, change.fields[last]] += (vectors[last, None] * own).T
    shown = responses.times((batch.ratio * xi @ bulk.whole[:, inside])[:, :, None])[..., 0]
    each = c.reshape(law.count, 1, -1, 1)
    along = responses.times(each)[..., 0]  # (S, M, 2K)
    weighted, directed = law.weight[:, None] * shown, (law.first[:, :, None] * along).sum(axis=0)
    second = law.second - np.eye(law.count)[:, :, None] * law.weight
    twice = np.einsum("stm,tmq->smq", second, along)
    by_g += batch.ratio * (law.weight[:, None] * xi).T @ xi
    crossed = batch.ratio * (weighted + directed).T @ xi  # (2K, F)
    by_g[inside] += crossed
    by_g[:, inside] += crossed.T
    width = inside.size
    both = shown.T @ weighted + along.reshape(-1, width).T @ twice.reshape(-1, width)
    mixed = directed.T @ shown
    by_g[np.ix_(inside, inside)] += batch.ratio * (both + mixed + mixed.T)
