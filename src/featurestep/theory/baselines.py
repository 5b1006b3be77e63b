"""Baselines: what simpler predictors reach on the same data, and what none can beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.errors import InvalidProblem
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Note, Progress, Result, over_grid, verb
from ..core.spiked import linear_part
from ..functions.nonlinearity import Nonlinearity, coefficients
from ..functions.targets import AlignedTarget
from .labels import left_by_kappa
from .limits import linear_and_rest
from .predict import predict
from .validity import size_notes


@dataclass(frozen=True, eq=False, repr=False)
class Baselines(Result):
    """Test errors, noise included, of predictors to set the trained network against."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "untrained": "the same network with step 0 (random features)",
        "ridge_n": "ridge regression on the raw inputs, n samples, the same ridge",
        "ridge_n_tuned": "the same with its best ridge",
        "ridge_all": "ridge regression on the raw inputs, n + n_step samples, the same ridge",
        "ridge_all_tuned": "the same with its best ridge",
        "best_linear": "the best linear function of x",
        "best_affine": "the best linear function of x plus a constant",
        "best_given_direction": "the best function of κ, the input along the learned direction",
        "best_given_direction_and_linear": (
            "the best function of κ, plus the target's other directions times functions of κ: "
            "no readout of these features reaches less"
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


@verb()
def baselines(
    problem: Problem | Grid, *, progress: Progress | None = None
) -> Baselines | GridResult:
    """Test errors of the baselines, for one problem or every point of a grid."""
    if isinstance(problem, Grid):
        return over_grid(Baselines, problem, baselines, progress)
    return baselines_given(problem, predict(untrained(problem)).test_error)


def untrained(problem: Problem) -> Problem:
    """The same problem without the step."""
    return problem.replace(step_size=0.0, residual="labels")


def baselines_given(problem: Problem, untrained_error: float) -> Baselines:
    """The baselines, with the untrained network's test error as given (section 9)."""
    noise = problem.noise_std**2
    signal, rest = _linear_signal(problem, problem.star)
    never, linear_beside = left_by_kappa(problem)
    few, many = problem.phi, problem.d / (problem.n + problem.n_step)
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
