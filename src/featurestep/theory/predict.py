"""`predict`: the errors of the trained network, for one problem or a grid of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from ..errors import FeaturestepError, InconsistentSolution, InvalidProblem
from ..problem import Grid, Problem
from ..quadrature import FloatArray
from ..spiked import validity
from .engine import Outcome, Solution, solve
from .moments import target_moments

if TYPE_CHECKING:
    import xarray

VARIABLES = {
    "test_error": "test error E(y − âᵀσ(Wx))², noise included",
    "train_loss": "ridge objective at its minimum, (1/n)‖y − Fâ‖² + λ‖â‖²",
    "train_mse": "training error (1/n)‖y − Fâ‖²",
    "readout_norm": "norm of the fitted readout ‖â‖",
    "alignment": "cosine γ between the learned direction and the target's",
    "residual": "largest relative residual of the fixed-point equations",
    "self_check": "relative gap between the two expressions for the training loss",
}


@dataclass(frozen=True)
class Groups:
    """Neurons by the value of their initial readout, and what the fitted readout does with them."""

    g: FloatArray  # √N times the initial readout
    neurons: FloatArray  # how many, N_g
    shift: FloatArray  # u_g, gained along the learned direction
    norm: FloatArray  # ρ_g, of the remaining weights
    use: FloatArray  # A_g, total fitted readout
    along: FloatArray  # τ_g, bulk directions fitted along κ
    across: FloatArray  # ψ_g, bulk directions fitted along the rest of the target


@dataclass(frozen=True)
class Prediction:
    """Predicted errors of one problem, with what was learned and how far to trust it."""

    problem: Problem
    test_error: float
    train_loss: float
    train_mse: float
    readout_norm: float
    alignment: float
    beta_norm: float
    groups: Groups
    residual: float
    iterations: int
    self_check: float
    nodes: int
    validity: tuple[str, ...]

    def learned(self, kappa: npt.ArrayLike) -> FloatArray:
        """M(κ): the function of the learned direction that the network computes (eq. 12)."""
        at = np.asarray(kappa, dtype=np.float64)
        groups = self.groups
        mean, slope, _ = self.problem.sigma.moments(
            groups.norm, groups.shift * at.reshape(-1, 1)
        )  # (points, K)
        learned = mean @ groups.use + at.ravel() * (slope @ groups.along)
        return np.asarray(learned.reshape(at.shape))

    def target_along(self, kappa: npt.ArrayLike) -> FloatArray:
        """E[y|κ]: what the best function of the learned direction would be (eq. 6)."""
        at = np.asarray(kappa, dtype=np.float64)
        y0, _, _ = target_moments(self.problem.sigma_star, np.array([self.alignment]), at.ravel())
        return np.asarray(y0[0].reshape(at.shape))

    def as_dict(self) -> dict[str, float | int | list[str]]:
        """The numbers and notes, ready for JSON."""
        numbers: dict[str, float | int | list[str]] = {
            name: float(getattr(self, name)) for name in VARIABLES
        }
        return {**numbers, "iterations": self.iterations, "validity": list(self.validity)}


@overload
def predict(problem: Problem) -> Prediction: ...
@overload
def predict(
    problem: Grid, *, progress: Callable[[int, int], None] | None = None
) -> xarray.Dataset: ...
def predict(
    problem: Problem | Grid, *, progress: Callable[[int, int], None] | None = None
) -> Prediction | xarray.Dataset:
    """Predict train and test errors after one gradient step (theory, section 3).

    One problem gives a `Prediction`; a grid gives an `xarray.Dataset` with the grid's
    coordinates and a `status` for each point ("ok" or the reason there is no number), and
    `progress(done, total)` is called as its points are solved.

    >>> from featurestep import Problem, predict
    >>> p = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01, noise_std=0.1)
    >>> round(predict(p).test_error, 3)
    0.108
    """
    if isinstance(problem, Grid):
        return _predict_grid(problem, progress)
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem or a Grid", problem)
    (outcome,) = solve([problem])
    return prediction(problem, outcome)


def prediction(problem: Problem, outcome: Outcome) -> Prediction:
    """The result of one outcome, or its error raised."""
    if not isinstance(outcome, Solution):
        raise outcome
    return Prediction(
        problem=problem,
        test_error=outcome.test_error,
        train_loss=outcome.train_loss,
        train_mse=outcome.train_mse,
        readout_norm=float(np.sqrt(outcome.norm_squared)),
        alignment=outcome.weights.alignment,
        beta_norm=outcome.weights.beta_norm,
        groups=Groups(
            outcome.g,
            outcome.neurons,
            outcome.shift,
            outcome.norm,
            outcome.use,
            outcome.along,
            outcome.across,
        ),
        residual=outcome.residual,
        iterations=outcome.iterations,
        self_check=outcome.self_check,
        nodes=outcome.nodes,
        validity=validity(problem, outcome.weights),
    )


def _predict_grid(grid: Grid, progress: Callable[[int, int], None] | None) -> xarray.Dataset:
    import xarray

    problems = list(grid)
    table = _Table(len(problems))
    size = len(problems) if progress is None else max(64, len(problems) // 50)
    for start in range(0, len(problems), size):
        part = problems[start : start + size]
        for row, outcome in enumerate(solve(part), start):
            table.record(row, problems[row], outcome)
        if progress is not None:
            progress(min(start + size, len(problems)), len(problems))
    shape, dims = grid.shape, grid.dims
    data = {
        name: (dims, table.numbers[i].reshape(shape), {"long_name": text})
        for i, (name, text) in enumerate(VARIABLES.items())
    }
    return xarray.Dataset(
        {
            **data,
            "status": (dims, np.array(table.status, dtype=object).reshape(shape)),
            "validity": (dims, np.array(table.validity, dtype=object).reshape(shape)),
        },
        coords=grid.coordinates(),
        attrs={"base": repr(grid.base)},
    )


class _Table:
    """Columns of a grid's results; NaN where a status says why."""

    def __init__(self, size: int) -> None:
        self.numbers = np.full((len(VARIABLES), size), np.nan)
        self.status = [""] * size
        self.validity = [""] * size

    def record(self, row: int, problem: Problem, outcome: Outcome) -> None:
        if not isinstance(outcome, Solution):
            self.status[row] = status_of(outcome)
            return
        self.status[row] = "ok"
        self.validity[row] = "\n".join(validity(problem, outcome.weights))
        self.numbers[:, row] = (
            outcome.test_error,
            outcome.train_loss,
            outcome.train_mse,
            outcome.norm_squared**0.5,
            outcome.weights.alignment,
            outcome.residual,
            outcome.self_check,
        )


def status_of(error: FeaturestepError) -> str:
    """A refused point's status: the kind of refusal and its reason."""
    kind = "inconsistent" if isinstance(error, InconsistentSolution) else "not converged"
    return f"{kind}: {error}"
