"""What a sample shows of every group of neurons, given κ: columns of the regression (29).

Given κ and s (the rest of the target's direction) a field contributes B_0 + sB_1 + (s² − 1)B_2 to
the output. Fields are A (means), τ and ψ (bulk directions along β and beside it), Δ (norms) and,
for rows of W0 that are not normalised, Ω (their initial norms).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...functions.nonlinearity import Nonlinearity
from ...types import FloatArray
from ..moments import target_moments
from .finite import Anisotropy
from .step import Step


@dataclass(frozen=True)
class Columns:
    """Arrays at Q values of κ; fields in the order A, τ, ψ, Δ (, Ω), K of each."""

    slope: FloatArray  # (B, Q, K) μ_g
    spread: FloatArray  # (B, Q, K) ν_g²
    curvature: FloatArray  # (B, Q, K) m′_g
    plain: FloatArray  # (B, Q, F) B_0
    linear: FloatArray  # (B, Q, F) B_1
    square: FloatArray  # (B, Q, F) B_2

    def take(self, rows: object) -> Columns:
        """The same for some of the rows."""
        return Columns(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Labels:
    """Moments of y given κ: parts along 1, s and s² − 1, and the rest of E y²."""

    mean: FloatArray  # (B, Q) y_0
    linear: FloatArray  # (B, Q) y_1
    square: FloatArray  # (B, Q) E[(s² − 1)y]
    rest: FloatArray  # (B, Q) E y² − y_0² − y_1²

    def take(self, rows: object) -> Labels:
        """The same for some of the rows."""
        return Labels(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def build_columns(
    sigma: Nonlinearity, step: Step, anisotropy: Anisotropy, kappa: FloatArray
) -> Columns:
    """Equations (5), (37), (39), (40b) and (44) at the given κ (Q,)."""
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    mean, slope, spread = sigma.moments(norm, place)
    curvature = 0.5 * sigma.derivative_means(norm, place, 2)[2]
    k = kappa[:, None]
    size = curvature / step.d[:, None, None]
    kk, ks, ss = (part[:, None, :] for part in anisotropy)
    plain = mean + size * (k**2 - 1.0) * kk
    linear, square = 2.0 * k * size * ks, size * ss
    tilt = np.zeros_like(mean)  # ℓ
    if step.is_full:  # a neuron's own direction in β (44)
        a = step.a[:, None, :]
        along = (step.lean / step.beta)[:, None, None]  # f_1
        beside = (step.alignment / step.across)[:, None, None] * along  # f_2
        plain = plain + a * along * k * slope - curvature * a**2 * (2.0 - along**2)
        linear = linear + 2.0 * k * curvature * a**2 * along * beside
        square = square - curvature * (a * beside) ** 2
        tilt = 2.0 * curvature * a * beside
    nothing = np.zeros_like(mean)
    fields = [
        (plain, linear, square),
        (k * slope, k * tilt, nothing),
        (tilt, slope, tilt),
        (curvature, nothing, nothing),
    ]
    if step.is_gaussian:
        longer, further = step.longer[:, None, :], step.further[:, None, :] * k
        bend = _bend(sigma, step, kappa) / step.d[:, None, None]
        fields[0] = (plain + bend, linear, square)
        fields.append((longer * curvature + further * slope, nothing, nothing))
    stacked = (np.concatenate(parts, axis=2) for parts in zip(*fields, strict=True))
    return Columns(slope, spread, curvature, *stacked)


def _bend(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> FloatArray:
    """∂²m/∂ω² (40b), (B, Q, K): at u_g itself, which (43) leaves to m, μ, ν and m′."""
    shift = step.shift + step.a * (step.lean / step.beta)[:, None]
    place = shift[:, None, :] * kappa[:, None]
    higher = sigma.derivative_means(step.norm[:, None, :], place, 4)
    longer, further = step.longer[:, None, :], step.further[:, None, :] * kappa[:, None]
    return np.asarray(
        0.25 * longer**2 * higher[4] + longer * further * higher[3] + further**2 * higher[2]
    )


def build_labels(star: Nonlinearity, step: Step, kappa: FloatArray) -> Labels:
    """Equation (6), with one more Hermite degree in s."""
    y0, y1, rest = target_moments(star, step.alignment, kappa)
    across = step.across[:, None]
    curved = star.derivative_means(across, step.alignment[:, None] * kappa, 2)[2]
    return Labels(y0, y1, across**2 * curved, rest + step.noise[:, None])
