"""Section 3 for many problems at once: bucket, solve, refine where the cutting shows, check.

Every problem has its own outcome, a solution or the error that refuses it, so that one bad
point spoils nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import FeaturestepError, InconsistentSolution, NotConverged
from ..problem import Problem
from ..quadrature import FloatArray, Rule
from ..spiked import SpikedWeights, spiked_weights
from ..threads import one_thread
from .batch import Batch
from .moments import build_batch
from .resolution import ROUGH_GROUPS, ROUGH_NODES, Effort, Resolution, choose
from .resolvent import ACCEPTED, Resolvent, solve_resolvent
from .risk import Risk, solve_risk
from .signal import Signal, solve_signal

SELF_CHECK = 1e-9
SETTLED = 3e-7  # relative change under refinement that ends it
_BLOCK = 60000  # problems × nodes × groups of one batch: its arrays stay in cache
_ROUNDS = 6
_INNER = 6.0  # |κ| beyond which roughness carries no weight


class Solution(NamedTuple):
    """One problem solved: its errors, and its groups of neurons with what they learned."""

    weights: SpikedWeights
    test_error: float
    train_loss: float
    train_mse: float
    norm_squared: float
    residual: float
    iterations: int
    self_check: float
    nodes: int
    g: FloatArray  # (K,)
    neurons: FloatArray  # (K,)
    shift: FloatArray  # (K,)
    norm: FloatArray  # (K,)
    use: FloatArray  # (K,) A_g
    along: FloatArray  # (K,) τ_g
    across: FloatArray  # (K,) ψ_g


Outcome = Solution | FeaturestepError


def solve(
    problems: Sequence[Problem], *, effort: Effort | None = None, start: float | None = None
) -> list[Outcome]:
    """Outcomes in the order of the problems.

    `effort` multiplies the numbers of groups and nodes and `start` the first guess of V2: results
    must not depend on either, and tests use them to show it.
    """
    job = _Job(problems, [spiked_weights(p) for p in problems], start)
    pending: dict[int, Effort] = dict.fromkeys(range(len(problems)), effort or Effort())
    with one_thread():
        for _ in range(_ROUNDS):
            pending = job.round(pending)
            if not pending:
                break
    for index in pending:
        job.outcomes[index] = NotConverged(
            f"results still change by more than {SETTLED:.0e} when groups and nodes are refined"
        )
    return [outcome for outcome in job.outcomes if outcome is not None]


class _Job:
    """Problems on their way to an outcome."""

    def __init__(
        self, problems: Sequence[Problem], weights: list[SpikedWeights], start: float | None
    ) -> None:
        self.problems = problems
        self.weights = weights
        self.start = start
        self.outcomes: list[Outcome | None] = [None] * len(problems)

    def round(self, pending: dict[int, Effort]) -> dict[int, Effort]:
        """Solve the pending problems; return those that need more effort, with it."""
        again: dict[int, Effort] = {}
        for resolution, members in self._buckets(pending):
            problem = self.problems[members[0]]
            groups, nodes = resolution.group_rule(problem), resolution.node_rule()
            rows = max(1, _BLOCK // (groups[0].size * nodes[0].size))
            for start in range(0, len(members), rows):
                block = members[start : start + rows]
                again.update(self._solve_block(block, groups, nodes, resolution.adapts, pending))
        return again

    def _buckets(self, pending: dict[int, Effort]) -> list[tuple[Resolution, list[int]]]:
        buckets: dict[object, tuple[Resolution, list[int]]] = {}
        for index, effort in pending.items():
            problem = self.problems[index]
            try:
                resolution = choose(problem, self.weights[index], effort)
            except FeaturestepError as error:
                self.outcomes[index] = error
                continue
            key = (problem.sigma, problem.sigma_star, problem.law, problem.residual, resolution)
            buckets.setdefault(key, (resolution, []))[1].append(index)
        return list(buckets.values())

    def _solve_block(
        self,
        block: list[int],
        groups: Rule,
        nodes: Rule,
        adapts: bool,
        pending: dict[int, Effort],
    ) -> list[tuple[int, Effort]]:
        weights = [self.weights[i] for i in block]
        batch = build_batch([self.problems[i] for i in block], weights, groups, nodes)
        try:
            resolvent = solve_resolvent(batch, self.start)
            signal = solve_signal(resolvent.point)
            risk = solve_risk(resolvent.point, signal)
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            if len(block) == 1:
                self.outcomes[block[0]] = NotConverged(f"a linear system was singular ({error})")
                return []
            alone = [self._solve_block([i], groups, nodes, adapts, pending) for i in block]
            return list(itertools.chain.from_iterable(alone))
        raised = _raised_efforts(resolvent, adapts, [pending[i] for i in block])
        again = []
        for row, now in enumerate(_outcomes(weights, batch, resolvent, signal, risk)):
            index = block[row]
            before, self.outcomes[index] = self.outcomes[index], now
            settled = raised[row] == pending[index] or not isinstance(now, Solution)
            if not (settled or (isinstance(before, Solution) and _agree(before, now))):
                again.append((index, raised[row]))
        return again


def _agree(before: Solution, now: Outcome) -> bool:
    """Whether refining changed nothing that matters."""
    return (
        isinstance(now, Solution)
        and abs(now.test_error - before.test_error) <= SETTLED * now.test_error
        and abs(now.train_loss - before.train_loss) <= SETTLED * now.train_loss
    )


def _raised_efforts(resolvent: Resolvent, adapts: bool, efforts: list[Effort]) -> list[Effort]:
    """Each problem's effort, raised where its solution varies faster than its rules resolve."""
    point = resolvent.point
    inner = np.abs(point.batch.kappa) < _INNER
    nodes = np.abs(np.diff(np.log1p(point.chi[:, inner]), axis=1)).max(axis=1)
    groups = np.zeros(len(efforts))
    if adapts:
        groups = np.abs(np.diff(np.log(point.v2 / point.batch.neurons), axis=1)).max(axis=1)
    raised = list(efforts)
    for row in np.flatnonzero((groups > ROUGH_GROUPS) | (nodes > ROUGH_NODES)):
        raised[row] = efforts[row].raised(float(groups[row]), float(nodes[row]))
    return raised


def _outcomes(
    weights: list[SpikedWeights], batch: Batch, resolvent: Resolvent, signal: Signal, risk: Risk
) -> list[Outcome]:
    """One solution, or the error that refuses it, for each problem of a batch."""
    columns = zip(
        weights,
        risk.test_error.tolist(),
        risk.train_loss.tolist(),
        risk.train_mse.tolist(),
        risk.norm_squared.tolist(),
        resolvent.residual.tolist(),
        resolvent.iterations.tolist(),
        risk.self_check.tolist(),
        itertools.repeat(batch.kappa.size),
        itertools.repeat(batch.g),
        batch.neurons,
        batch.shift,
        batch.norm,
        signal.use,
        signal.along,
        signal.across,
        strict=False,
    )
    return [_checked(Solution(*values)) for values in columns]


def _checked(solution: Solution) -> Outcome:
    if not solution.residual <= ACCEPTED:
        return NotConverged(
            f"resolvent equations: residual {solution.residual:.2g} after "
            f"{solution.iterations} iterations (needs {ACCEPTED:.0e})",
            residual=solution.residual,
            iterations=solution.iterations,
            solution=solution,
        )
    if not solution.self_check <= SELF_CHECK:
        return InconsistentSolution(
            f"the two training losses differ by {solution.self_check:.2g} (needs {SELF_CHECK:.0e})",
            residual=solution.self_check,
            iterations=solution.iterations,
            solution=solution,
        )
    return solution
