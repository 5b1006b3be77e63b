"""The losses of the readout's fit (eq. 70), on samples and in the mean over fresh labels.

`y` are labels and `f` outputs, arrays of one shape on the host. Everything is in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...core.problem import BINARY_LOSSES
from ...core.types import FloatArray

LossFunction = Callable[[FloatArray, FloatArray], FloatArray]
HUBER_WIDTH = 1.0  # δ: |y − f| up to which the Huber loss is ½(y − f)²


@dataclass(frozen=True)
class SampleLoss:
    """ℓ(y, f) with its derivatives in f, and the steps that its fit takes."""

    value: LossFunction
    slope: LossFunction  # of the hinge, that of smaller |f| at the corner
    curvature: LossFunction  # 0 at corners
    steps: int  # of the solver, as many as a fit is costed with


def _expit(z: FloatArray) -> FloatArray:
    """1/(1 + e^{−z})."""
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0.0, 1.0, small) / (1.0 + small))


def _logistic(y: FloatArray, f: FloatArray) -> FloatArray:
    z = y * f
    return np.asarray(np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z))))


def _huber(y: FloatArray, f: FloatArray) -> FloatArray:
    u = np.abs(f - y)
    return np.asarray(0.5 * u**2 - 0.5 * np.maximum(u - HUBER_WIDTH, 0.0) ** 2)


_SQUARE = SampleLoss(
    value=lambda y, f: 0.5 * (f - y) ** 2,
    slope=lambda y, f: f - y,
    curvature=lambda y, f: np.ones_like(f),
    steps=2,
)
LOSSES = {
    "square": _SQUARE,
    "square_signs": _SQUARE,
    "huber": SampleLoss(
        value=_huber,
        slope=lambda y, f: np.clip(f - y, -HUBER_WIDTH, HUBER_WIDTH),
        curvature=lambda y, f: (np.abs(f - y) < HUBER_WIDTH).astype(np.float64),
        steps=6,
    ),
    "logistic": SampleLoss(
        value=_logistic,
        slope=lambda y, f: -y * _expit(-y * f),
        curvature=lambda y, f: _expit(f) * _expit(-f),
        steps=8,
    ),
    "squared_hinge": SampleLoss(
        value=lambda y, f: 0.5 * np.maximum(1.0 - y * f, 0.0) ** 2,
        slope=lambda y, f: -y * np.maximum(1.0 - y * f, 0.0),
        curvature=lambda y, f: (y * f < 1.0).astype(np.float64),
        steps=8,
    ),
    "hinge": SampleLoss(
        value=lambda y, f: np.maximum(1.0 - y * f, 0.0),
        slope=lambda y, f: np.where(y * f < 1.0, -y, 0.0),
        curvature=lambda y, f: np.zeros_like(f),
        steps=20,
    ),
}


def weighted(loss: SampleLoss, weights: FloatArray) -> SampleLoss:
    """The loss of samples with weights (n,): each sample's loss times its weight."""
    return SampleLoss(
        value=lambda y, f: weights * loss.value(y, f),
        slope=lambda y, f: weights * loss.slope(y, f),
        curvature=lambda y, f: weights * loss.curvature(y, f),
        steps=loss.steps,
    )


def sample_error(loss: str, y: FloatArray, f: FloatArray) -> FloatArray:
    """The error of each sample: 1 for a wrong sign of labels ±1, else (y − f)²."""
    if loss in BINARY_LOSSES:
        return np.asarray((f >= 0.0) != (y > 0.0), dtype=np.float64)
    return np.asarray((y - f) ** 2)


def expected_over_labels(
    loss: str, clean: FloatArray, f: FloatArray, *, noise: float, flip: float
) -> tuple[FloatArray, FloatArray]:
    """E ℓ(y, f) and the expected error over labels with these values of σ⋆.

    noise: standard deviation of the label noise; flip: share of labels ±1 that are flipped. So
    the labels' own noise adds nothing to the scatter of a test.
    """
    if loss in BINARY_LOSSES:
        value, ones = LOSSES[loss].value, np.ones_like(f)
        up = flip + (1.0 - 2.0 * flip) * _share_positive(clean, noise)  # P(y = 1)
        mean = up * value(ones, f) + (1.0 - up) * value(-ones, f)
        return mean, np.where(f >= 0.0, 1.0 - up, up)
    error = (clean - f) ** 2 + noise**2
    if loss == "square":
        return 0.5 * error, error
    above, below = (_square_above(u - HUBER_WIDTH, noise) for u in (f - clean, clean - f))
    return 0.5 * (error - above - below), error


def _share_positive(clean: FloatArray, noise: float) -> FloatArray:
    """P(clean + noise·ε ≥ 0)."""
    if noise == 0.0:
        return (clean >= 0.0).astype(np.float64)
    from scipy.special import ndtr  # slow to load

    return np.asarray(ndtr(clean / noise))


def _square_above(mean: FloatArray, sd: float) -> FloatArray:
    """E max(b, 0)² of b ~ N(mean, sd²)."""
    if sd == 0.0:
        return np.maximum(mean, 0.0) ** 2
    from scipy.special import ndtr  # slow to load

    z = mean / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.asarray((mean**2 + sd**2) * ndtr(z) + mean * sd * density)
