"""Covariances of the fields along the special directions, batch by batch (170)–(172), (175)–(179).

A row is one field of one group along one direction. Before batch τ the rows are φ_{τ−1} along the
members of the frame, and Δ_{τ−1}. Later fields are φ_{τ−1}'s response to the chain and independent
noise (168): φ̂_τ and φ_τ are added when the batch comes. A batch changes the covariance along the
frame (171), adds the vectors made of its samples (172), replaces the frame, and moves shifts by the
norms' fluctuations, with the energy that this costs (179). Every change is a linear map of rows,
independent noise, or a matrix added to the inverse covariance: the gradient of zᵀΩz runs through
the same changes backward, with vectors in the place of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ...core.types import FloatArray, IntArray
from .batches import Batch
from .chain import Chain, DenseResponses, Link, Responses, averaged

R = TypeVar("R", bound=Responses, covariant=True)


class Bulk(NamedTuple, Generic[R]):
    """Solution of the chain: its links and G, T at the nodes of every batch, Ξ and V."""

    chain: Chain
    responses: Sequence[R]
    xi: Sequence[FloatArray]  # (2K, 2K) each
    information: FloatArray  # (K, K) V


class Gradient(NamedTuple):
    """Of zᵀΩz, with respect to the bulk."""

    self_energy: list[FloatArray]  # (3K, 3K) by G on (φ_{τ−1}, φ̂_τ, φ_τ) of every batch
    information: FloatArray  # (K, K) by V


class Change:
    """What one batch does to the rows: constants of the step, without the bulk.

    Local rows are (φ_{τ−1}, φ̂_τ, φ_τ) along each of S members of the frame, and Δ_{τ−1}. The
    batch's vectors are φ_τ·v_f for the axes and for the shifts that norms move, then φ_{τ−1}·v_F
    and φ̂_τ·v_{F^h}.
    """

    def __init__(self, batches: Sequence[Batch], step: int, norm_variance: float = 0.0) -> None:
        batch = batches[step - 1]
        size: int = batch.cross.shape[1]
        self.batch, self.step, self.size = batch, step, size
        self.members: int = batch.law.count  # S
        self.norm_variance = norm_variance  # d·Var of Δ before the step, beside its rows
        self.moves = batch.moved_axes.shape[1] if step > 1 or norm_variance else 0
        self.shared = batch.axes.shape[1] + self.moves  # p functions of vectors along φ_τ
        self.count = (3 * self.members + 1) * self.size  # local rows
        self.new: int = batch.after.axes + batch.after.directions  # members after the step
        member = 3 * self.size * np.arange(self.members)[:, None]
        self.frame: IntArray = (member + np.arange(2 * self.size)).ravel()  # rows (φ_{τ−1}, φ̂_τ)
        self.to_rows = self._to_rows()
        self.to_fields = self._to_fields()

    def functions(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """f of the new vectors v_f, (p, M), which all groups share, and those of norms (2K, M)."""
        shared = np.concatenate([batch.axes.T, batch.moved_axes.T[: self.moves]])
        return shared, np.concatenate([batch.norm_on_bulk.T, batch.norm_on_noise.T])

    @property
    def norms(self) -> IntArray:
        """Rows of Δ_τ after the step."""
        return np.arange(self.size, dtype=np.intp) + self.new * self.size

    @property
    def extra(self) -> int:
        """Where Δ_{τ−1} and π_k = φ_τ·v_{f′_k} begin, after the new rows."""
        return (self.new + 1) * self.size

    def expand(self, link: Link) -> FloatArray:
        """Local rows as responses to those before the step, (count, (S + 1)K)."""
        size = self.size
        found = np.zeros((self.count, (self.members + 1) * size), dtype=link.lift.dtype)
        for u in range(self.members):
            found[3 * u * size : 3 * (u + 1) * size, u * size : (u + 1) * size] = link.lift
        found[-size:, -size:] = np.eye(size)
        return found

    def _to_rows(self) -> FloatArray:
        """Local rows and new vectors ↦ φ_τ along the new frame, Δ, then Δ_{τ−1} and π_k.

        In the place of Δ_τ stands what the batch adds to R′Δ_{τ−1}.
        """
        batch, old, axes = self.batch, self.members, self.batch.after.axes
        inverse = np.linalg.inv(batch.after.across)
        gamma = inverse @ batch.after.gamma
        kept = np.concatenate([batch.kept, inverse @ batch.before.target - gamma @ batch.kept])
        # In units of K×K identities: 3S + 1 columns of local rows, p + 2 of vectors.
        found = np.zeros((self.new + 2 + self.moves, 3 * old + 3 + self.shared))
        found[: self.new, 2 : 3 * old : 3] = kept
        vectors = 3 * old + 1
        found[:axes, vectors : vectors + axes] = np.eye(axes)
        found[axes : self.new, vectors : vectors + axes] = -gamma
        found[self.new, -2:] = 1.0
        found[self.new + 1, 3 * old] = 1.0
        found[self.new + 2 :, vectors + axes : -2] = np.eye(self.moves)
        return np.asarray(np.kron(found, np.eye(self.size)), dtype=np.float64)

    def _to_fields(self) -> FloatArray:
        """The rows after the shifts have moved: φ_τ along the frame, and Δ (eqs. 175, 176)."""
        batch, size = self.batch, self.size
        found = np.zeros((self.extra, len(self.to_rows)))
        index = np.arange(self.extra)
        found[index, index] = 1.0
        before = self.extra + index % size
        found[index, before] = np.concatenate([batch.moved.ravel(), batch.norm_gain])
        return found

    def energy(self, form: FloatArray) -> FloatArray:
        """δV on Δ_{τ−1} and π_k, for the form V_τ that φ_τ meets (eq. 178)."""
        count, size = 1 + self.moves, self.size
        found = np.zeros((count, size, count, size), dtype=form.dtype)
        for k, parts in enumerate(self.batch.moved_parts[: self.moves], 1):
            found[k, :, 0] = form * parts
            found[0, :, k] = parts[:, None] * form
            found[0, :, 0] += parts[:, None] * form * parts
        return found.reshape(count * size, count * size)


@dataclass(frozen=True)
class Stage:
    """One batch with the covariances on its way."""

    change: Change
    local: FloatArray  # Ω of the local rows
    along: FloatArray  # the same with the batch's own effect on the frame (171)
    own: FloatArray  # 𝒫 on the frame's rows (φ_{τ−1}, φ̂_τ)
    overlaps: FloatArray  # ℒ, new vectors as combinations of local rows
    energy: FloatArray  # δV
    moved: FloatArray  # Ω of the rows of `to_rows`, after (179)


def covariance(changes: Sequence[Change], bulk: Bulk[Responses]) -> tuple[FloatArray, list[Stage]]:
    """Ĉ of the fields (τ_1 … τ_Q, ψ_1 … ψ_r, Δ), and the stages on the way to it (eq. 170).

    It begins with G along each of the target's directions, and with the initial norms.
    """
    first, size = changes[0], changes[0].size
    omega = np.asarray(np.kron(np.eye(first.members + 1), bulk.chain.first))
    omega[-size:, -size:] = first.norm_variance * np.eye(size)
    stages = []
    chain = bulk.chain
    for change, link, block, responses in zip(
        changes, chain.links, chain.blocks, bulk.responses, strict=True
    ):
        omega, stage = _stage(change, link, block, responses, omega)
        stages.append(stage)
    return omega, stages


def _stage(
    change: Change, link: Link, block: FloatArray, responses: Responses, omega: FloatArray
) -> tuple[FloatArray, Stage]:
    expand = change.expand(link)
    local = expand @ omega @ expand.T
    for u in range(change.members):
        of_member = slice(3 * u * change.size, 3 * (u + 1) * change.size)
        local[of_member, of_member] += link.noise
    own = _own_effect(change, responses)
    along = _with_own_effect(local, change.frame, own)
    overlaps, noise = _new_vectors(change, block, responses)
    crossed = overlaps @ along
    whole = np.block([[along, crossed.T], [crossed, noise + crossed @ overlaps.T]])
    rows = change.to_rows @ whole @ change.to_rows.T
    norms = change.norms
    rows[norms, norms] += change.batch.norm_variance
    energy = change.energy(link.precision)
    if change.moves:
        rows = _with_energy(rows, energy, change.extra)
    found = change.to_fields @ rows @ change.to_fields.T
    return found, Stage(change, local, along, own, overlaps, energy, rows)


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
    change: Change, block: FloatArray, responses: Responses
) -> tuple[FloatArray, FloatArray]:
    """ℒ (v, local rows) of the batch's vectors v_f, and their covariance beside it (eq. 172)."""
    batch, size, p = change.batch, change.size, change.shared
    law, shared, own = batch.law, *change.functions(batch)
    response = batch.ratio * block  # φG on the local rows
    inside, after = slice(0, 2 * size), slice(2 * size, 3 * size)
    into = response[inside]  # (2K, 3K)
    functions = np.concatenate([shared, own])
    products = (functions * law.weight) @ functions.T
    width = p * size
    fields = np.concatenate([np.tile(np.arange(2 * size, 3 * size), p), np.arange(2 * size)])
    which = np.concatenate([np.repeat(np.arange(p), size), p + np.arange(2 * size)])
    noise = response[np.ix_(fields, fields)] * products[np.ix_(which, which)]
    along = np.empty((law.count, 2 * size, fields.size), dtype=noise.dtype)  # E[f u T]φG
    law, shared, own = batch.shown.law, *change.functions(batch.shown)
    # E[ff°T] of functions that all groups share; products with T for those of norms alone.
    first, second = np.triu_indices(p)
    twice = responses.averaged(shared[first] * shared[second] * law.weight)
    twice = into[:, after].T @ twice @ into[:, after]  # (pairs, K, K)
    for i, k, part in zip(first, second, twice, strict=True):
        rows, columns = slice(i * size, (i + 1) * size), slice(k * size, (k + 1) * size)
        noise[rows, columns] += part
        if i != k:
            noise[columns, rows] += part.T
    once = responses.averaged(shared[:, None] * law.first)  # (p, S, 2K, 2K)
    once = once @ into[:, after]
    along[:, :, :width] = once.transpose(1, 2, 0, 3).reshape(law.count, 2 * size, width)
    single = responses.times(into[:, inside])  # (M, 2K, 2K)
    single *= own.T[:, None, :]
    along[:, :, width:] = averaged(law.first, single)
    mixed = averaged(shared * law.weight, single)  # (p, 2K, 2K)
    crossed = (into[:, after].T @ mixed).reshape(width, 2 * size)
    noise[:width, width:] += crossed
    noise[width:, :width] += crossed.T
    weighted = into[:, inside] * (own * law.weight).T[:, None, :]
    noise[width:, width:] += weighted.reshape(-1, 2 * size).T @ single.reshape(-1, 2 * size)
    law = batch.law
    overlaps = np.zeros((fields.size, change.count), dtype=noise.dtype)
    index = np.arange(fields.size)
    for u, of_member in enumerate(law.first):
        start = 3 * u * size
        overlaps[:, start : start + 2 * size] = along[u].T
        overlaps[index, start + fields] += (functions @ of_member)[which]
    return overlaps, noise


def _with_energy(rows: FloatArray, energy: FloatArray, start: int) -> FloatArray:
    """Covariances with the energy of the shifts' motion, on rows from `start` on (eq. 179)."""
    seen = rows[start:]
    inner = np.eye(len(energy)) + seen[:, start:] @ energy
    return np.asarray(rows - rows[:, start:] @ energy @ np.linalg.solve(inner, seen))


def gradient(stages: Sequence[Stage], bulk: Bulk[DenseResponses], z: FloatArray) -> Gradient:
    """Gradient of zᵀĈz by G and V, for z (f,) of the fields (τ_1 … τ_Q, ψ_1 … ψ_r, Δ).

    At a node of batch τ with coordinates u, θ = (I + TφG)ξ + Σ_i u_i T c_i, where ξ is the part of
    z on vectors of the batch and c = Ω′z along its frame: each batch adds φE[θθᵀ]. Ξ and V enter by
    the links: by Ξ_τ = E T(G), a gradient by Ξ is one by G.
    """
    size = stages[0].change.size
    found, by_links = [], []
    for stage, block, responses in zip(
        reversed(stages), reversed(bulk.chain.blocks), reversed(bulk.responses), strict=True
    ):
        change, by_g = stage.change, np.zeros_like(block)
        z = change.to_fields.T @ z
        by_form = np.zeros_like(bulk.information)
        if change.moves:
            c = stage.moved @ z
            z[change.extra :] -= stage.energy @ c[change.extra :]
            by_form = _energy_gradient(change, c[change.extra :])
        z = change.to_rows.T @ z
        vectors, z = z[change.count :], z[: change.count]
        z = z + stage.overlaps.T @ vectors
        c = (stage.along @ z)[change.frame]
        _add_samples(change, block, responses, vectors, c, by_g)
        z[change.frame] += stage.own @ c
        link = bulk.chain.links[change.step - 1]
        by_xi, by_precision = _link_gradient(stage, link, z)
        found.append(by_g)
        by_links.append((by_xi, by_form + by_precision))
        z = change.expand(link).T @ z
    first = z[:-size].reshape(-1, size)
    found, by_links = found[::-1], by_links[::-1]
    found[0][:size, :size] += first.T @ first
    by_v = np.zeros_like(bulk.information)  # by V_{τ−1}, from τ = 1 on
    for by_g, (by_xi, by_precision), stage, link, responses in zip(
        found, by_links, stages, bulk.chain.links, bulk.responses, strict=True
    ):
        lift, after = link.lift[: 2 * size], link.lift[2 * size :]
        by_xi -= lift @ by_v @ lift.T
        by_v = by_precision + after @ by_v @ after.T
        by_g[: 2 * size, : 2 * size] += responses.change(stage.change.batch, by_xi)
    return Gradient(found, by_v)


def _link_gradient(stage: Stage, link: Link, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The gradient of zᵀΩz on the local rows by Ξ_τ (2K, 2K) and V_τ (K, K), through the link."""
    size = stage.change.size
    answer = (stage.local @ z)[:-size].reshape(-1, 3 * size)  # (S, 3K)
    c = answer[:, :size]
    response = c @ link.lift.T
    noise = answer - response
    hat, after = slice(size, 2 * size), slice(2 * size, 3 * size)
    by_xi = np.zeros((2 * size, 2 * size), dtype=z.dtype)
    by_xi[:size, hat] = c.T @ noise[:, hat]
    by_xi[hat, :size] = by_xi[:size, hat].T
    by_xi[hat, hat] = answer[:, hat].T @ answer[:, hat] - response[:, hat].T @ response[:, hat]
    own = answer[:, after].T @ answer[:, after] - response[:, after].T @ response[:, after]
    return by_xi, -own


def _energy_gradient(change: Change, c: FloatArray) -> FloatArray:
    """−∂(cᵀδVc)/∂V_τ for c on Δ_{τ−1} and π_k."""
    before, *pi = c.reshape(-1, change.size)
    own = np.zeros((change.size, change.size), dtype=c.dtype)
    for parts, along in zip(change.batch.moved_parts[: change.moves], pi, strict=True):
        moved = along + parts * before
        own += np.outer(moved, moved) - np.outer(along, along)
    return -own


def _add_samples(
    change: Change,
    block: FloatArray,
    responses: DenseResponses,
    vectors: FloatArray,
    c: FloatArray,
    by_g: FloatArray,
) -> None:
    """Add φE[θθᵀ] of a batch to the gradient by G on its local rows."""
    batch, law, size = change.batch, change.batch.law, change.size
    shared, own = change.functions(batch)
    inside = slice(0, 2 * size)
    along_axes, along_norms = vectors[: change.shared * size], vectors[change.shared * size :]
    xi = np.empty((law.y.size, 3 * size), dtype=c.dtype)
    xi[:, 2 * size :] = shared.T @ along_axes.reshape(-1, size)
    xi[:, inside] = own.T * along_norms
    shown = responses.times((batch.ratio * xi @ block[:, inside])[:, :, None])[..., 0]
    each = c.reshape(law.count, 1, -1, 1)
    along = responses.times(each)[..., 0]  # (S, M, 2K)
    weighted, directed = law.weight[:, None] * shown, (law.first[:, :, None] * along).sum(axis=0)
    second = law.second - np.eye(law.count)[:, :, None] * law.weight
    twice = np.einsum("stm,tmq->smq", second, along)
    by_g += batch.ratio * (law.weight[:, None] * xi).T @ xi
    crossed = batch.ratio * (weighted + directed).T @ xi  # (2K, 3K)
    by_g[inside] += crossed
    by_g[:, inside] += crossed.T
    width = 2 * size
    both = shown.T @ weighted + along.reshape(-1, width).T @ twice.reshape(-1, width)
    mixed = directed.T @ shown
    by_g[inside, inside] += batch.ratio * (both + mixed + mixed.T)
