"""What the readout learns along the spike: the penalised least squares (11).

In the scaled unknowns A = √V2·Ã, τ = √D·τ̃, ψ = √D·ψ̃ (D = ρ²V2/d) the penalty is the identity
and the system is well conditioned whatever the group weights. It is solved by a QR factorisation,
not by normal equations: spikes of very different size share one matrix.

For the `full` residual the weights lean against β, so that τ and ψ carry a part proportional
to A; written in τ + lean·A and ψ − (γ/q)·lean·A the penalty of (11) is again diagonal, except for
I − (d/q²)(lean/ρ)SY(lean/ρ) on Ã.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..quadrature import FloatArray
from .batch import Batch
from .moments import across_alignment
from .response import Point


@dataclass(frozen=True)
class Signal:
    """The solution of (11), the functions it stands for and the terms it gives to the errors."""

    use: FloatArray  # (B, K) A_g: use of the mean features
    along: FloatArray  # (B, K) τ_g: use of the κ-direction
    across: FloatArray  # (B, K) ψ_g: use of the s-direction
    fitted: FloatArray  # (B, Q) M(κ)
    fitted_slope: FloatArray  # (B, Q) S(κ)
    misfit: FloatArray  # (B, Q) E0(κ) of (12)
    source_nodes: FloatArray  # (B, Q) what (15) adds to E0 for leaning weights
    source_groups: FloatArray  # (B, K) V2_g·(−∂(x̂ᵀCx̂)/∂t_g) seen from V2
    train_loss: FloatArray  # (B,) minimum of (11)/n


def solve_signal(point: Point) -> Signal:
    """Minimise (11) at the solution of the resolvent equations."""
    batch = point.batch
    root = np.sqrt(point.v2)
    q = across_alignment(batch.alignment)
    ratio = batch.alignment / q
    means = batch.mean * root[:, None, :]  # columns of Ã
    lines = point.direction / np.sqrt(batch.d)[:, None, None]  # columns of τ̃ and ψ̃
    tilt = (batch.lean / batch.norm) * np.sqrt(batch.d)[:, None]  # lean·A in units of √D
    leans = bool(np.any(batch.lean))
    kappa = batch.kappa[None, :, None]
    if leans:
        tilted = lines * tilt[:, None, :]
        means_along, means_across = means - kappa * tilted, ratio[:, None, None] * tilted
        use, along, across, rest = _joint(
            point, means_along, means_across, kappa * lines, lines, _lean_factor(point, tilt, q)
        )
    else:
        k = root.shape[1]
        both, rest_along = least_squares(
            point,
            np.concatenate([means, kappa * lines], axis=2),
            batch.target_mean,
            np.ones(2 * k),
        )
        across, rest_across = least_squares(point, lines, batch.target_linear, np.ones(k))
        use, along = both[:, :k], both[:, k:]
        rest = rest_along + rest_across
        means_along, means_across = means, np.zeros_like(means)
    fitted = _apply(means_along, use) + batch.kappa * _apply(lines, along)
    slope = _apply(means_across, use) + _apply(lines, across)
    # D^{-1/2}(lean·A) and its image under Y
    lean_use = tilt * use
    shrunk = np.matmul(point.gain, lean_use[:, :, None])[:, :, 0]
    lost = np.matmul(point.loss, lean_use[:, :, None])[:, :, 0]
    outside = (batch.weight * point.shrink * batch.target_rest).sum(axis=1)
    scale = root * batch.norm / np.sqrt(batch.d)[:, None]  # √D
    return Signal(
        use=root * use,
        along=scale * (along - lean_use),
        across=scale * (across + ratio[:, None] * lean_use),
        fitted=fitted,
        fitted_slope=slope,
        misfit=misfit(batch, fitted, slope),
        source_nodes=-((_apply(lines, shrunk) / q[:, None]) ** 2),
        source_groups=use**2 + along**2 + across**2 - (lost / q[:, None]) ** 2,
        train_loss=outside + rest / batch.n,
    )


def misfit(batch: Batch, fitted: FloatArray, slope: FloatArray) -> FloatArray:
    """E0(κ) = y2 − 2My0 + M² − 2Sy1 + S², as a sum of squares (eq. 12)."""
    return np.asarray(
        batch.target_rest + (batch.target_mean - fitted) ** 2 + (batch.target_linear - slope) ** 2
    )


def _apply(columns: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(columns, values[:, :, None])[:, :, 0])


def _lean_factor(point: Point, tilt: FloatArray, q: FloatArray) -> FloatArray:
    """Upper-triangular root of the penalty on Ã for leaning weights."""
    k = tilt.shape[1]
    ratio = tilt / q[:, None]
    penalty = np.eye(k) - ratio[:, :, None] * point.loss * ratio[:, None, :]
    values, vectors = np.linalg.eigh(0.5 * (penalty + penalty.transpose(0, 2, 1)))
    root = np.sqrt(np.maximum(values, 0.0))[:, :, None]
    return np.asarray(root * vectors.transpose(0, 2, 1))


def least_squares(
    point: Point, columns: FloatArray, right: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """argmin n E[(right − columns·x)²/(1+χ)] + Σ penalty·x² and the minimum."""
    root = _root_mass(point)
    size = columns.shape[2]
    top = np.concatenate([columns, right[:, :, None]], axis=2) * root[:, :, None]
    bottom = np.zeros((columns.shape[0], size, size + 1))
    bottom[:, np.arange(size), np.arange(size)] = np.sqrt(penalty)
    return _triangular(np.concatenate([top, bottom], axis=1))


def _joint(
    point: Point,
    means_along: FloatArray,
    means_across: FloatArray,
    lines_along: FloatArray,
    lines_across: FloatArray,
    factor: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The coupled system for leaning weights: κ-rows, s-rows, penalties."""
    batch = point.batch
    root = _root_mass(point)[:, :, None]
    size, nodes, k = means_along.shape
    system = np.zeros((size, 2 * nodes + 3 * k, 3 * k + 1))
    along, across, rest = slice(0, nodes), slice(nodes, 2 * nodes), 2 * nodes
    system[:, along, :k] = root * means_along
    system[:, along, k : 2 * k] = root * lines_along
    system[:, along, 3 * k] = root[:, :, 0] * batch.target_mean
    system[:, across, :k] = root * means_across
    system[:, across, 2 * k : 3 * k] = root * lines_across
    system[:, across, 3 * k] = root[:, :, 0] * batch.target_linear
    system[:, rest : rest + k, :k] = factor
    index = np.arange(k, 3 * k)
    system[:, rest + index, index] = 1.0
    solution, minimum = _triangular(system)
    return solution[:, :k], solution[:, k : 2 * k], solution[:, 2 * k :], minimum


def _root_mass(point: Point) -> FloatArray:
    batch = point.batch
    return np.sqrt(batch.n[:, None] * batch.weight * point.shrink)


def _triangular(system: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least squares of [columns | right] by QR: the solution and the squared residual."""
    triangle: FloatArray = np.asarray(np.linalg.qr(system, mode="r"))
    size = system.shape[2] - 1
    solution = np.linalg.solve(triangle[:, :size, :size], triangle[:, :size, size:])[:, :, 0]
    return np.asarray(solution, dtype=np.float64), triangle[:, size, size] ** 2
