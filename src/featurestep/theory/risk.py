"""What the readout learns along the spike (11) and its errors (12)–(15).

(11) is a penalised least squares. In the scaled unknowns A = √V2·Ã, τ = √D·τ̃, ψ = √D·ψ̃
(D = ρ²V2/d) the penalty is the identity, or near it, and the system is well conditioned whatever
the group weights. It is solved by a QR factorisation, not by normal equations: spikes of very
different size share one matrix. Columns and penalty come from the weight side.

The training loss is computed twice. The response to E0 is the derivative of the training loss by
the weight of every node, so that each error measure is a source (30): its mean with the measure's
density.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.types import FloatArray
from .moments import Batch
from .response import Point, respond
from .weight_side import Frame


@dataclass(frozen=True)
class Signal:
    """The solution of (11), and the terms it gives to the errors."""

    use: FloatArray  # (B, K) A_g: use of the mean features
    along: FloatArray  # (B, K) τ_g: use of the κ-direction
    across: FloatArray  # (B, K) ψ_g: use of the s-direction
    misfit: FloatArray  # (B, Q) E0(κ) of (12)
    source_nodes: FloatArray  # (B, Q) what (15) adds to E0 for leaning weights
    source_groups: FloatArray  # (B, K) V2_g·(−∂(x̂ᵀCx̂)/∂t_g) seen from V2
    train_loss: FloatArray  # (B,) minimum of (11)/n


def solve_signal(point: Point) -> Signal:
    """Minimise (11) at the solution of the resolvent equations."""
    batch, weights = point.batch, point.isotropic
    frame = weights.frame(point.v2)
    solution, rest = (_joint if frame.leans else _decoupled)(point, frame)
    use, along, across = np.split(solution, 3, axis=1)
    fitted = _apply(frame.means, use) + batch.kappa * _apply(frame.lines, along)
    slope = _apply(frame.means_across, use) + _apply(frame.lines, across)
    lean = frame.tilt * use
    tied = lean / frame.across
    scale = np.sqrt(point.v2 / batch.d[:, None]) * batch.norm  # √D
    outside = (batch.weight * point.shrink * batch.target_rest).sum(axis=1)
    return Signal(
        use=np.sqrt(point.v2) * use,
        along=scale * (along - lean),
        across=scale * (across + batch.alignment[:, None] * tied),
        misfit=misfit(batch, fitted, slope),
        source_nodes=-(_apply(frame.lines, _apply(weights.gain, tied)) ** 2),
        source_groups=use**2 + along**2 + across**2 - _apply(weights.loss, tied) ** 2,
        train_loss=outside + rest / batch.n,
    )


def misfit(batch: Batch, fitted: FloatArray, slope: FloatArray) -> FloatArray:
    """E0(κ) = y2 − 2My0 + M² − 2Sy1 + S², as a sum of squares (eq. 12)."""
    return np.asarray(
        batch.target_rest + (batch.target_mean - fitted) ** 2 + (batch.target_linear - slope) ** 2
    )


def _apply(columns: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(columns, values[:, :, None])[:, :, 0])


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


Solved = tuple[FloatArray, FloatArray]  # (Ã, τ̃, ψ̃) in one vector, and the minimum


def _decoupled(point: Point, frame: Frame) -> Solved:
    """ψ by itself, A and τ together: the usual case."""
    batch, k = point.batch, frame.lines.shape[2]
    columns = np.concatenate([frame.means, batch.kappa[None, :, None] * frame.lines], axis=2)
    both, rest_along = least_squares(point, columns, batch.target_mean, np.ones(2 * k))
    across, rest_across = least_squares(point, frame.lines, batch.target_linear, np.ones(k))
    return np.concatenate([both, across], axis=1), rest_along + rest_across


def _joint(point: Point, frame: Frame) -> Solved:
    """The coupled system: rows along κ, rows along s, penalties."""
    batch = point.batch
    root = _root_mass(point)[:, :, None]
    size, nodes, k = frame.means.shape
    system = np.zeros((size, 2 * nodes + 3 * k, 3 * k + 1))
    along, across, rest = slice(0, nodes), slice(nodes, 2 * nodes), 2 * nodes
    system[:, along, :k] = root * frame.means
    system[:, along, k : 2 * k] = root * batch.kappa[None, :, None] * frame.lines
    system[:, along, 3 * k] = root[:, :, 0] * batch.target_mean
    system[:, across, :k] = root * frame.means_across
    system[:, across, 2 * k : 3 * k] = root * frame.lines
    system[:, across, 3 * k] = root[:, :, 0] * batch.target_linear
    system[:, rest : rest + k, :k] = _root(point.isotropic.penalty(frame))
    index = np.arange(k, 3 * k)
    system[:, rest + index, index] = 1.0
    return _triangular(system)


def _root(penalty: FloatArray) -> FloatArray:
    """R with RᵀR = penalty."""
    values, vectors = np.linalg.eigh(0.5 * (penalty + penalty.transpose(0, 2, 1)))
    root = np.sqrt(np.maximum(values, 0.0))[:, :, None]
    return np.asarray(root * vectors.transpose(0, 2, 1))


def _root_mass(point: Point) -> FloatArray:
    batch = point.batch
    return np.sqrt(batch.n[:, None] * batch.weight * point.shrink)


def _triangular(system: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least squares of [columns | right] by QR: the solution and the squared residual."""
    triangle: FloatArray = np.asarray(np.linalg.qr(system, mode="r"))
    size = system.shape[2] - 1
    solution = np.linalg.solve(triangle[:, :size, :size], triangle[:, :size, size:])[:, :, 0]
    return np.asarray(solution, dtype=np.float64), triangle[:, size, size] ** 2


@dataclass(frozen=True)
class Risk:
    """Errors of each problem, and how well the two training losses agree."""

    given: FloatArray  # (B, Q) E[(y − f)²|κ] = E0 + v
    test_error: FloatArray  # (B,) L_te
    train_mse: FloatArray  # (B,) (1/n)‖y − Fâ‖²
    train_loss: FloatArray  # (B,) L_tr
    norm_squared: FloatArray  # (B,) ‖â‖²
    self_check: FloatArray  # (B,) relative gap of the two training losses


def solve_risk(point: Point, signal: Signal) -> Risk:
    """E0 + v and P from the linear system of (13)–(15), then the errors (14)."""
    batch = point.batch
    error, relative = respond(
        point, signal.misfit + signal.source_nodes, signal.source_groups, newton=False
    )
    norm_squared = readout_square(point, relative)
    train_mse = training_error(point, error)
    train_loss = train_mse + batch.ridge * norm_squared
    return Risk(
        given=error,
        test_error=generalisation_error(point, error),
        train_mse=train_mse,
        train_loss=train_loss,
        norm_squared=norm_squared,
        self_check=np.abs(train_loss - signal.train_loss) / signal.train_loss,
    )


def generalisation_error(point: Point, error: FloatArray) -> FloatArray:
    """L_te = E_κ[E0 + v] (eq. 14)."""
    return np.asarray((point.batch.weight * error).sum(axis=1))


def training_error(point: Point, error: FloatArray) -> FloatArray:
    """(1/n)‖y − Fâ‖² = E_κ[(E0 + v)/(1+χ)²] (eq. 14)."""
    return np.asarray((point.batch.weight * error * point.shrink**2).sum(axis=1))


def readout_square(point: Point, relative: FloatArray) -> FloatArray:
    """‖â‖² = Σ P_g (eq. 13)."""
    return np.asarray((point.v2 * relative).sum(axis=1))
