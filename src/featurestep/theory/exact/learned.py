"""What a solved network does at any κ: the function it computes and the error it makes there."""

from __future__ import annotations

import numpy as np

from ...problem import Problem
from ...types import FloatArray
from ..solution import Detail
from .columns import Columns, build_columns, build_labels
from .dyson import matmul
from .regression import misfit
from .step import Step, build_step, rows_of


def learned_given(problem: Problem, detail: Detail, kappa: FloatArray) -> FloatArray:
    """E[f|κ], (R, points), for each value of the initial offset."""
    _, columns = _seen(problem, detail, kappa)
    return np.asarray(matmul(columns.plain, detail.used[:, :, None])[:, :, 0])


def beside_given(problem: Problem, detail: Detail, kappa: FloatArray) -> FloatArray:
    """E[s_i f|κ], (R, r, points): in the basis of (45) where there are several directions."""
    _, columns = _seen(problem, detail, kappa)
    return np.asarray(matmul(columns.linear, detail.used[:, None, :, None])[..., 0])


def error_given(problem: Problem, detail: Detail, kappa: FloatArray) -> FloatArray:
    """E[(y − f)²|κ], (R, points): the misfit and the fluctuations v of (13)."""
    step, columns = _seen(problem, detail, kappa)
    labels = build_labels(problem.star, step, kappa)
    missed = misfit(columns, labels, step.sample_norm, detail.used)
    bulk = np.einsum("bqg,bqg->bq", matmul(columns.slope, detail.bulk), columns.slope)
    return np.asarray(missed + bulk + matmul(columns.spread, detail.powers[:, :, None])[:, :, 0])


def shares(problem: Problem) -> FloatArray:
    """Probabilities of the values of the initial offset, (R,)."""
    return np.array([row.share for row in rows_of(problem)])


def _seen(problem: Problem, detail: Detail, kappa: FloatArray) -> tuple[Step, Columns]:
    step = build_step(rows_of(problem), detail.groups, detail.r_nodes)
    return step, build_columns(problem.sigma, step, kappa)
