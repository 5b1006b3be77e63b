"""`predict`: train and test errors of the trained network, for one problem or a grid of them.

Many problems are solved at once: those that share activation, target, law and quadrature rules go
into one batch. Where a solution varies faster than its rules resolve, it is solved again on finer
ones. Every problem has its own outcome, a prediction or the error that refuses it, so that one bad
point spoils nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from ..core.checks import one_of
from ..core.errors import FeaturestepError, InvalidProblem, NotConverged
from ..core.problem import Grid, Problem
from ..core.results import (
    LOSS,
    GridResult,
    Progress,
    departing,
    has_other_loss,
    over_grid,
    require_known,
    require_problem,
)
from ..core.spiked import spiked_weights
from ..core.threads import one_thread
from .exact.inputs import class_count, sees_direction, splits_rows
from .exact.solve import block_size, solve_block, solve_loss_block
from .exact.step import step_key
from .prediction import (
    LearnedFunction,
    LossPrediction,
    Outcome,
    Prediction,
    answered,
    answered_loss,
)
from .resolution import Effort, Resolution, choose, shared_rules
from .reuse.solve import solve_reused
from .several_steps.prediction import solve_problem
from .validity import remember_overlaps

METHODS = ("exact", "isotropic")
# Fields beyond the plain problem, see core.results.
KNOWN = (LOSS, {"steps"}, {"covariance"}, {"rows", "intercept"})
SETTLED = 3e-7  # relative change under refinement that ends it
MAX_REFINEMENTS = 6


@overload
def predict(
    problem: Problem, *, method: str = "exact", progress: Progress | None = None
) -> Any: ...  # a Prediction or a LossPrediction, by its loss
@overload
def predict(
    problem: Grid, *, method: str = "exact", progress: Progress | None = None
) -> GridResult: ...
def predict(
    problem: Problem | Grid, *, method: str = "exact", progress: Progress | None = None
) -> Prediction | LossPrediction | GridResult:
    """Predict train and test errors after gradient steps (theory, sections 3, 11–20, 30–35, 60–66).

    One problem gives a `Prediction`, or with another loss than the square or an intercept a
    `LossPrediction`, or with several steps, on fresh batches, a `StepsPrediction` (steps of size
    zero are left out); a grid gives the same numbers over its fields, with a `status` for each
    point ("ok" or the reason there is no number), and `progress(done, total)` is called as its
    points are solved.

    `method` is "exact", for every step size, or "isotropic": the published approximation, which
    knows of each neuron its shift along the learned direction and its norm, for comparison.

    With `rows="same"` the readout is fitted on the rows of the step, with `rows="half"` on half of
    them and on fresh ones (theory, sections 26–29), for the residual `labels` and targets of one
    direction, with an intercept or without.

    >>> from featurestep import Problem, predict
    >>> p = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01, noise_std=0.1)
    >>> round(predict(p).test_error, 3)
    0.108
    """
    one_of("method", method, METHODS)
    require_predictable(problem)
    any_loss = has_other_loss(problem)
    if isinstance(problem, Grid):
        return _predict_grid(problem, method, progress, any_loss)
    (outcome,) = solve([problem], method=method)
    return answered_loss(outcome) if any_loss else answered(outcome)


def require_predictable(problem: Problem | Grid) -> None:
    """Refuse fields, alone or together, that predictions do not know."""
    found = departing(require_problem(problem))
    if found.keys() >= {"steps", "batches"}:
        rule = (
            "must be fresh for predictions of several steps: there is no theory for samples that "
            "are used in two steps (use simulate)"
        )
        raise InvalidProblem("batches", rule, found["batches"])
    require_known(problem, "predict", *KNOWN)


def _predict_grid(grid: Grid, method: str, progress: Progress | None, any_loss: bool) -> GridResult:
    """Every point, in batches: a few groups of neurons are all that a point keeps."""
    problems = list(grid)
    size = len(problems) if progress is None else max(64, len(problems) // 50)

    def solved() -> Iterator[Outcome]:
        for start in range(0, len(problems), size):
            part = problems[start : start + size]
            if method == "exact" and not any_loss:
                remember_overlaps(part)
            yield from solve(part, method=method, any_loss=any_loss)

    outcomes = solved()

    def report(done: int, total: int) -> None:
        if progress is not None and (done % size == 0 or done == total):
            progress(done, total)

    if any_loss:

        def answer(_: Problem) -> LossPrediction:
            return answered_loss(next(outcomes))

        return over_grid(LossPrediction, grid, answer, report, problems)
    return over_grid(Prediction, grid, lambda _: answered(next(outcomes)), report, problems)


def solve(
    problems: Sequence[Problem],
    *,
    method: str = "exact",
    effort: Effort | None = None,
    any_loss: bool = False,
) -> list[Outcome]:
    """Outcomes in the order of the problems.

    `effort` multiplies the numbers of groups and nodes: results must not depend on it. With
    `any_loss` all problems are solved by section 31, also those with the square loss.
    """
    problems = [problem.without_zero_steps() for problem in problems]
    any_loss = any_loss or not all(problem.has_square_loss for problem in problems)
    if method == "isotropic" and any_loss:
        raise InvalidProblem("method", "must be exact for other losses than the square", method)
    if method == "isotropic" and any(problem.directions > 1 for problem in problems):
        rule = "must be exact for a target of several directions"
        raise InvalidProblem("method", rule, method)
    if method == "isotropic" and any(problem.steps > 1 for problem in problems):
        raise InvalidProblem("method", "must be exact for several steps", method)
    reused = [problem for problem in problems if _has_reused_rows(problem)]
    if method == "isotropic" and reused:
        raise InvalidProblem("method", f"must be exact with rows {reused[0].rows}", method)
    effort = effort or Effort()
    batches = _Batches(problems, method, any_loss)
    plain = [i for i, p in enumerate(problems) if p.steps == 1 and not _has_reused_rows(p)]
    pending: dict[int, Effort] = dict.fromkeys(plain, effort)
    with one_thread(), np.errstate(all="ignore"):  # what does not converge is refused
        for index in sorted(set(range(len(problems))).difference(plain)):
            problem = problems[index]
            batches.outcomes[index] = (
                solve_reused(problem, effort, any_loss)
                if _has_reused_rows(problem)
                else solve_problem(problem, effort)
            )
        for _ in range(MAX_REFINEMENTS):
            pending = batches.solve(pending)
            if not pending:
                break
    for index in pending:
        batches.outcomes[index] = NotConverged(
            f"results still change by more than {SETTLED:.0e} with more groups and quadrature nodes"
        )
    return [outcome for outcome in batches.outcomes if outcome is not None]


def _check_covariance(problem: Problem, method: str) -> None:
    """Refuse what the theory of inputs with a covariance does not have."""
    if problem.covariance is None:
        return
    if method != "exact":
        raise InvalidProblem("method", "must be exact with a covariance", method)
    if problem.residual != "labels":
        raise InvalidProblem("residual", "must be labels with a covariance", problem.residual)
    if problem.directions > 1:
        raise InvalidProblem("target", "must have one direction with a covariance", problem.target)


def _has_reused_rows(problem: Problem) -> bool:
    """True if the step has seen the readout's rows; without a step it does not matter."""
    return problem.shared_rows > 0 and problem.step_size > 0.0


class _Batches:
    """Problems, and the latest outcome of each."""

    def __init__(self, problems: Sequence[Problem], method: str, any_loss: bool) -> None:
        self.problems, self.method, self.any_loss = problems, method, any_loss
        self.outcomes: list[Outcome | None] = [None] * len(problems)

    def solve(self, pending: dict[int, Effort]) -> dict[int, Effort]:
        """Solve the pending problems; return those that need finer rules, with their effort."""
        again: dict[int, Effort] = {}
        for resolution, members in self._by_rules(pending):
            first_one = self.problems[members[0]]
            size = block_size(resolution, first_one, self.method, any_loss=self.any_loss)
            for first in range(0, len(members), size):
                block = members[first : first + size]
                again.update(self._solve_block(block, resolution, pending))
        return again

    def _by_rules(self, pending: dict[int, Effort]) -> list[tuple[Resolution, list[int]]]:
        """Indices of problems that can be solved in one batch, with their rules."""
        found: dict[object, tuple[Resolution, list[int]]] = {}
        for index, resolution in self._resolutions(pending).items():
            problem = self.problems[index]
            key = (
                problem.sigma,
                problem.sigma_star if problem.is_binary else problem.star,
                problem.law,
                problem.residual if problem.step_size else "labels",
                problem.initial,
                class_count(problem),
                splits_rows(problem),
                sees_direction(problem),
                problem.loss,
                problem.intercept,
                resolution,
            )
            found.setdefault(key, (resolution, []))[1].append(index)
        return [(resolution, self._by_steps(members)) for resolution, members in found.values()]

    def _by_steps(self, members: list[int]) -> list[int]:
        """The same with those of one step beside each other: a block computes it once."""
        steps: dict[object, list[int]] = {}
        for index in members:
            steps.setdefault(step_key(self.problems[index]), []).append(index)
        return list(itertools.chain.from_iterable(steps.values()))

    def _resolutions(self, pending: dict[int, Effort]) -> dict[int, Resolution]:
        """The rules of every problem that has some."""
        found: dict[int, Resolution] = {}
        for index, effort in pending.items():
            problem = self.problems[index]
            try:
                _check_covariance(problem, self.method)
                found[index] = choose(problem, spiked_weights(problem), effort)
            except FeaturestepError as error:
                self.outcomes[index] = error
        laws = {i: self.problems[i].law for i in found if pending[i].alike}
        for law in dict.fromkeys(laws.values()):
            alike = [i for i, own in laws.items() if own == law]
            finest = max(alike, key=lambda i: found[i].sizes)
            found |= dict.fromkeys(alike, found[finest])
        return shared_rules(found) if self.any_loss else found

    def _solve_block(
        self, block: list[int], resolution: Resolution, pending: dict[int, Effort]
    ) -> list[tuple[int, Effort]]:
        try:
            chosen = [self.problems[i] for i in block]
            if self.any_loss:
                found, rough = solve_loss_block(chosen, resolution)
            else:
                found, rough = solve_block(chosen, resolution, self.method)
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            if len(block) == 1:
                self.outcomes[block[0]] = NotConverged(f"a linear system was singular ({error})")
                return []
            alone = [self._solve_block([i], resolution, pending) for i in block]
            return list(itertools.chain.from_iterable(alone))
        raised = rough.raised([pending[i] for i in block], resolution)
        again = []
        for row, now in enumerate(found):
            index = block[row]
            before, self.outcomes[index] = self.outcomes[index], now
            settled = raised[row] == pending[index] or not isinstance(now, LearnedFunction)
            change = max(SETTLED, pending[index].slack * 1e-12)
            if not (settled or _agree(before, now, change)):
                again.append((index, raised[row]))
        return again


def _agree(before: Outcome | None, now: Outcome, change: float) -> bool:
    """True if test and training loss changed by less than `change`, relatively."""
    if not isinstance(before, LearnedFunction) or not isinstance(now, LearnedFunction):
        return False
    both = zip(before.settling, now.settling, strict=True)
    return all(abs(new - old) <= change * new for old, new in both)
