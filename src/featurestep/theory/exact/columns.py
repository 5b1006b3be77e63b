"""Columns of the regression (29): what the features of every group are, given κ.

Given κ and s (the rest of the target's directions) a field contributes B_0 + Σ s_iB_1i +
Σ (s_is_k − δ_ik)B_2ik, i ≤ k, to the output. Fields are A (means), τ and ψ_1 … ψ_r (bulk directions
along β and beside it), Δ (norms) and, for rows of W0 that are not normalised, Ω (initial norms).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.targets import AlignedTarget
from ..labels import Labels, label_moments, pairs
from .classes import covariance_before_readout
from .inputs import NormProducts
from .step import Step


@dataclass(frozen=True)
class Columns:
    """Arrays at Q values of κ; fields in the order A, τ, ψ_1 … ψ_r, Δ (, Ω), K of each."""

    slope: FloatArray  # (B, Q, K) μ_g
    spread: FloatArray  # (B, Q, K) ν_g², as it enters χ
    spread_in_v2: FloatArray  # (B, Q, K) ν_g², as it enters V̂2: the same but for heavy tails
    curvature: FloatArray  # (B, Q, K) m′_g
    plain: FloatArray  # (B, Q, F) B_0
    linear: FloatArray  # (B, r, Q, F) B_1i
    square: FloatArray  # (B, P, Q, F) B_2ik, pairs i ≤ k

    def take(self, rows: object) -> Columns:
        """The same for some of the rows."""
        return Columns(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def build_columns(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> Columns:
    """Columns of all fields at the given κ (Q,) (eqs. 5, 39, 44)."""
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    mean, slope, second, spread = sigma.averages(norm, place, 2)
    curvature = 0.5 * second
    k = kappa[:, None]
    if step.is_isotropic:
        means = _plain(step, mean)
    else:
        means = _means(step, anisotropy(step), k, mean, curvature)
    tilt = np.zeros_like(mean)  # ℓ
    if step.is_full:  # a neuron's own direction in β (44)
        a = step.a[:, None, :]
        along, beside = own_direction(step)
        means[0][:] += a * along * k * slope - curvature * a**2 * (2.0 - along**2)
        means[1][:, 0] += 2.0 * k * curvature * a**2 * along * beside
        means[2][:, 0] -= curvature * (a * beside) ** 2
        tilt = 2.0 * curvature * a * beside
    fields = [means, _along(step, k * slope, k * tilt), *_across(step, slope, tilt)]
    fields.append(_plain(step, curvature))
    if step.classes is not None:
        means[0][:] += _class_bend(sigma, step, step.classes.norms, kappa)
        fields.append(_plain(step, step.shift_slope[:, None, :] * k * slope))  # (105)
    elif step.is_gaussian:
        longer, further = step.norm_slope[:, None, :], step.shift_slope[:, None, :] * k
        means[0][:] += _bend(sigma, step, kappa) / step.d[:, None, None]
        fields.append(_plain(step, longer * curvature + further * slope))
    stacked = (np.concatenate(parts, axis=-1) for parts in zip(*fields, strict=True))
    return Columns(slope, spread, spread, curvature, *stacked)


_Field = tuple[FloatArray, FloatArray, FloatArray]  # B_0, B_1 and B_2 of one field


def own_direction(step: Step) -> tuple[FloatArray, FloatArray]:
    """f_1 and f_2 of (43): the initial readout's direction along κ and s_1, (B, 1, 1)."""
    along = (step.output_slope / step.beta)[:, None, None]
    return along, (step.alignment / step.across)[:, None, None] * along


class Anisotropy(NamedTuple):
    """Variances of pre-activations of every group, K_ββ, K_βi and K_ik of (37) and (51)."""

    along: FloatArray  # (B, K)
    mixed: FloatArray  # (B, r, K)
    across: FloatArray  # (B, r, r, K)


def anisotropy(step: Step) -> Anisotropy:
    """The diagonal of (24) at Ṽ = 0."""
    rows, size = step.k.shape
    count = 1 + step.directions  # of the fields τ, ψ_1 … ψ_r
    bulk = covariance_before_readout(step).matrix[:, : count * size, : count * size]
    own = np.einsum("bigkg->bikg", bulk.reshape(rows, count, size, count, size))
    return Anisotropy(own[:, 0, 0], own[:, 0, 1:], own[:, 1:, 1:])


def _means(
    step: Step, seen: Anisotropy, k: FloatArray, mean: FloatArray, curvature: FloatArray
) -> _Field:
    """The column of A: means, and norms that depend on κ and s (eqs. 37, 51)."""
    size = curvature / step.d[:, None, None]  # (B, Q, K)
    both = pairs(step.directions)
    twice = np.array([1.0 + float(i != j) for i, j in both])[:, None, None]
    across = np.stack([seen.across[:, i, j] for i, j in both], axis=1)  # (B, P, K)
    return (
        mean + size * (k**2 - 1.0) * seen.along[:, None, :],
        2.0 * (k * size)[:, None] * seen.mixed[:, :, None, :],
        twice * size[:, None] * across[:, :, None, :],
    )


def _plain(step: Step, values: FloatArray) -> _Field:
    """A field that does not depend on s."""
    rows, count, size = values.shape
    r = step.directions
    nothing = np.zeros((rows, r, count, size)), np.zeros((rows, len(pairs(r)), count, size))
    return (values, *nothing)


def _along(step: Step, values: FloatArray, tilted: FloatArray) -> _Field:
    """τ: κ(μ + ℓs_1)."""
    field = _plain(step, values)
    field[1][:, 0] = tilted
    return field


def _across(step: Step, slope: FloatArray, tilt: FloatArray) -> list[_Field]:
    """ψ_i: s_i(μ + ℓs_1)."""
    fields = []
    for i in range(step.directions):
        field = _plain(step, tilt if i == 0 else np.zeros_like(slope))
        field[1][:, i] = slope
        field[2][:, i] = tilt  # pairs begin with (1, 1), (1, 2), …
        fields.append(field)
    return fields


def _bend(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> FloatArray:
    """∂²m/∂ω², (B, Q, K), at u_g itself, not at the shift of (43) (eq. 40b)."""
    shift = step.shift + step.a * (step.output_slope / step.beta)[:, None]
    place = shift[:, None, :] * kappa[:, None]
    higher = sigma.derivative_means(step.norm[:, None, :], place, 4)
    longer, further = step.norm_slope[:, None, :], step.shift_slope[:, None, :] * kappa[:, None]
    return np.asarray(
        0.25 * longer**2 * higher[4] + longer * further * higher[3] + further**2 * higher[2]
    )


def _class_bend(
    sigma: Nonlinearity, step: Step, norms: NormProducts, kappa: FloatArray
) -> FloatArray:
    """What the spread of w_jᵀΣ^kw_j over neurons adds to their mean, (B, Q, K) (eq. 108)."""
    higher = sigma.derivative_means(
        step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None], 4
    )
    further = step.shift_slope[:, None, :] * kappa[:, None]
    own, shared = norms.own[:, None, :], norms.shared[:, None, :]
    plain = norms.plain[:, None, None]
    bend = 0.25 * own * higher[4] + shared * further * higher[3] + plain * further**2 * higher[2]
    return np.asarray(bend / step.d[:, None, None])


def build_labels(star: Nonlinearity | AlignedTarget, step: Step, kappa: FloatArray) -> Labels:
    """Moments of the labels given κ, with the label noise: (6), (50)."""
    found = label_moments(star, step.alignment, kappa)
    return replace(found, rest=found.rest + step.noise[:, None])
