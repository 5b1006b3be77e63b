"""Many problems at once: choose the method, bucket, solve, refine where the cutting shows, check.

Every problem has its own outcome, a solution or the error that refuses it, so that one bad
point spoils nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..core.errors import FeaturestepError, NotConverged
from ..core.problem import Problem
from ..core.spiked import spiked_weights
from ..core.threads import one_thread
from .exact.solve import block_size, solve_block
from .method import chosen_method
from .prediction import SELF_CHECK, Outcome, Prediction
from .resolution import Effort, Resolution, choose

__all__ = ["SELF_CHECK", "Outcome", "Prediction", "solve"]

SETTLED = 3e-7  # relative change under refinement that ends it
_ROUNDS = 6


def solve(
    problems: Sequence[Problem], *, method: str = "auto", effort: Effort | None = None
) -> list[Outcome]:
    """Outcomes in the order of the problems.

    `effort` multiplies the numbers of groups and nodes: results must not depend on it.
    """
    job = _Job(problems, method)
    pending: dict[int, Effort] = dict.fromkeys(range(len(problems)), effort or Effort())
    with one_thread(), np.errstate(all="ignore"):  # what does not converge is refused
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

    def __init__(self, problems: Sequence[Problem], method: str) -> None:
        self.problems = problems
        self.weights = [spiked_weights(p) for p in problems]
        self.methods = [
            chosen_method(p, w, method) for p, w in zip(problems, self.weights, strict=True)
        ]
        self.outcomes: list[Outcome | None] = [None] * len(problems)

    def round(self, pending: dict[int, Effort]) -> dict[int, Effort]:
        """Solve the pending problems; return those that need more effort, with it."""
        again: dict[int, Effort] = {}
        for method, resolution, members in self._buckets(pending):
            rows = block_size(resolution, self.problems[members[0]], method)
            for first in range(0, len(members), rows):
                block = members[first : first + rows]
                again.update(self._solve_block(block, method, resolution, pending))
        return again

    def _buckets(self, pending: dict[int, Effort]) -> list[tuple[str, Resolution, list[int]]]:
        buckets: dict[object, tuple[str, Resolution, list[int]]] = {}
        for index, resolution in self._resolutions(pending).items():
            problem, method = self.problems[index], self.methods[index]
            key = (
                method,
                problem.sigma,
                problem.star,
                problem.law,
                problem.residual if problem.step_size else "labels",
                problem.initial,
                resolution,
            )
            buckets.setdefault(key, (method, resolution, []))[2].append(index)
        for _, _, members in buckets.values():  # problems of one step share its moments
            members.sort(key=lambda index: self.weights[index].unit_shift)
        return list(buckets.values())

    def _resolutions(self, pending: dict[int, Effort]) -> dict[int, Resolution]:
        """The rules of every problem that has some."""
        found: dict[int, Resolution] = {}
        for index, effort in pending.items():
            try:
                args = self.problems[index], self.weights[index], effort, self.methods[index]
                found[index] = choose(*args)
            except FeaturestepError as error:
                self.outcomes[index] = error
        kinds = {i: (self.methods[i], self.problems[i].law) for i in found if pending[i].alike}
        for kind in dict.fromkeys(kinds.values()):
            alike = [i for i, own in kinds.items() if own == kind]
            finest = max(alike, key=lambda i: found[i].sizes)
            found |= dict.fromkeys(alike, found[finest])
        return found

    def _solve_block(
        self, block: list[int], method: str, resolution: Resolution, pending: dict[int, Effort]
    ) -> list[tuple[int, Effort]]:
        try:
            found, rough = solve_block([self.problems[i] for i in block], resolution, method)
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            if len(block) == 1:
                self.outcomes[block[0]] = NotConverged(f"a linear system was singular ({error})")
                return []
            alone = [self._solve_block([i], method, resolution, pending) for i in block]
            return list(itertools.chain.from_iterable(alone))
        raised = rough.raised([pending[i] for i in block], resolution)
        again = []
        for row, now in enumerate(found):
            index = block[row]
            before, self.outcomes[index] = self.outcomes[index], now
            settled = raised[row] == pending[index] or not isinstance(now, Prediction)
            change = max(SETTLED, pending[index].slack * 1e-12)
            if not (settled or (isinstance(before, Prediction) and _agree(before, now, change))):
                again.append((index, raised[row]))
        return again


def _agree(before: Prediction, now: Outcome, change: float) -> bool:
    """Whether refining changed nothing that matters."""
    return (
        isinstance(now, Prediction)
        and abs(now.test_error - before.test_error) <= change * now.test_error
        and abs(now.train_loss - before.train_loss) <= change * now.train_loss
    )
