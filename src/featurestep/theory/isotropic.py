"""Section 3 for a block of problems: isotropic weights, the fast case.

Exact where nothing of the step is seen beside the learned direction (`method` says when).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..problem import Problem
from ..spiked import SpikedWeights
from ..types import FloatArray
from .moments import Batch, build_batch
from .resolution import Effort, Resolution, Roughness, choose
from .resolvent import Resolvent, solve_resolvent
from .risk import Risk, Signal, solve_risk, solve_signal
from .solution import Groups, Outcome, Solution, checked

BLOCK = 60000  # problems × nodes × groups of one batch: its arrays stay in cache


def rows_of_block(resolution: Resolution, problem: Problem) -> int:
    """How many problems to solve at once."""
    return max(1, BLOCK // math.prod(resolution.sizes))


def solve_block(
    problems: Sequence[Problem], weights: Sequence[SpikedWeights], resolution: Resolution
) -> tuple[list[Outcome], Roughness]:
    """Outcomes of problems that share their rules, and how rough the solutions are on them."""
    groups, nodes = resolution.group_rule(), resolution.node_rule()
    batch = build_batch(problems, weights, groups, nodes)
    resolvent = solve_resolvent(batch)
    point = resolvent.point
    signal = solve_signal(point)
    risk = solve_risk(point, signal)
    rough = Roughness.of(point.chi, point.v2 / batch.neurons, batch.kappa)
    return _outcomes(weights, batch, resolvent, signal, risk), rough


def error_given(problem: Problem, weights: SpikedWeights, kappa: FloatArray) -> FloatArray:
    """E[(y − f)²|κ]: E0 + v of (12), (13) at nodes that are added without weight."""
    resolution = choose(problem, weights, Effort())
    nodes, weight = resolution.node_rule()
    rule = np.append(nodes, kappa), np.append(weight, np.zeros(kappa.size))
    batch = build_batch([problem], [weights], resolution.group_rule(), rule)
    point = solve_resolvent(batch).point
    return solve_risk(point, solve_signal(point)).given[0, nodes.size :]


def _outcomes(
    weights: Sequence[SpikedWeights],
    batch: Batch,
    resolvent: Resolvent,
    signal: Signal,
    risk: Risk,
) -> list[Outcome]:
    """One solution, or the error that refuses it, for each problem of a batch."""
    groups = zip(
        itertools.repeat(batch.g),
        batch.neurons,
        batch.shift,
        batch.norm,
        signal.use,
        signal.along,
        signal.across,
        strict=False,
    )
    columns = zip(
        weights,
        itertools.repeat("isotropic"),
        risk.test_error.tolist(),
        risk.train_loss.tolist(),
        risk.train_mse.tolist(),
        risk.norm_squared.tolist(),
        itertools.repeat(0.0),
        resolvent.residual.tolist(),
        resolvent.iterations.tolist(),
        risk.self_check.tolist(),
        itertools.repeat(batch.kappa.size),
        itertools.starmap(Groups, groups),
        strict=False,
    )
    return [checked(Solution(*values)) for values in columns]
