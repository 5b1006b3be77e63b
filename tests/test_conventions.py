"""Converters against the programs and formulas that they convert from, written out literally."""

from __future__ import annotations

import math

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem
from featurestep.conventions import LOSSES, SCALES, rescaled, ridge_from, step_size_from

N_SAMPLES, N_WIDTH, N_DIM = 40, 25, 12
RNG = np.random.default_rng(7)
F = RNG.standard_normal((N_SAMPLES, N_WIDTH))
Y = RNG.standard_normal(N_SAMPLES)


def here(ridge: float) -> np.ndarray:
    """argmin (1/n)‖y − Fa‖² + λ‖a‖²."""
    return np.linalg.solve(F.T @ F / N_SAMPLES + ridge * np.eye(N_WIDTH), F.T @ Y / N_SAMPLES)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("features", SCALES)
@pytest.mark.parametrize("half_penalty", [False, True])
def test_ridge_gives_the_fit_of_the_other_loss(
    loss: str, features: str, half_penalty: bool
) -> None:
    """The other objective, minimised as it stands, computes the same outputs."""
    c = {"half_mean": 0.5 / N_SAMPLES, "mean": 1 / N_SAMPLES, "half_sum": 0.5, "sum": 1.0}[loss]
    s = {"plain": 1.0, "over_sqrt_width": N_WIDTH**-0.5, "over_width": 1 / N_WIDTH}[features]
    p = 0.3 * (0.5 if half_penalty else 1.0)
    seen = s * F
    theirs = np.linalg.solve(c * seen.T @ seen + p * np.eye(N_WIDTH), c * seen.T @ Y)
    ridge = ridge_from(
        0.3, n=N_SAMPLES, width=N_WIDTH, loss=loss, half_penalty=half_penalty, features=features
    )
    np.testing.assert_allclose(F @ here(ridge), seen @ theirs, rtol=1e-10)


def test_ridge_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    fitted = linear_model.Ridge(alpha=3.0, fit_intercept=False).fit(F, Y)
    np.testing.assert_allclose(
        fitted.coef_, here(ridge_from(3.0, n=N_SAMPLES, width=N_WIDTH)), rtol=1e-8
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("output", SCALES)
@pytest.mark.parametrize("readout", SCALES)
@pytest.mark.parametrize("norm", [1.0, 2.5])
def test_step_gives_the_weights_of_the_other_network(
    loss: str, output: str, readout: str, norm: float
) -> None:
    """One literal gradient step of their network, and ours with the converted step."""
    c = {"half_mean": 0.5 / N_SAMPLES, "mean": 1 / N_SAMPLES, "half_sum": 0.5, "sum": 1.0}[loss]
    scale = {"plain": 1.0, "over_sqrt_width": N_WIDTH**-0.5, "over_width": 1 / N_WIDTH}
    rng = np.random.default_rng(3)
    X, g = rng.standard_normal((N_SAMPLES, N_DIM)), rng.standard_normal(N_WIDTH)
    W0 = rng.standard_normal((N_WIDTH, N_DIM))
    W0 *= norm / np.linalg.norm(W0, axis=1, keepdims=True)
    a = g * scale[readout]

    def slope(z: np.ndarray) -> np.ndarray:
        return 1.0 - np.tanh(z) ** 2

    # −∇ of c Σ (y − s a·tanh(Wx))² where the output inside the residual is left out
    gradient = 2.0 * c * scale[output] * ((a[:, None] * Y) * slope(W0 @ X.T)) @ X
    theirs = W0 + 0.7 * gradient

    eta = step_size_from(
        0.7,
        width=N_WIDTH,
        n_step=N_SAMPLES,
        loss=loss,
        output=output,
        readout=readout,
        row_norm=norm,
    )
    sigma = rescaled("tanh", norm)
    U0 = W0 / norm
    G = ((g[:, None] / N_WIDTH**0.5 * Y) * sigma.derivative(U0 @ X.T)) @ X / N_SAMPLES
    np.testing.assert_allclose(sigma((U0 + eta * G) @ X.T), np.tanh(theirs @ X.T), rtol=1e-9)


def test_rows_of_norm_root_d_on_inputs_over_root_d() -> None:
    """w·x/√d with w ~ N(0, I): the learning rate is d times ours."""
    eta = step_size_from(5.0, width=30, n_step=60, row_norm=20**0.5)
    assert eta == pytest.approx(5.0 / 20)


def test_a_rescaled_kink_moves() -> None:
    assert rescaled("hard_tanh", 2.0).kinks == (-0.5, 0.5)
    assert rescaled("tanh", 1.0) is rescaled("tanh", 1.0)
    problem = Problem(
        activation=rescaled("relu", 3.0), n=300, d=100, width=200, step_exponent=0.2, ridge=0.1
    )
    assert problem.sigma.second_moment == pytest.approx(9 * 0.5)


def test_moniri() -> None:
    found = Problem.from_moniri(n=1000, d=300, N=500, alpha=0.2, lambda_=0.1, activation="relu")
    same = Problem(
        activation="relu", n=1000, n_step=1000, d=300, width=500, step_exponent=0.2, ridge=0.1
    )
    assert found == same
    assert found.readout == "gaussian"


def test_ba_by_its_own_formulas() -> None:
    """W₁ = W₀ + η√N G with G of f = aᵀσ(Wx)/√N, a_j = g_j/√N, and (λ/N)‖a‖²."""
    n, d, width, eta, lam = 50, 20, 30, 2.0, 0.4
    found = Problem.from_ba(n=n, d=d, N=width, eta=eta, lambda_=lam)
    assert found.initial == "gaussian"
    assert found.residual == "labels"
    a = 1.0 / math.sqrt(width)  # of g = 1
    theirs = eta * math.sqrt(width) * (1.0 / math.sqrt(width)) * a  # on (1/n) Σ y σ′ x
    assert found.step_size / math.sqrt(width) == pytest.approx(theirs)
    # b = a/√N: (λ/N)‖a‖² = λ‖b‖²
    assert found.ridge == pytest.approx(lam)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: ridge_from(1.0, n=10, width=5, loss="huber"), "loss"),
        (lambda: ridge_from(1.0, n=10, width=5, features="odd"), "features"),
        (lambda: ridge_from(-1.0, n=10, width=5), "penalty"),
        (lambda: step_size_from(1.0, n_step=10, width=5, output="odd"), "output"),
        (lambda: step_size_from(math.nan, n_step=10, width=5), "learning_rate"),
        (lambda: rescaled("tanh", 0.0), "factor"),
        (
            lambda: Problem.from_moniri(n=9, d=9, N=9, alpha=0.1, lambda_=1.0, width=3),
            "width",
        ),
        (lambda: Problem.from_ba(n=9, d=9, N=9, eta=1.0, lambda_=1.0, ridge=1.0), "ridge"),
    ],
)
def test_refusals_name_the_parameter(make: object, parameter: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        make()  # type: ignore[operator]
    assert caught.value.parameter == parameter
