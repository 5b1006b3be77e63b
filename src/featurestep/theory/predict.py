"""`predict`: the errors of the trained network, for one problem or a grid of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..checks import whole_number
from ..errors import InvalidProblem
from ..functions.nonlinearity import normalised_hermite
from ..functions.teacher import Frame
from ..problem import Grid, Problem
from ..results import QUANTITIES, GridResult, Note, Progress, Result, over_grid, verb
from ..types import FloatArray
from . import isotropic
from .degrees import KAPPA, MOST_DEGREE, WEIGHT, Degrees, missed_by_degree
from .engine import Outcome, Solution, solve
from .exact import solve as exact
from .labels import label_moments
from .method import checked_method
from .solution import Groups
from .validity import prediction_notes


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Result):
    """Predicted errors of one problem, with what was learned and how far to trust it."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **QUANTITIES,
        "alignment": "cosine γ between the learned direction and the target's",
        "test_error_sd": "its standard deviation over the random mean of the initial output",
        "solver_residual": "largest relative residual of the fixed-point equations",
        "self_check": "relative gap between the two expressions for the training loss",
        "method": "weights that the errors were computed with",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("test_error", "train_loss", "train_mse", "readout_norm", "alignment", "method"),
    )

    problem: Problem
    test_error: float
    train_loss: float
    train_mse: float
    readout_norm: float
    alignment: float
    beta_norm: float
    test_error_sd: float
    groups: Groups
    method: str  # "exact", or "isotropic" where nothing is lost by it
    solver_residual: float
    iterations: int
    self_check: float
    nodes: int
    notes: tuple[Note, ...]
    solution: Solution = field(repr=False, compare=False)

    def learned(self, kappa: npt.ArrayLike) -> FloatArray:
        """M(κ): the function of the learned direction that the network computes (eq. 12)."""
        at = np.asarray(kappa, dtype=np.float64)
        return np.asarray(self._parts(at.ravel())[0].reshape(at.shape))

    def error_given(self, kappa: npt.ArrayLike) -> FloatArray:
        """E[(y − f(x))²|κ]: the test error of inputs with this κ, noise included.

        Its mean over κ ~ N(0,1) is the test error; over another law of κ, the error there
        (theory, section 15).
        """
        at = np.asarray(kappa, dtype=np.float64)
        detail = self.solution.detail
        if detail is None:
            found = isotropic.error_given(self.problem, self.solution.weights, at.ravel())
        else:
            found = exact.error_given(self.problem, detail, at.ravel())
        return found.reshape(at.shape)

    def learned_parts(self, kappa: npt.ArrayLike) -> FloatArray:
        """f_0(κ), f_1(κ) … f_r(κ): the network computes f_0 + Σ s_i f_i, and noise (section 25).

        s_i is what κ does not show of the target's i-th direction. The parts come stacked along a
        new first axis.
        """
        at = np.asarray(kappa, dtype=np.float64)
        parts = self._parts(at.ravel())
        star = self.problem.star
        if isinstance(star, Frame):
            parts[1:] = star.rotation.T @ parts[1:]
        return parts.reshape(-1, *at.shape)

    def _parts(self, kappa: FloatArray) -> FloatArray:
        """f_0 … f_r at places (Q,), in the basis of (45) where there are several directions."""
        if self.solution.detail is not None:
            return exact.parts_given(self.problem, self.solution.detail, kappa)
        groups = self.groups
        place = groups.shift * kappa[:, None]
        mean, slope, _ = self.problem.sigma.moments(groups.norm, place)  # (points, K)
        along = mean @ groups.use + kappa * (slope @ groups.along)
        return np.stack([along, slope @ groups.across])

    @property
    def alignments(self) -> tuple[float, ...]:
        """Cosines of the learned direction with each of the target's."""
        star = self.problem.star
        if not isinstance(star, Frame):
            return (self.alignment,)
        return tuple(float(c) * self.alignment for c in star.rotation[0])

    def error_by_degree(self, highest: int | None = None) -> Degrees:
        """Where the test error comes from.

        For k = 0 … `highest` (6 by default) the squared coefficient of H_k(κ)/√k! in what the
        network misses on average, E[y − f|κ]; then `"higher"`, the same for all higher degrees, and
        `"rest"`: the target's other direction, fluctuations and noise. For a target of several
        directions the keys are degrees (k, k_1, …, k_r) in κ and in s_1 … s_r, with a sum of at
        most `highest` (4 by default). The values add up to the test error.
        """
        star = self.problem.star
        if highest is None:
            highest = 4 if isinstance(star, Frame) else 6
        count = whole_number("highest", highest) if highest != 0 else 0
        if isinstance(star, Frame):
            if count > MOST_DEGREE:
                rule = f"must be at most {MOST_DEGREE} for several directions"
                raise InvalidProblem("highest", rule, highest)
            parts = self.learned_parts(KAPPA)
            return missed_by_degree(star, self.alignment, parts, self.test_error, count)
        kappa, weight = KAPPA, WEIGHT
        missed = self.target_along(kappa) - self.learned(kappa)
        parts = (normalised_hermite(count, kappa) @ (weight * missed)) ** 2
        total = float(weight @ missed**2)
        degrees: Degrees = {k: float(part) for k, part in enumerate(parts)}
        degrees["higher"] = max(total - float(parts.sum()), 0.0)
        degrees["rest"] = self.test_error - float(parts.sum()) - float(degrees["higher"])
        return degrees

    def target_along(self, kappa: npt.ArrayLike) -> FloatArray:
        """E[y|κ]: what the best function of the learned direction would be (eq. 6)."""
        at = np.asarray(kappa, dtype=np.float64)
        labels = label_moments(self.problem.star, np.array([self.alignment]), at.ravel())
        return np.asarray(labels.mean[0].reshape(at.shape))

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        several = {"alignments": list(self.alignments)} if self.problem.directions > 1 else {}
        return {**super().as_dict(), **several}


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
    checked_method(method)
    if isinstance(problem, Grid):
        return _predict_grid(problem, method, progress)
    (outcome,) = solve([problem], method=method)
    return prediction(problem, outcome)


def prediction(problem: Problem, found: Outcome) -> Prediction:
    """The result of one outcome, or its error raised."""
    if not isinstance(found, Solution):
        raise found
    return Prediction(
        problem=problem,
        test_error=found.test_error,
        train_loss=found.train_loss,
        train_mse=found.train_mse,
        readout_norm=float(np.sqrt(found.norm_squared)),
        alignment=found.weights.alignment,
        beta_norm=found.weights.beta_norm,
        test_error_sd=found.test_spread,
        groups=found.groups,
        method=found.method,
        solver_residual=found.residual,
        iterations=found.iterations,
        self_check=found.self_check,
        nodes=found.nodes,
        notes=prediction_notes(problem, found.weights, found.method),
        solution=found,
    )


def _predict_grid(grid: Grid, method: str, progress: Progress | None) -> GridResult:
    """Every point, in batches: a few groups of neurons are all that a point keeps."""
    problems = list(grid)
    size = len(problems) if progress is None else max(64, len(problems) // 50)
    parts = (problems[start : start + size] for start in range(0, len(problems), size))
    outcomes = (outcome for part in parts for outcome in solve(part, method=method))

    def told(done: int, total: int) -> None:
        if progress is not None and (done % size == 0 or done == total):
            progress(done, total)

    return over_grid(Prediction, grid, lambda problem: prediction(problem, next(outcomes)), told)
