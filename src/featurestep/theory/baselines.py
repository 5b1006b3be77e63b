"""Baselines: what simpler predictors reach on the same data, and what none can beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core.errors import InvalidProblem
from ..core.problem import Grid, Problem
from ..core.results import LOSS, Note, Progress, Result, has_other_loss, over_grid, verb
from ..core.spiked import linear_part, spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import Nonlinearity, coefficients, gaussian_panels
from ..functions.quadrature import trapezoid_normal
from ..functions.targets import AlignedTarget, MeanSign
from .labels import label_moments, left_by_kappa
from .limits import linear_and_rest
from .predict import predict, solve
from .prediction import LossPrediction, Outcome, answered_loss
from .validity import size_notes

_WIDE = 10**8  # neurons for each input, where a network stands for its inputs
_RIDGES = (1e-4, 1e2)  # over which a ridge is tuned
_RIDGE_POINTS = 9
_RIDGE_PRECISION = 0.1  # of its logarithm
_FAR, _KAPPA_SPACING = 8.0, 0.005  # κ, where its best function has corners


@dataclass(frozen=True, eq=False, repr=False)
class Baselines(Result):
    """Test errors, noise included, of predictors to compare the trained network with."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "untrained": "the same network with step 0 (random features)",
        "ridge_n": "ridge regression on the raw inputs, n samples, the same ridge",
        "ridge_n_tuned": "the same with its best ridge",
        "ridge_all": (
            "ridge regression on the raw inputs, all samples (n + n_step, or n with rows same)"
        ),
        "ridge_all_tuned": "the same with its best ridge",
        "best_linear": "the best linear function of x",
        "best_affine": "the best linear function of x plus a constant",
        "best_given_direction": "the best function of κ, the input along the learned direction",
        "best_given_direction_and_linear": (
            "the best function of κ, plus the target's other directions times functions of κ: "
            "no readout of these features reaches less while n and N are far below d²"
        ),
        "noise_floor": "the variance of the label noise",
    }

    problem: Problem
    untrained: float
    ridge_n: float
    ridge_n_tuned: float
    ridge_all: float
    ridge_all_tuned: float
    best_linear: float
    best_affine: float
    best_given_direction: float
    best_given_direction_and_linear: float
    noise_floor: float

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the untrained network's error; the other numbers are exact as n → ∞."""
        return size_notes(self.problem)


@dataclass(frozen=True, eq=False, repr=False)
class LossBaselines(Result):
    """The same with any loss, or with an intercept.

    Errors are shares of wrong signs, of real labels squares with the noise.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "untrained": "the same network with step 0 (random features), the same loss",
        "untrained_loss": "its mean loss on fresh samples",
        "linear_n": "the same loss on the raw inputs (logistic: logistic regression), n samples, "
        "the same ridge",
        "linear_n_loss": "its mean loss on fresh samples",
        "linear_n_tuned": "the same with the ridge that makes its error least",
        "linear_all": (
            "the same loss on the raw inputs, all samples (n + n_step, or n with rows same)"
        ),
        "linear_all_tuned": "the same with the ridge that makes its error least",
        "best_linear": "the best linear function of x, or sign of one",
        "best_affine": "the best linear function of x plus a constant, or sign of one",
        "best_given_direction": "the best function of κ, the input along the learned direction",
        "bayes_error": "the least error of any predictor",
    }

    problem: Problem
    untrained: float
    untrained_loss: float
    linear_n: float
    linear_n_loss: float
    linear_n_tuned: float
    linear_all: float
    linear_all_tuned: float
    best_linear: float
    best_affine: float
    best_given_direction: float
    bayes_error: float

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the untrained network's error; the other numbers are exact as n → ∞."""
        return size_notes(self.problem)


@verb(LOSS, {"rows", "intercept"})
def baselines(
    problem: Problem | Grid, *, progress: Progress | None = None
) -> Any:  # Baselines or LossBaselines, by the loss, or a GridResult
    """Test errors of the baselines, for one problem or every point of a grid.

    With another loss than the square, or an intercept, they are `LossBaselines`.
    """
    if isinstance(problem, Grid):
        if has_other_loss(problem):
            return over_grid(LossBaselines, problem, _loss_baselines, progress)
        return over_grid(Baselines, problem, baselines, progress)
    if not problem.has_square_loss:
        return _loss_baselines(problem)
    return baselines_given(problem, predict(untrained(problem)).test_error)


def untrained(problem: Problem) -> Problem:
    """The same problem without the step."""
    return problem.replace(step_size=0.0, residual="labels")


def baselines_given(problem: Problem, untrained_error: float) -> Baselines:
    """The baselines, with the untrained network's test error as given (section 9)."""
    noise = problem.noise_std**2
    signal, rest = _linear_signal(problem, problem.star)
    never, linear_beside = left_by_kappa(problem)
    few, many = problem.phi, problem.d / _all_rows(problem)
    return Baselines(
        problem=problem,
        untrained=untrained_error,
        ridge_n=linear_ridge_error(signal, rest, few, problem.ridge),
        ridge_n_tuned=tuned_ridge(problem),
        ridge_all=linear_ridge_error(signal, rest, many, problem.ridge),
        ridge_all_tuned=tuned_ridge_error(signal, rest, many),
        best_linear=rest,
        best_affine=max(rest - linear_part(problem.star)[0] ** 2, noise),
        best_given_direction=never + linear_beside + noise,
        best_given_direction_and_linear=never + noise,
        noise_floor=noise,
    )


def _loss_baselines(problem: Problem) -> LossBaselines:
    """The baselines with any loss; the linear ones and the untrained network by section 31."""
    still, few, many = (
        answered_loss(outcome)
        for outcome in solve(
            [untrained(problem), on_inputs(problem, problem.n), _on_all_inputs(problem)],
            any_loss=True,
        )
    )
    best = _best_signs(problem) if problem.is_binary else _best_squares(problem)
    return LossBaselines(
        problem=problem,
        untrained=still.test_error,
        untrained_loss=still.test_loss,
        linear_n=few.test_error,
        linear_n_loss=few.test_loss,
        linear_n_tuned=tuned_error(on_inputs(problem, problem.n)),
        linear_all=many.test_error,
        linear_all_tuned=tuned_error(_on_all_inputs(problem)),
        **best,
    )


def on_inputs(problem: Problem, n: int) -> Problem:
    """The same loss and ridge on n raw inputs, as an untrained network.

    With σ(z) = z and N ≫ d neurons f = w·x has any w, and the least ‖a‖² with w = W0ᵀa is
    (d/N)‖w‖²: the ridge is that of w times N/d.
    """
    width = _WIDE * problem.d
    changes = {"activation": "H1", "centre": False, "initial": "sphere", "width": width, "n": n}
    return untrained(problem).replace(**changes, ridge=problem.ridge * _WIDE)


def _on_all_inputs(problem: Problem) -> Problem:
    return on_inputs(problem, _all_rows(problem))


def tuned_error(problem: Problem) -> float:
    """The least test error over the ridge, to about 1e-3 of it: a grid, then Brent's method."""

    def errors(logs: FloatArray) -> FloatArray:
        problems = [problem.replace(ridge=_WIDE * float(np.exp(log))) for log in logs]
        return np.array([_test_error(outcome) for outcome in solve(problems, any_loss=True)])

    low, high = np.log(_RIDGES)
    logs = np.linspace(low, high, _RIDGE_POINTS)
    found = errors(logs)
    at = int(found.argmin())
    from scipy import optimize  # slow to load

    near = optimize.minimize_scalar(
        lambda log: errors(np.array([log]))[0],
        bounds=(logs[max(at - 1, 0)], logs[min(at + 1, logs.size - 1)]),
        method="bounded",
        options={"xatol": _RIDGE_PRECISION},
    )
    return float(min(near.fun, found.min()))


def _test_error(outcome: Outcome) -> float:
    """The test error; infinite where it is refused."""
    return outcome.test_error if isinstance(outcome, LossPrediction) else np.inf


def _best_signs(problem: Problem) -> dict[str, float]:
    """Least shares of wrong signs: of half-spaces, of functions of κ, of any function.

    The label depends on t = β⋆·x alone, and a half-space in another direction is the mean of some
    in this one. Of them those are best whose border is where both labels are equally likely.
    """
    star = problem.star
    assert isinstance(star, MeanSign)
    t, w = gaussian_panels(star)
    positive = star.probability(t)

    def half_space(border: float) -> float:
        error = float(w @ np.where(t > border, 1.0 - positive, positive))
        return min(error, 1.0 - error)

    kappa, weight = trapezoid_normal(_FAR, _KAPPA_SPACING)
    gamma = np.array([spiked_weights(problem).alignment])
    given = 0.5 * (1.0 + label_moments(star, gamma, kappa).mean[0])
    return {
        "best_linear": half_space(0.0),
        "best_affine": min(map(half_space, (*star.kinks, -np.inf))),
        "best_given_direction": float(weight @ np.minimum(given, 1.0 - given)),
        "bayes_error": float(w @ np.minimum(positive, 1.0 - positive)),
    }


def _best_squares(problem: Problem) -> dict[str, float]:
    """Least squared errors, as for the square loss."""
    noise = problem.noise_std**2
    rest = _linear_signal(problem, problem.star)[1]
    return {
        "best_linear": rest,
        "best_affine": max(rest - linear_part(problem.star)[0] ** 2, noise),
        "best_given_direction": sum(left_by_kappa(problem)) + noise,
        "bayes_error": noise,
    }


def _all_rows(problem: Problem) -> int:
    """Rows of the step and of the readout."""
    return problem.n + problem.n_step - problem.shared_rows


def marchenko_pastur(phi: float, lam: float) -> tuple[float, float]:
    """(1/d)tr(S + λ)⁻¹ and (1/d)tr(S + λ)⁻² for S = XᵀX/n, d/n = φ."""
    b = 1.0 - phi + lam
    root = float(np.hypot(b, 2.0 * np.sqrt(phi * lam)))
    m = 2.0 / (b + root) if b > 0 else (root - b) / (2.0 * phi * lam)
    return m, (phi * m**2 + m) / root


def linear_ridge_error(signal: float, rest: float, phi: float, lam: float) -> float:
    """Test error of ridge regression on isotropic inputs.

    `signal` is the squared norm of the linear part and `rest` the variance of everything else,
    which acts as noise: rest·(1 + φ(m − λm₂)) + signal·λ²m₂.
    """
    m, m_square = marchenko_pastur(phi, lam)
    return rest * (1.0 + phi * (m - lam * m_square)) + signal * lam**2 * m_square


def tuned_ridge_error(signal: float, rest: float, phi: float) -> float:
    """The same at the best ridge, λ = φ·rest/signal."""
    if signal == 0.0:
        return rest
    return linear_ridge_error(signal, rest, phi, max(phi * rest / signal, 1e-12))


def tuned_ridge(problem: Problem) -> float:
    """Test error of ridge regression on the problem's n inputs, at its best ridge."""
    return tuned_ridge_error(*_linear_signal(problem, problem.star), problem.phi)


def kernel_error(problem: Problem) -> float:
    """Test error of kernel ridge regression on the problem's n samples, in high dimension.

    With infinitely many neurons the untrained network is kernel ridge regression with
    K(x, x′) = E_w σ(w·x)σ(w·x′), the arc-cosine kernel for a ReLU. With samples in proportion to
    the dimension K is, up to terms that do not matter, c_1² x·x′/d off the diagonal and that plus
    c_{>1}² = Eσ² − c_0² − c_1² on it (σ centred). Such a kernel is linear: features c_1 x/√d, and
    c_{>1}² acts as further ridge.

    The ridge is that of the infinitely wide network: features σ(w_j·x)/√N and a readout √N·a, so
    that λ‖a‖² is (λ/N)‖√N a‖², with λ/N kept as N grows. In f(x) = θ·x this is ridge regression
    with λ_lin = φ(λn/N + c_{>1}²)/c_1².
    """
    signal, noise = _linear_signal(problem, problem.sigma_star)
    linear, rest = linear_and_rest(problem.sigma)
    if abs(coefficients(problem.sigma, 0)[0]) > 1e-9 or linear == 0.0:
        raise InvalidProblem("activation", "must be centred, with c_1 ≠ 0", problem.activation)
    lam = problem.phi * (problem.ridge * problem.n / problem.width + rest) / linear
    return linear_ridge_error(signal, noise, problem.phi, lam)


def _linear_signal(problem: Problem, star: Nonlinearity | AlignedTarget) -> tuple[float, float]:
    """Squared norm of the target's linear part, and the variance of all else, noise included."""
    signal = linear_part(star)[1] ** 2
    return signal, max(star.second_moment - signal, 0.0) + problem.noise_std**2
