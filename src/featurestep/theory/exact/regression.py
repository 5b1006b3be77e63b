"""The readout's use of every field: the regression (29), without inverting C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...types import FloatArray
from .columns import Columns, Labels
from .covariance import Covariance
from .dyson import matmul, solved, transposed
from .resolvent import Point, Readout


@dataclass(frozen=True)
class Fit:
    """The solution of (29): fields in the order A, τ, ψ, Δ (, Ω), K of each."""

    asked: FloatArray  # (B, F) x̂
    used: FloatArray  # (B, F) X = Cx̂
    misfit: FloatArray  # (B, Q) E[(y − B·X)²|κ], with the sample-norm term
    train_loss: FloatArray  # (B,) L_tr


def field_covariance(readout: Readout, v2: FloatArray, found: Covariance) -> FloatArray:
    """C of (29), (B, F, F)."""
    step = readout.step
    size = step.k.shape[1]
    count = readout.columns.plain.shape[2]
    scaled = np.zeros((len(step), count, count), dtype=found.matrix.dtype)
    g = np.arange(size)
    scaled[:, g, g] = step.d[:, None]
    special = slice(size, 4 * size)
    scaled[:, special, special] = found.total
    cross = np.sqrt(step.d)[:, None, None] * found.lean
    scaled[:, :size, special] = cross
    scaled[:, special, :size] = transposed(cross)
    scaled[:, 3 * size + g, 3 * size + g] += step.norm_variance
    if step.is_gaussian:
        scaled[:, 4 * size + g, 4 * size + g] = 2.0
    root = np.tile(np.sqrt(v2 / step.d[:, None]), count // size)
    return np.asarray(root[:, :, None] * scaled * root[:, None, :])


def gram(readout: Readout, mass: FloatArray) -> FloatArray:
    """𝒢 of (29), with the weights n w/(1+χ) of every node in `mass`."""
    step, columns, kappa = readout.step, readout.columns, readout.kappa
    size = step.k.shape[1]
    means, along, across = (slice(i * size, (i + 1) * size) for i in range(3))

    def product(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
        return matmul(transposed(left), right * weight[:, :, None])

    total = product(columns.plain, columns.plain, mass)
    if step.is_full:
        total = total + product(columns.square, columns.square, 2.0 * mass)
    total = total + product(columns.linear, columns.linear, mass)
    # Blocks in which parts cancel, or belong to the sample norms, are written by themselves.
    own = columns.plain[:, :, means]
    bent = product(columns.curvature, columns.curvature, mass)
    total[:, means, means] = product(own, own, mass) + step.sample_norm * bent
    total[:, along, along] = product(columns.slope, columns.slope, mass * (kappa**2 - 1.0))
    total[:, across, across] = 0.0
    if step.is_full:
        tilt = columns.plain[:, :, across]
        total[:, along, along] += product(tilt, tilt, mass * kappa**2)
        total[:, across, across] = product(tilt, tilt, 3.0 * mass)
    return total


def fit(point: Point, labels: Labels, found: Covariance) -> Fit:
    """Solve (29) at a solution of the resolvent equations."""
    step, columns = point.readout.step, point.readout.columns
    mass = step.n[:, None] * point.readout.weight * point.shrink
    c = field_covariance(point.readout, point.v2, found)
    right = (
        _moment(columns.plain, mass * labels.mean)
        + _moment(columns.linear, mass * labels.linear)
        + _moment(columns.square, mass * labels.square)
    )
    scale = np.sqrt(np.einsum("bff->bf", c))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = c / (scale[:, :, None] * scale[:, None, :])
    matrix = matmul(scale[:, :, None] * gram(point.readout, mass) * scale[:, None, :], shape)
    matrix = matrix + np.eye(c.shape[-1])
    answer = solved(matrix, scale * right)
    used = scale * matmul(shape, answer[:, :, None])[:, :, 0]
    missed = misfit(columns, labels, step.sample_norm, used)
    asked = answer / scale
    # The objective itself: to first order it does not feel the rounding of the solution.
    loss = (mass * missed).sum(axis=1) + (asked * used).sum(axis=1) - _seen_twice(point, used)
    return Fit(asked=asked, used=used, misfit=missed, train_loss=loss / step.n)


def _seen_twice(point: Point, used: FloatArray) -> FloatArray:
    """τᵀV̂1τ + ψᵀV̂1ψ, (B,)."""
    step = point.readout.step
    size = step.k.shape[1]
    root = np.tile(np.sqrt(step.d[:, None] / point.v2), 2)
    scaled = (used[:, size : 3 * size] * root).reshape(len(step), 2, size)
    return np.asarray((matmul(scaled, point.information) * scaled).sum(axis=(1, 2)))


def _moment(columns: FloatArray, values: FloatArray) -> FloatArray:
    return matmul(values[:, None, :], columns)[:, 0]


def misfit(
    columns: Columns, labels: Labels, sample_norm: FloatArray, used: FloatArray
) -> FloatArray:
    """E[(y − B·X)²|κ] with the term of the sample norms, (B, Q): (12) for all fields."""
    size = columns.slope.shape[2]
    plain, linear, square = (
        matmul(part, used[:, :, None])[:, :, 0]
        for part in (columns.plain, columns.linear, columns.square)
    )
    use = used[:, :size]
    own_linear, own_square = (
        matmul(part[:, :, :size], use[:, :, None])[:, :, 0]
        for part in (columns.linear, columns.square)
    )
    bent = columns.curvature * use[:, None, :]
    norms = np.einsum("bqg,bqg->bq", matmul(bent, sample_norm), bent)
    return np.asarray(
        labels.rest
        + (labels.mean - plain) ** 2
        + (labels.linear - linear) ** 2
        - own_linear**2
        - 2.0 * labels.square * square
        + 2.0 * (square**2 - own_square**2)
        + norms
    )
