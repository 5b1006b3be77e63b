"""Predictions for readouts that are fitted on rows of the step: sections 26–29."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import FeaturestepError, InvalidProblem, NotConverged
from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ..exact.convex import Unknowns
from ..exact.errors import fitted_bulk_gram
from ..exact.sectors import Forms
from ..exact.solve import LossNetwork, SolvedNetwork, joined_groups, step_of
from ..exact.step import ProblemRow, Step
from ..prediction import LossPrediction, Outcome, Prediction, checked, checked_loss
from ..resolution import Effort
from .features import StepNumbers, other_features, step_features
from .fixed_point import (
    Gradients,
    Pencil,
    PencilEvaluation,
    PencilSolution,
    add_gradients_of_map,
    carried_back,
    solve,
    solve_adjoint,
)
from .readout import PencilReadout, add_gradients_of_objective, fit
from .rows import other_rows, step_rows
from .rules import RowRules, choose_rules


def solve_reused(problem: Problem, effort: Effort, any_loss: bool = False) -> Outcome:
    """The prediction for a problem with rows `same` or `half`, or the error that refuses it.

    With `any_loss`, or an intercept, it is that of any loss.
    """
    try:
        require_known_rows(problem)
        rules = choose_rules(problem, effort.nodes)
        found = solve_rows(problem, rules, Shares.of(problem))
        if any_loss or problem.intercept:
            return checked_loss(found.loss_prediction())
        return checked(found.prediction())
    except FeaturestepError as error:
        return error
    except np.linalg.LinAlgError as error:
        return NotConverged(f"a linear system was singular ({error})")


def require_known_rows(problem: Problem) -> None:
    """Refuse what is not known for readouts on rows of the step."""
    if problem.residual != "labels":
        rule = (
            f"must be labels with rows {problem.rows} (with the full residual a row's features "
            "depend on its initial output too, which is known for fresh rows only)"
        )
        raise InvalidProblem("residual", rule, problem.residual)
    if problem.teacher is not None:
        rule = f"must have one direction with rows {problem.rows}"
        raise InvalidProblem("target", rule, problem.target)


@dataclass(frozen=True)
class Shares:
    """Rows of the step alone, of both and of the readout alone."""

    step: float
    both: float
    readout: float

    @classmethod
    def of(cls, problem: Problem) -> Shares:
        """Those of a problem."""
        both = problem.shared_rows
        return cls(problem.n_step - both, both, problem.n - both)


def build_pencil(
    problem: Problem, step: Step, rules: RowRules, shares: Shares, samples: float | None = None
) -> Pencil:
    """The rows of a problem, by classes, with their features.

    With `samples`, target and noise are cut off at the largest value of so many draws.
    """
    numbers = StepNumbers.of(step, problem.sigma)
    star, noise = problem.sigma_star, problem.noise_std
    direction = float(step.alignment[0]), float(step.across[0])
    total = shares.step + shares.both
    seen = step_rows(
        star,
        noise,
        *direction,
        rules.kappa,
        rules.residuals,
        readout_share=shares.both / total,
        samples=samples,
    )
    classes = [(seen, step_features(numbers, seen, rules.pre_activation))]
    if shares.readout:
        share = shares.readout / total
        rows = other_rows(
            star, noise, *direction, rules.kappa, readout_share=share, samples=samples
        )
        classes.append((rows, other_features(numbers, rules.kappa)))
    return Pencil(numbers, problem.n * problem.ridge, classes, problem.intercept)


@dataclass(frozen=True)
class PencilErrors:
    """Errors of a readout that was fitted on rows of any class."""

    train_loss: float
    train_mse: float
    readout_squares: FloatArray  # (K,) P_g
    bulk_gram: FloatArray  # (K, K) Q_gh of (13), on test rows


def solve_errors(at: PencilEvaluation, fitted: PencilReadout, n: int) -> PencilErrors:
    """Errors by one adjoint solution, whatever the source (eqs. 68, 69).

    A source on test rows enters (59) and (60) as a class of rows does: its derivative is that of
    the loss by Ξ_φφ and by the denominators of V2, hence P_g and Q. With weight w² on the training
    rows it is the derivative by w of everything but χ.
    """
    size, n_step = at.pencil.groups, at.pencil.step.n_step
    total = Gradients.zero(at)
    add_gradients_of_objective(at, fitted, total)
    adjoint = solve_adjoint(at, carried_back(at, total))
    add_gradients_of_map(at, adjoint, total)
    ratio = n_step / n
    parts = zip(total.classes, at.classes, strict=True)
    mse = ratio * sum(float((out.shrink * own.shrink**2).sum()) for out, own in parts)
    pull = -n_step * adjoint.log_v2 / at.demand
    bulk = slice(size, 2 * size)
    both = 0.5 * (pull[:, None] + pull) * at.gamma[bulk, bulk] - adjoint.xi[bulk, bulk]
    root = at.root * at.pencil.step.row_norm
    gram = root[:, None] * both * root
    return PencilErrors(ratio * fitted.objective, mse, pull * at.v2, gram)


def predict_rows(problem: Problem, rules: RowRules, shares: Shares) -> Prediction:
    """The prediction for one problem without intercept, not checked."""
    return solve_rows(problem, rules, shares).prediction()


def solve_rows(problem: Problem, rules: RowRules, shares: Shares) -> SolvedRows:
    """Solve one problem with given rows."""
    step = step_of([ProblemRow(problem)], rules.groups.rule, rules.residuals, "exact", higher=False)
    found = solve(build_pencil(problem, step, rules, shares))
    fitted = fit(found.at)
    return SolvedRows(
        problem, step, rules, found, fitted, solve_errors(found.at, fitted, problem.n)
    )


@dataclass(frozen=True)
class SolvedRows:
    """A solved problem, and what it predicts."""

    problem: Problem
    step: Step
    rules: RowRules
    found: PencilSolution
    fitted: PencilReadout
    errors: PencilErrors

    def prediction(self) -> Prediction:
        """Of the square loss."""
        rows, errors = [ProblemRow(self.problem)], self.errors
        network = SolvedNetwork(
            rows,
            self.rules.groups.rule,
            self.rules.residuals,
            "exact",
            self._fields.reshape(1, -1),
            errors.readout_squares[None],
            Forms(errors.bulk_gram[None, None]),
        )
        kappa, weight = self.rules.test
        return Prediction(
            **self._common,
            test_error=float(network.error(kappa) @ weight),
            train_loss=errors.train_loss,
            train_mse=errors.train_mse,
            test_error_sd=0.0,
            network=network,
        )

    def loss_prediction(self) -> LossPrediction:
        """The same as that of any loss, ½(y − f)² here, with an intercept or without."""
        errors, at = self.errors, self.found.at
        size = at.pencil.groups
        bulk = slice(size, 2 * size)
        fields, a = self._fields.reshape(1, -1), at.pencil.step.row_norm
        gram = errors.bulk_gram[None] + fitted_bulk_gram(self.step, fields)
        unknowns = Unknowns(
            v2=at.v2[None],
            phi_phi=(a[:, None] * at.g[bulk, bulk] * a)[None],
            xi=np.zeros((1, 2 * size, 2 * size)),
            coefficients=fields,
            intercept=np.array([self._intercept]),
            relative=(errors.readout_squares / at.v2)[None],
            bulk=gram / np.sqrt(at.v2[:, None] * at.v2),
            xi_change=np.zeros((1, 2 * size, 2 * size)),
        )
        network = LossNetwork(self.problem, np.ones(1), self.step, unknowns)
        test_loss, test_error, _ = map(float, network.errors_with(0.0))
        return LossPrediction(
            **self._common,
            test_loss=test_loss,
            train_loss=0.5 * errors.train_mse,
            train_objective=0.5 * errors.train_loss,
            test_error=test_error,
            train_error=errors.train_mse,
            intercept=self._intercept,
            network=network,
        )

    @property
    def _common(self) -> dict[str, Any]:
        """What predictions of any kind have."""
        problem, step, errors = self.problem, self.step, self.errors
        weights, square = spiked_weights(problem), float(errors.readout_squares.sum())
        check = abs((errors.train_mse + problem.ridge * square) / errors.train_loss - 1.0)
        return {
            "problem": problem,
            "readout_norm": float(np.sqrt(max(square, 0.0))),
            "alignment": weights.alignment,
            "beta_norm": weights.beta_norm,
            "groups": joined_groups(
                *(self.rules.groups, step.neurons[0], step.shift[0], step.norm[0]),
                *(self._fields, 1),
            ),
            "method": "exact",
            "solver_residual": self.found.residual,
            "iterations": self.found.iterations,
            "self_check": float(check),
            "nodes": int(self.rules.kappa.size),
        }

    @property
    def _intercept(self) -> float:
        return float(self.fitted.coefficients[self.fitted.fields.intercept].sum())

    @property
    def _fields(self) -> FloatArray:
        """The fields A, τ, ψ and Δ¹ that test rows see, (4, K), in the units of (29)."""
        at, places, x = self.found.at, self.fitted.fields, self.fitted.coefficients
        size, a = at.pencil.groups, at.pencil.step.row_norm
        bulk = slice(size, 2 * size)
        unit = a * at.root / np.sqrt(at.pencil.step.n_step)
        star, beside = unit * x[places.star][bulk], unit * x[places.beside][bulk]
        gamma, q = self.step.alignment[0], self.step.across[0]
        return np.stack(
            [
                x[places.means],
                gamma * star + q * beside,
                q * star - gamma * beside,
                a * unit * x[places.norms[0]],
            ]
        )
