"""Constants of every step: shifts, norms and frames of the weights, batch by batch (161)–(165).

Step τ sees the weights of the step before through a `Frame`: group g has the shift Σ_i L_gi ê_i and
a bulk of norm ρ_g. A vector of the batch is v_f = Xᵀf/n for a function f(y, ξ); it has the
coordinates E[f u] in the frame before the step and a part outside of it, of which two have the
scalar product φE[ff°] (162).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..labels import across_alignment
from .laws import JointLaw
from .tables import SlopeTables, slope_tables

MAX_AXES = 3
_LEAST_AXIS = 1e-6  # Λ_i of an axis, relative to the largest (165)
_LEAST_MOVED = 1e-7  # Λ′_k of an axis of the moved shifts (177)


@dataclass(frozen=True)
class Frame:
    """Shifts and bulk of the weights, K groups, in Q axes ê_i.

    Then come ŝ_1 … ŝ_r, what the axes leave of the target's r directions θ = Γê + Rŝ.
    """

    shift: FloatArray  # (K, Q) L_gi
    norm2: FloatArray  # (K,) ρ_g², squared norm of the bulk
    left: FloatArray  # (K,) squared norm of the shift outside of the axes
    gamma: FloatArray  # (r, Q) Γ_ki = θ_k·ê_i
    across: FloatArray  # (r, r) R = (I − ΓΓᵀ)^½, symmetric: q for one direction
    products: FloatArray  # (K, K) tr(K_gK_h)/d
    gram: FloatArray  # (K, K) B_gh of (164), scalar products of the shifts
    on_target: FloatArray  # (K, r) scalar products of shifts and target's directions
    on_beta: FloatArray  # (K,) of shifts and β̂, the direction of the first batch's labels
    beta: FloatArray  # (Q + r,) β̂ along the members of the frame

    @property
    def axes(self) -> int:
        """Q."""
        return int(self.gamma.shape[1])

    @property
    def directions(self) -> int:
        """r."""
        return len(self.gamma)

    @property
    def target(self) -> FloatArray:
        """θ_k in the frame, (r, Q + r)."""
        return np.concatenate([self.gamma, self.across], axis=1)


def initial_frame(norm2: FloatArray, directions: int) -> Frame:
    """Initial weights with squares of norms (K,): no shift, so that ŝ_k = θ_k."""
    size = norm2.size
    return Frame(
        shift=np.zeros((size, 0)),
        norm2=norm2,
        left=np.zeros(size),
        gamma=np.zeros((directions, 0)),
        across=np.eye(directions),
        products=np.outer(norm2, norm2),
        gram=np.zeros((size, size)),
        on_target=np.zeros((size, directions)),
        on_beta=np.zeros(size),
        beta=np.zeros(directions),
    )


@dataclass(frozen=True)
class Batch:
    """One step: its samples, and what it makes of the frame before."""

    ratio: float  # φ = d/n of the batch
    law: JointLaw
    cross: FloatArray  # (M, K) y k_g of (166)
    own: FloatArray  # (M, K) y²δ_g
    axes: FloatArray  # (M, Q′) f_i: ê_i = Σ_u kept_iu u + v_{f_i} (165)
    kept: FloatArray  # (Q′, S)
    norm_on_bulk: FloatArray  # (M, K) F_g of (173)
    norm_on_noise: FloatArray  # (M, K) φe_gF^h_g
    norm_gain: FloatArray  # (K,) R′_g of (163)
    norm_variance: FloatArray  # (K,) d·Var_g (174)
    moved_axes: FloatArray  # (M, k) f′_k of (177)
    moved_parts: FloatArray  # (k, K) e_gc_gk
    moved: FloatArray  # (Q′ + r, K) e_g v′_g·a for the frame after the step (176)
    before: Frame
    after: Frame
    members: FloatArray  # (Q′ + r, S) the new frame's members along the old
    e: FloatArray  # (K,) e_g
    combine: FloatArray  # (K, Q′) C of (165)
    combine_moved: FloatArray  # (K, k) C′ of (177)
    norm_factors: FloatArray  # (2, K) factors of y and y² in (173)
    tables: SlopeTables  # at the places ξ of the law
    cut: Batch | None = None  # the batch at nodes of labels that are cut off, for T alone

    @property
    def shown(self) -> Batch:
        """The batch as T sees it."""
        return self if self.cut is None else self.cut


class _Vectors(NamedTuple):
    """Vectors Σ_u coordinates_u u + v_f, with the coordinates of v_f among them."""

    coordinates: FloatArray  # (k, S)
    functions: FloatArray  # (M, k)

    def products(self, other: _Vectors, law: JointLaw, ratio: float) -> FloatArray:
        """Scalar products in the limit, (k, l) (eq. 162)."""
        outside = law.weight[:, None] * self.functions
        return np.asarray(
            self.coordinates @ other.coordinates.T + ratio * (outside.T @ other.functions)
        )


def make_step(
    sigma: Nonlinearity,
    frame: Frame,
    law: JointLaw,
    e: FloatArray,
    ratio: float,
    share: FloatArray,
) -> Batch:
    """The step W ← W + ηG(W) on a batch of d/ratio rows, e_g = ηg/√N (eqs. 161, 166).

    `share` (K,) are the probabilities of the groups.
    """
    tables = _tables(sigma, frame, law)
    at = tables.at(law.place)
    y = law.y[:, None]
    shifted = y * at.mean * e
    shifts = _Vectors(_padded(frame) + law.overlaps(shifted).T, shifted)
    moving = y * at.mean_change
    moved = _Vectors(law.overlaps(moving).T, moving)  # v′_g
    combine, axes, kept, after = _frame(frame, law, ratio, share, shifts)
    norm = _norms(frame, law, ratio, e, at)
    norm_factors = np.stack([2.0 * e * norm.drift, e**2 * ratio])
    combine_moved, moved_parts = _moved_axes(moved, law, ratio, share)
    nodes = _at_nodes(frame, law, ratio, at, e, combine, combine_moved, norm_factors)
    rest = _rest(frame, after, axes)
    new = _Vectors(
        np.concatenate([axes.coordinates, rest.coordinates]),
        np.concatenate([axes.functions, rest.functions], axis=1),
    )
    on_beta, beta = _along_beta(frame, law, ratio, shifts, new)
    return Batch(
        ratio=ratio,
        kept=kept,
        norm_gain=norm.gain,
        norm_variance=_norm_variance(law, ratio, norm_factors, at, norm.spread),
        moved_parts=e * moved_parts,
        moved=e * new.products(moved, law, ratio),
        before=frame,
        after=Frame(
            norm2=norm.norm2,
            on_target=shifts.coordinates @ frame.target.T,
            on_beta=on_beta,
            beta=beta,
            products=trace_products(frame, law, ratio, nodes.cross, nodes.own),
            **after._asdict(),
        ),
        members=new.coordinates,
        e=e,
        combine=combine,
        combine_moved=combine_moved,
        norm_factors=norm_factors,
        tables=tables,
        **nodes._asdict(),
    )


class _Nodes(NamedTuple):
    """The fields of a batch that have a value at every node."""

    law: JointLaw
    cross: FloatArray
    own: FloatArray
    axes: FloatArray
    norm_on_bulk: FloatArray
    norm_on_noise: FloatArray
    moved_axes: FloatArray


def _tables(sigma: Nonlinearity, frame: Frame, law: JointLaw) -> SlopeTables:
    """Averages of σ′ at the places ξ of a law, (X, K) each."""
    return slope_tables(sigma, np.sqrt(frame.norm2), law.xi @ frame.shift.T)


def _at_nodes(
    frame: Frame,
    law: JointLaw,
    ratio: float,
    at: SlopeTables,
    e: FloatArray,
    combine: FloatArray,
    combine_moved: FloatArray,
    norm_factors: FloatArray,
) -> _Nodes:
    """N of (166), and the functions of vectors that the step makes of its samples."""
    y = law.y[:, None]
    on_bulk, on_noise = _norm_functions(frame, y, norm_factors, at)
    return _Nodes(
        law=law,
        cross=y * e * at.slope,
        own=(y * e) ** 2 * ratio * at.noise,
        axes=(y * at.mean * e) @ combine,
        norm_on_bulk=on_bulk,
        norm_on_noise=ratio * e * on_noise,
        moved_axes=(y * at.mean_change) @ combine_moved,
    )


def with_labels_cut_off(sigma: Nonlinearity, batch: Batch, law: JointLaw) -> Batch:
    """The batch with another law for T, whose labels end where finite samples do.

    Shifts, norms and moments remain those of the full law. E T to second order too: E[yk_g],
    E[(yk_g)²] and E[y²δ_g] are kept for every group.
    """
    frame, at = batch.before, _tables(sigma, batch.before, law).at(law.place)
    factors = batch.e, batch.combine, batch.combine_moved, batch.norm_factors
    nodes = _at_nodes(frame, law, batch.ratio, at, *factors)
    spread = []
    for each, cross in ((batch.law, batch.cross), (law, nodes.cross)):
        spread.append(np.sqrt(np.maximum(each.mean((cross - each.mean(cross)) ** 2), 0.0)))
    wider = np.where(spread[1] > 0.0, spread[0] / np.maximum(spread[1], 1e-300), 1.0)
    own = law.mean(nodes.own)
    larger = np.where(own > 0.0, batch.law.mean(batch.own) / np.maximum(own, 1e-300), 1.0)
    cross = batch.law.mean(batch.cross) + wider * (nodes.cross - law.mean(nodes.cross))
    nodes = nodes._replace(cross=cross, own=larger * nodes.own)
    return replace(batch, cut=replace(batch, **nodes._asdict()))


def _padded(frame: Frame) -> FloatArray:
    """Shifts in the whole frame, (K, S): they have no part along ŝ."""
    return np.concatenate([frame.shift, np.zeros((frame.norm2.size, frame.directions))], axis=1)


class _Axes(NamedTuple):
    """The part of a frame that the shifts decide."""

    shift: FloatArray
    left: FloatArray
    gamma: FloatArray
    across: FloatArray
    gram: FloatArray


def _along_beta(
    frame: Frame, law: JointLaw, ratio: float, shifts: _Vectors, new: _Vectors
) -> tuple[FloatArray, FloatArray]:
    """Scalar products with β̂ of the shifts (K,) and of the members of the frame (Q + r,).

    β̂ is the direction of Xᵀy of the first batch. Later batches are independent of it: their vectors
    have what their coordinates say.
    """
    if np.any(frame.beta):
        return shifts.coordinates @ frame.beta, new.coordinates @ frame.beta
    y = law.y[:, None]
    first = _Vectors(law.overlaps(y).T, y)
    size = max(float(first.products(first, law, ratio)[0, 0]), 1e-300) ** 0.5
    on_shifts, on_new = (each.products(first, law, ratio)[:, 0] / size for each in (shifts, new))
    return on_shifts, on_new


def _frame(
    frame: Frame, law: JointLaw, ratio: float, share: FloatArray, shifts: _Vectors
) -> tuple[FloatArray, _Vectors, FloatArray, _Axes]:
    """C, the axes of the shifts, and their parts along the frame before (eqs. 164, 165)."""
    gram = shifts.products(shifts, law, ratio)
    combine = _orthonormal(gram, share, MAX_AXES, _LEAST_AXIS)  # C, (K, Q)
    axes = _Vectors(combine.T @ shifts.coordinates, shifts.functions @ combine)
    shift = gram @ combine
    gamma = frame.target @ axes.coordinates.T
    values, vectors = np.linalg.eigh(gamma @ gamma.T)
    across = (vectors * across_alignment(np.sqrt(np.maximum(values, 0.0)))) @ vectors.T
    left = np.maximum(np.diag(gram) - (shift**2).sum(axis=1), 0.0)
    new = _Axes(shift, left, gamma, across, gram)
    return combine, axes, combine.T @ _padded(frame), new


def _orthonormal(gram: FloatArray, share: FloatArray, most: int, least: float) -> FloatArray:
    """C with ê_i = Σ_g C_gi b_g orthonormal, (K, Q), for a Gram matrix of vectors."""
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values[:most] > max(least * values[0], 1e-300)
    return np.asarray(root[:, None] * vectors[:, :most][:, kept] / np.sqrt(values[:most][kept]))


def _rest(frame: Frame, after: _Axes, axes: _Vectors) -> _Vectors:
    """ŝ′ = R′⁻¹(θ − Γ′ê′), in the frame before the step."""
    inverse = np.linalg.inv(after.across)
    return _Vectors(
        inverse @ (frame.target - after.gamma @ axes.coordinates),
        -axes.functions @ (inverse @ after.gamma).T,
    )


class _Norms(NamedTuple):
    drift: FloatArray  # 1 + eE[yμ]
    spread: FloatArray  # e²φE[y² Var S]
    norm2: FloatArray
    gain: FloatArray


def _norms(frame: Frame, law: JointLaw, ratio: float, e: FloatArray, at: SlopeTables) -> _Norms:
    """ρ_g² after the step and its derivative R′_g by ρ_g² before (eq. 163)."""
    y, before = law.y[:, None], frame.norm2
    drift = 1.0 + e * law.mean(y * at.slope)
    square = e**2 * ratio
    spread = square * law.mean(y**2 * at.variance)
    changed = at.square_change - 2.0 * at.mean * at.mean_change
    gain = (
        drift**2
        + 2.0 * before * drift * e * law.mean(y * at.slope_change)
        + square * law.mean(y**2 * changed)
    )
    return _Norms(drift, spread, before * drift**2 + spread, gain)


def _norm_functions(
    frame: Frame, y: FloatArray, factors: FloatArray, at: SlopeTables
) -> tuple[FloatArray, FloatArray]:
    """F_g and F^h_g, (M, K): what norms owe to the bulk before and to the noise (eq. 173)."""
    linear, quadratic = factors
    on_bulk = linear * y * at.z2_psi + quadratic * y**2 * at.z_psi2 / np.sqrt(frame.norm2)
    on_noise = linear * y**2 * at.p_psi_h + quadratic * y**3 * at.psi2_h
    return on_bulk, on_noise


def _norm_variance(
    law: JointLaw, ratio: float, factors: FloatArray, at: SlopeTables, spread: FloatArray
) -> FloatArray:
    """d·Var_g: variance of a norm that is not linear in the weights before (eq. 174)."""
    linear, quadratic = factors
    y = law.y[:, None]
    samples = (
        linear**2 * law.mean(y**2 * at.p_psi_square)
        + 2.0 * linear * quadratic * law.mean(y**3 * at.p_psi_psi2)
        + quadratic**2 * law.mean(y**4 * at.psi2_square)
    )
    return np.asarray(ratio * samples + 2.0 * spread**2)


def _moved_axes(
    moved: _Vectors, law: JointLaw, ratio: float, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """C′ (K, k) and c_gk (k, K) of the shifts that norms move (eq. 177)."""
    gram = moved.products(moved, law, ratio)
    combine = _orthonormal(gram, share, MAX_AXES, _LEAST_MOVED)
    return combine, (gram @ combine).T


def trace_products(
    frame: Frame, law: JointLaw, ratio: float, cross: FloatArray, own: FloatArray
) -> FloatArray:
    """tr(K_gK_h)/d after the step, from free cumulants of its samples (eq. 181)."""

    def cumulant(*letters: FloatArray) -> FloatArray:
        """φ^{j−1}E[l_1 ⋯ l_j] for letters of groups g (M, K, 1) or h (M, 1, K)."""
        product = law.weight[:, None, None]
        for letter in letters:
            product = product * letter
        return np.asarray(ratio ** (len(letters) - 1) * product.sum(axis=0))

    g, h = cross[:, :, None], cross[:, None, :]
    dg, dh = own[:, :, None], own[:, None, :]
    kg, kh, kgg, khh, kgh = (cumulant(*letters) for letters in ((g,), (h,), (g, g), (h, h), (g, h)))
    kggh, kghh, kgghh = cumulant(g, g, h), cumulant(g, h, h), cumulant(g, g, h, h)
    mgg, mhh, mgh = kgg + kg**2, khh + kh**2, kgh + kg * kh
    mggh = kggh + kgg * kh + 2.0 * kgh * kg + kg**2 * kh
    mghh = kghh + khh * kg + 2.0 * kgh * kh + kh**2 * kg
    mgghh = (
        kgghh
        + 2.0 * (kggh * kh + kghh * kg)
        + kgg * khh
        + kgh**2
        + kgg * kh**2
        + khh * kg**2
        + 4.0 * kgh * kg * kh
        + kg**2 * kh**2
    )
    plain = 1.0 + kg + kh + mgh  # A
    twice = 1.0 + 2.0 * (kg + kh) + mgg + mhh + 4.0 * mgh + 2.0 * (mggh + mghh) + mgghh  # AA
    kdh, kgdh, kggdh = cumulant(dh), cumulant(g, dh), cumulant(g, g, dh)
    noise = (
        kdh + 2.0 * (kgdh + kg * kdh) + (kggdh + kgg * kdh + 2.0 * kgdh * kg + kg**2 * kdh)
    )  # 𝔇_gh
    both = cumulant(dg, dh) + cumulant(dg) * kdh
    rho = frame.norm2[:, None]
    return np.asarray(
        frame.products * plain**2
        + rho * rho.T * (twice - plain**2)
        + rho * noise
        + (rho * noise).T
        + both
    )
