"""Errors of the fitted readout (12)–(15), with the training loss computed twice.

The response to E0 is the derivative of the training loss by the weight of every node, so that each
error measure is a source (30): its mean with the measure's density.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray
from .response import Point, respond
from .signal import Signal


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
