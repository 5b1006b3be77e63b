"""The engine against the equations transcribed literally, and against the scalar road to step 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from featurestep import Prediction, Problem, limit, predict
from featurestep.functions.quadrature import gauss_hermite, gauss_law
from featurestep.theory import isotropic
from featurestep.theory.exact.fixed_point import ACCEPTED
from featurestep.theory.predict import solve
from featurestep.theory.resolution import Effort
from tests.theory.literal import solve_literally
from tests.theory.roads import arrays_of, groups_of, isotropic_answer, untrained

BASE: dict[str, Any] = {"n": 400, "d": 200, "width": 300, "ridge": 0.1, "noise_std": 0.2}
THREE = ((2.0, 0.1), (0.5, 0.4), (-1.0, 0.5))
CASES: dict[str, dict[str, Any]] = {
    "constant": {"readout": "constant", "step_exponent": 0.4},
    "rademacher, relu": {
        "activation": "relu",
        "target": "H1 + H2/sqrt(2)",
        "readout": "rademacher",
        "step_exponent": 0.3,
    },
    "three values, c_2 E r ≠ 0": {
        "activation": "softplus",
        "target": "relu",
        "readout": THREE,
        "step_exponent": 0.35,
    },
    "three values, full residual": {
        "activation": "tanh",
        "target": "H1 + H3/6",
        "readout": THREE,
        "step_exponent": 0.2,
        "residual": "full",
    },
    "wide": {"readout": "rademacher", "width": 1500, "ridge": 0.01, "step_exponent": 0.25},
    "untrained": {"activation": "gelu", "readout": "constant", "step_size": 0.0},
}


@pytest.mark.parametrize("case", CASES)
def test_engine_solves_the_literal_equations(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same nodes, same groups, two roads: every number agrees."""
    problem = Problem(**{**BASE, **CASES[case]})
    if problem.residual == "full":  # the transcription has weights of norm 1, as theory.md
        weights_of = isotropic.spiked_weights
        norms = weights_of(problem).norm(groups_of(problem)[0])
        assert norms == pytest.approx(1.0, abs=0.05)
        monkeypatch.setattr(
            isotropic,
            "spiked_weights",
            lambda p: replace(weights_of(p), unit_drift=0.0, unit_growth=0.0),
        )
    nodes = gauss_hermite(24)
    found = isotropic_answer(problem, groups_of(problem), nodes)
    literal = solve_literally(arrays_of(problem, nodes))
    given, shrink = found.errors.by_kappa[0], found.solution.at.shrink[0]
    assert found.solution.at.state.v2[0] == pytest.approx(literal.v2, rel=1e-9)
    assert given @ nodes[1] == pytest.approx(literal.test_error, rel=1e-8)
    assert found.fitted.train_loss[0] == pytest.approx(literal.train_loss, rel=1e-8)
    assert (given * shrink**2) @ nodes[1] == pytest.approx(literal.train_mse, rel=1e-8)
    assert found.errors.readout_squares[0].sum() == pytest.approx(literal.norm_squared, rel=1e-8)


@example(phi=20.0, psi=20.0, ridge=1e-5, noise=0.35, activation="H1 + H2", target="tanh")
@given(
    phi=st.floats(0.05, 20.0),
    psi=st.floats(0.05, 20.0),
    ridge=st.floats(1e-5, 10.0),
    noise=st.floats(0.0, 1.0),
    activation=st.sampled_from(["tanh", "relu", "gelu", "sin", "H1 + H2", "abs", "identity"]),
    target=st.sampled_from(["tanh", "H1 + 0.5*H2", "relu", "H3 + H1"]),
)
def test_step_zero_equals_the_scalar_road(
    phi: float, psi: float, ridge: float, noise: float, activation: str, target: str
) -> None:
    problem = Problem.from_ratios(
        phi=phi,
        psi=psi,
        n=1000,
        ridge=ridge,
        noise_std=noise,
        activation=activation,
        target=target,
        step_size=0.0,
        centre=True,
    )
    prediction = predict(problem, method="isotropic")
    expected = untrained(problem)
    assert prediction.train_loss == pytest.approx(expected.train_loss, rel=1e-8)
    assert prediction.test_error == pytest.approx(expected.test_error, rel=1e-7)


def test_published_check_value() -> None:
    """Of the limit: at d = 10,000 terms of order 1/d are just visible."""
    problem = Problem(
        n=2_000_000,
        d=1_000_000,
        width=1_500_000,
        step_size=0.0,
        ridge=0.01,
        noise_std=0.1,
        readout="constant",
    )
    prediction = predict(problem)
    assert prediction.test_error == pytest.approx(0.1594, abs=5e-5)
    assert prediction.train_loss == pytest.approx(0.0413, abs=5e-5)


@pytest.mark.parametrize("method", ["isotropic", "exact"])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("readout", ["gaussian", "rademacher", "uniform"])
@pytest.mark.parametrize("n_step_ratio", [1, 300])
def test_large_sizes_approach_the_limit(
    degree: int, readout: str, n_step_ratio: int, method: str
) -> None:
    """Inside regime ℓ the gap to limit(ℓ) closes at the rate of the two nearest spikes.

    Spike k has strength N u^{2k}: with α = ½ − 1/(2ℓ+1) both the last learned and the first
    unlearned one are n^{1/(2ℓ+1)} away from the threshold. The change of the neurons' norms
    belongs to that limit; with n_step ≫ d it is the published one. Both methods have the same
    limit: norms of samples, which only exact weights have, weigh on A like 1/V2 does and make the
    gap larger (ℓ = 2: by a half), at the same rate.
    """
    base = Problem.from_ratios(
        phi=0.5,
        psi=0.7,
        n=1000,
        activation="relu",
        centre=True,
        target="H1 + 0.5*H2 + 0.3*H3",
        readout=readout,
        step_exponent=0.5 - 1 / (2 * degree + 1),
        ridge=0.03,
        noise_std=0.3,
    )
    gaps = []
    sizes = (10**9, 3 * 10**12)
    for n in sizes:
        problem = base.replace(n=n, d=n // 2, width=round(n / 1.4), n_step=n * n_step_ratio)
        expected = limit(problem, norm_growth=True)
        assert expected.degree == degree
        prediction = predict(problem, method=method)
        gaps.append(
            max(
                abs(prediction.test_error / expected.test_error - 1.0),
                abs(prediction.train_loss / expected.train_loss - 1.0),
            )
        )
    published = limit(problem, norm_growth=False)
    assert n_step_ratio == 1 or published.test_error == pytest.approx(expected.test_error, rel=2e-3)
    assert gaps[1] < 0.05
    assert gaps[1] < 2.0 * gaps[0] * (sizes[0] / sizes[1]) ** (1 / (2 * degree + 1))


def test_gauss_and_stretched_rules_of_the_law_agree() -> None:
    """Few Gauss nodes for small shifts, a stretched rule for large ones: no seam between."""
    problem = Problem(**{**BASE, "step_exponent": 0.1, "readout": "gaussian"})
    nodes = gauss_hermite(60)
    expected = isotropic_answer(problem, gauss_law("gaussian", 25), nodes).errors.by_kappa[0]
    found = predict(problem, method="isotropic").test_error
    assert found == pytest.approx(float(expected @ nodes[1]), rel=1e-7)


def test_ridgeless_works_on_both_sides_of_interpolation() -> None:
    for width in (100, 1600):
        errors = [
            predict(Problem(**{**BASE, "width": width, "ridge": ridge, "step_exponent": 0.3}))
            for ridge in (1e-8, 1e-10)
        ]
        assert errors[0].test_error == pytest.approx(errors[1].test_error, rel=1e-4)
    peak = [
        predict(Problem(**{**BASE, "width": 400, "ridge": ridge, "step_size": 0.0})).test_error
        for ridge in (1e-4, 1e-6, 1e-8)
    ]
    assert peak[2] > 5 * peak[1] > 25 * peak[0]  # double descent: like 1/√λ at N = n


def test_rounding_that_spoils_a_newton_step_from_the_top_is_passed() -> None:
    """Features of 10¹⁰ beside features of 1: the response is singular to rounding there."""
    problem = Problem(
        activation="H1 + H2/2 - 0.2*H4",
        target="relu",
        n=125_819,
        d=7255,
        width=287,
        step_exponent=0.471930176827318,
        ridge=0.004028185080897305,
        noise_std=0.1,
        centre=True,
    )
    usual, fine = (
        solve([problem], effort=effort, method="isotropic")[0]
        for effort in (None, Effort(2.0, 1.5))
    )
    assert isinstance(usual, Prediction)
    assert isinstance(fine, Prediction)
    assert usual.solver_residual <= ACCEPTED
    assert fine.test_error == pytest.approx(usual.test_error, rel=1e-6)
