"""`predict`: the errors of the trained network, for one problem or a grid of them."""

from __future__ import annotations

from ..core.checks import one_of
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Progress, over_grid, verb
from .engine import solve
from .method import METHODS
from .prediction import Prediction, answered


@verb
def predict(
    problem: Problem | Grid, *, method: str = "auto", progress: Progress | None = None
) -> Prediction | GridResult:
    """Predict train and test errors after one gradient step (theory, sections 3 and 11–20).

    One problem gives a `Prediction`; a grid gives the same numbers over its fields, with a
    `status` for each point ("ok" or the reason there is no number), and `progress(done, total)`
    is called as its points are solved.

    `method` is "auto", "exact" or "isotropic". Exact weights hold for every step; isotropic ones
    are faster, and "auto" takes them only where they lose less than 1e-4 of the errors.

    >>> from featurestep import Problem, predict
    >>> p = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01, noise_std=0.1)
    >>> round(predict(p).test_error, 3)
    0.108
    """
    one_of("method", method, METHODS)
    if isinstance(problem, Grid):
        return _predict_grid(problem, method, progress)
    (outcome,) = solve([problem], method=method)
    return answered(outcome)


def _predict_grid(grid: Grid, method: str, progress: Progress | None) -> GridResult:
    """Every point, in batches: a few groups of neurons are all that a point keeps."""
    problems = list(grid)
    size = len(problems) if progress is None else max(64, len(problems) // 50)
    parts = (problems[start : start + size] for start in range(0, len(problems), size))
    outcomes = (outcome for part in parts for outcome in solve(part, method=method))

    def told(done: int, total: int) -> None:
        if progress is not None and (done % size == 0 or done == total):
            progress(done, total)

    return over_grid(Prediction, grid, lambda _: answered(next(outcomes)), told)
