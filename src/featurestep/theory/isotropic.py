"""Section 3 for a block of problems: isotropic weights, the fast case.

Exact where nothing of the step is seen beside the learned direction (`method` says when).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.problem import Problem
from ..core.spiked import SpikedWeights
from ..core.types import FloatArray
from .moments import build_batch
from .prediction import Groups, Outcome, Prediction, checked
from .resolution import Effort, Resolution, Roughness, choose
from .resolvent import solve_resolvent
from .risk import solve_risk, solve_signal

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
    outcomes = []
    for i, (problem, step) in enumerate(zip(problems, weights, strict=True)):
        own = Groups(
            g=batch.g,
            neurons=batch.neurons[i],
            shift=batch.shift[i],
            norm=batch.norm[i],
            use=signal.use[i],
            along=signal.along[i],
            across=signal.across[i],
        )
        found = Prediction(
            problem=problem,
            test_error=float(risk.test_error[i]),
            train_loss=float(risk.train_loss[i]),
            train_mse=float(risk.train_mse[i]),
            readout_norm=float(np.sqrt(risk.norm_squared[i])),
            alignment=step.alignment,
            beta_norm=step.beta_norm,
            test_error_sd=0.0,
            groups=own,
            method="isotropic",
            solver_residual=float(resolvent.residual[i]),
            iterations=int(resolvent.iterations[i]),
            self_check=float(risk.self_check[i]),
            nodes=batch.kappa.size,
            network=IsotropicNetwork(problem, step, own),
        )
        outcomes.append(checked(found))
    return outcomes, rough


class IsotropicNetwork(NamedTuple):
    """A network solved with isotropic weights."""

    problem: Problem
    weights: SpikedWeights
    groups: Groups

    def parts(self, kappa: FloatArray) -> FloatArray:
        """M and S of (12)."""
        groups = self.groups
        place = groups.shift * kappa[:, None]
        mean, slope, _ = self.problem.sigma.moments(groups.norm, place)  # (points, K)
        along = mean @ groups.use + kappa * (slope @ groups.along)
        return np.stack([along, slope @ groups.across])

    def error(self, kappa: FloatArray) -> FloatArray:
        """E0 + v of (12), (13) at nodes that are added without weight."""
        resolution = choose(self.problem, self.weights, Effort())
        nodes, weight = resolution.node_rule()
        rule = np.append(nodes, kappa), np.append(weight, np.zeros(kappa.size))
        batch = build_batch([self.problem], [self.weights], resolution.group_rule(), rule)
        point = solve_resolvent(batch).point
        return solve_risk(point, solve_signal(point)).given[0, nodes.size :]
