"""The published limits: closed forms and the engine's regression are two roads to one number."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestep import InvalidProblem, Problem, function, limit, predict
from featurestep.core.spiked import spiked_weights
from featurestep.theory.limits import learned_powers, spike_functions, traces
from tests.theory.roads import closed_test_gain, closed_train_gain, without_higher_degrees

SHIFTED = function(lambda s: np.tanh(s + 0.5), name="shifted_tanh")
BASE = Problem(n=1000, d=500, width=700, step_exponent=0.1, ridge=0.03, noise_std=0.3)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    c = [draw(st.floats(-1.0, 1.0)) for _ in range(4)]
    return Problem.from_ratios(
        phi=draw(st.floats(0.1, 5.0)),
        psi=draw(st.floats(0.1, 5.0)),
        phi_step=draw(st.floats(0.05, 5.0)),
        n=10_000,
        activation=draw(
            st.sampled_from(["relu", "softplus", "gelu", "H1 + H2/2 + H3/3 + H4/9", SHIFTED])
        ),
        centre=True,
        target=f"{1.0 + abs(c[0])}*H1 + ({c[1]})*H2 + ({c[2]})*H3 + ({c[3]})*H4",
        ridge=draw(st.floats(1e-4, 10.0)),
        noise_std=draw(st.floats(0.0, 1.0)),
        step_exponent=0.1,
        residual=draw(st.sampled_from(["labels", "full"])),
    )


@given(problems(), st.integers(1, 6))
def test_train_gains_equal_the_closed_form(problem: Problem, degree: int) -> None:
    ours = limit(problem, degree)
    assert ours.train_gain == pytest.approx(closed_train_gain(problem, degree), rel=1e-8)


@given(problems(), st.integers(1, 6))
def test_test_gains_equal_the_closed_form(problem: Problem, degree: int) -> None:
    assert limit(problem, degree).test_gain == pytest.approx(
        closed_test_gain(problem, degree), rel=1e-8
    )


@given(problems())
def test_first_two_test_gains_as_published_with_their_factors(problem: Problem) -> None:
    """Λ_1 = (φ/ψ)c⋆_1⁴/‖β‖²·(−m_2′)/m_1², Λ_2 = Λ_1 + (φ/ψ)4c⋆_1⁴c⋆_2²/(3‖β‖⁴)·(−m_1′)/m_1²."""
    m = traces(problem)
    norm = spiked_weights(problem).beta_norm
    c = problem.sigma_star.normalised_coefficients(2) / np.sqrt([1, 1, 2])
    scale = problem.phi / problem.psi * c[1] ** 4 / m.m1**2
    first = -scale * m.dm2 / norm**2
    assert limit(problem, 1).test_gain == pytest.approx(first, rel=1e-8)
    if 2 in learned_powers(problem, 2):
        second = first - scale * 4 * c[2] ** 2 / (3 * norm**4) * m.dm1
        assert limit(problem, 2).test_gain == pytest.approx(second, rel=1e-8)


@given(problems())
def test_first_two_train_gains_as_displayed_in_the_paper(problem: Problem) -> None:
    """Δ_1 = ψλc⋆_1⁴m_2/(φ‖β‖²), Δ_2 = Δ_1 + 4ψλc⋆_1⁴c⋆_2²m_1/(3φ‖β‖⁴)."""
    m = traces(problem)
    norm = spiked_weights(problem).beta_norm
    c = problem.sigma_star.normalised_coefficients(2) / np.sqrt([1, 1, 2])
    scale = problem.psi / problem.phi * problem.ridge * c[1] ** 4
    first = scale * m.m2 / norm**2
    assert limit(problem, 1).train_gain == pytest.approx(first, rel=1e-8)
    if 2 in learned_powers(problem, 2):
        second = first + 4 * scale * c[2] ** 2 * m.m1 / (3 * norm**4)
        assert limit(problem, 2).train_gain == pytest.approx(second, rel=1e-8)


@given(problems())
def test_traces_solve_the_published_pair_of_equations(problem: Problem) -> None:
    m = traces(problem)
    c = problem.sigma.normalised_coefficients(1)
    linear, rest = c[1] ** 2, problem.sigma.second_moment - c[1] ** 2
    phi, psi = problem.phi, problem.psi
    Psi = linear * m.m1 * m.m2 * (problem.ridge * psi * m.m1 / phi - 1)
    first = phi * (m.m1 - m.m2) * (rest * m.m1 + linear * m.m2) + Psi
    second = phi / psi * (linear * m.m1 * m.m2 + phi * (m.m2 - m.m1)) + Psi
    size = abs(Psi) + phi * m.m1 * (rest * m.m1 + linear * m.m2)
    assert abs(first) < 1e-9 * size
    assert abs(second) < 1e-9 * (abs(Psi) + phi / psi * (linear * m.m1 * m.m2 + phi * m.m1))


@given(problems())
def test_derivatives_of_the_traces(problem: Problem) -> None:
    step = 1e-5 * problem.ridge
    up = traces(problem.replace(ridge=problem.ridge + step))
    down = traces(problem.replace(ridge=problem.ridge - step))
    m = traces(problem)
    assert m.dm1 == pytest.approx((up.m1 - down.m1) / (2 * step), rel=1e-5)
    assert m.dm2 == pytest.approx((up.m2 - down.m2) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("activation", "readout", "degree", "powers"),
    [
        (SHIFTED, "gaussian", 4, (1, 2, 3, 4)),
        ("tanh", "gaussian", 6, (1, 3, 5)),
        (SHIFTED, "rademacher", 5, (1, 2)),
        (SHIFTED, "constant", 5, (1,)),
        ("tanh", "rademacher", 5, (1,)),
        (SHIFTED, "uniform", 3, (1, 2, 3)),
        ("relu", "gaussian", 4, (1, 2, 4)),
        (SHIFTED, ((2.0, 0.1), (0.5, 0.4), (-1.0, 0.5)), 5, (1, 2, 3)),
    ],
)
def test_which_powers_are_learned(
    activation: object, readout: object, degree: int, powers: tuple[int, ...]
) -> None:
    problem = BASE.replace(activation=activation, readout=readout, centre=True)
    assert limit(problem, degree).powers == powers


def test_uncentred_activation_has_its_mean_as_a_spike_from_the_start() -> None:
    problem = BASE.replace(activation="relu", target="relu")
    assert limit(problem, 0).powers == (0,)
    assert limit(problem.replace(readout="constant"), 3).powers == (0,)
    big = problem.replace(n=10**9, d=5 * 10**8, width=7 * 10**8, step_size=0.0)
    assert predict(big).test_error == pytest.approx(limit(big).test_error, rel=1e-6)


def test_degree_zero_is_the_untrained_network() -> None:
    """Without the terms of order 1/d, which the limit does not have."""
    problem = BASE.replace(target="H1 + H2")
    untrained = without_higher_degrees(problem.replace(step_size=0.0))
    assert limit(problem, 0).test_error == pytest.approx(untrained.test_error, rel=1e-9)
    assert limit(problem, 0).train_loss == pytest.approx(untrained.train_loss, rel=1e-9)
    assert limit(problem, 0).test_gain == 0.0


def test_errors_never_grow_with_the_degree_in_training() -> None:
    problem = BASE.replace(activation=SHIFTED, centre=True, target="H1 + H2/2 + H3/4")
    losses = [limit(problem, k).train_loss for k in range(9)]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(losses))


def test_a_spike_without_a_function_of_its_own_changes_nothing() -> None:
    """With c_3 = 0 the term of order g³ is a multiple of that of order g²."""
    problem = BASE.replace(activation="relu", centre=True, target="relu", readout="uniform")
    second, third = (limit(problem, k, norm_growth=True) for k in (2, 3))
    assert third.powers == (1, 2, 3)
    assert third.test_error == pytest.approx(second.test_error, rel=1e-10)
    assert third.train_loss == pytest.approx(second.train_loss, rel=1e-10)


def test_what_is_not_along_the_linear_part_acts_as_noise() -> None:
    several = BASE.replace(target="z1 + 0.5*(z1^2 - 1) + z2*z3")
    one = BASE.replace(target="H1 + 0.5*H2", noise_std=(BASE.noise_std**2 + 1.0) ** 0.5)
    for degree in (1, 2):
        found, expected = limit(several, degree), limit(one, degree)
        assert found.test_error == pytest.approx(expected.test_error, rel=1e-10)
        assert found.train_loss == pytest.approx(expected.train_loss, rel=1e-10)


def test_regime_is_taken_from_the_exponent() -> None:
    assert limit(BASE).degree == 1
    assert limit(BASE.replace(step_exponent=0.3)).degree == 2
    with pytest.raises(InvalidProblem, match="boundary between degree 1 and degree 2"):
        limit(BASE.replace(step_exponent=0.25))
    with pytest.raises(InvalidProblem, match="beyond the maximal step"):
        limit(BASE.replace(step_exponent=0.6))


@pytest.mark.parametrize("readout", ["constant", "rademacher", "gaussian"])
def test_maximal_step_is_the_limit_of_predict_at_one_half(readout: str) -> None:
    problem = BASE.replace(step_exponent=0.5, readout=readout, target="H1 + H3/6")
    expected = limit(problem)
    assert expected.degree is None
    gaps = []
    for n in (10**4, 10**6, 10**8):
        sizes = {"n": n, "d": n // 2, "width": 7 * n // 10}
        gaps.append(abs(predict(problem.replace(**sizes)).test_error - expected.test_error))
    assert gaps[2] < gaps[1] < gaps[0]
    assert gaps[2] < 3e-4 * expected.test_error


def test_maximal_step_can_be_asked_for_in_the_other_convention() -> None:
    problem = Problem.from_cui(
        alpha=3.0, alpha0=1.0, eta_tilde=1.0, lambda_=0.1, d=1000, activation="tanh"
    )
    with pytest.raises(InvalidProblem, match="maximal"):
        limit(problem.replace(step_size=problem.n**0.5))
    value = limit(problem, "maximal").test_error
    large = Problem.from_cui(
        alpha=3.0, alpha0=1.0, eta_tilde=1.0, lambda_=0.1, d=10**9, activation="tanh"
    )
    assert value == pytest.approx(predict(large).test_error, rel=1e-6)


def test_spike_functions_are_the_expansion_of_the_mean_feature() -> None:
    """m_g(κ) = Σ_p g^p P_p(κ) to leading order in the step, drift and growth included."""
    problem = BASE.replace(activation="softplus", target="relu", centre=True, step_size=1e-2)
    weights = spiked_weights(problem)
    assert weights.unit_drift != 0.0
    spikes = spike_functions(problem, 2, norm_growth=True)
    kappa = np.linspace(-2, 2, 7)
    g = np.array([-2.0, -1.0, 1.0, 2.0])
    norm = np.array([weights.norm(np.array([x]))[0] for x in g])
    means = problem.sigma.moments(norm[:, None], weights.unit_shift * g[:, None] * kappa).mean
    odd = (means[2] - means[1]) / (2 * weights.unit_shift)
    even = (means[2] + means[1]) / (2 * weights.unit_shift**2)
    assert odd == pytest.approx(np.polynomial.polynomial.polyval(kappa, spikes[1]), abs=1e-6)
    assert even == pytest.approx(np.polynomial.polynomial.polyval(kappa, spikes[2]), abs=1e-4)


@pytest.mark.parametrize("target", ["H0/2 + H1", "H1 + 0.5*H2"])
def test_rows_that_are_not_normalised_have_a_limit_of_their_own(target: str) -> None:
    """Their norms show a centred activation with c_2 ≠ 0 a constant, already at step 0 (40)."""

    def far(n: int, degree: int, initial: str) -> Problem:
        return Problem.from_ratios(
            phi=0.5,
            psi=0.7,
            n=n,
            n_step=300 * n,
            activation="relu",
            centre=True,
            target=target,
            readout="rademacher",
            step_exponent=(-0.5, 1 / 6)[degree],
            ridge=0.03,
            noise_std=0.3,
            initial=initial,
        )

    for initial in ("sphere", "gaussian"):
        still = far(10**12, 0, initial)
        expected = limit(still, 0)
        found = predict(still, method="exact")
        assert found.test_error == pytest.approx(expected.test_error, rel=1e-8)
        assert found.train_loss == pytest.approx(expected.train_loss, rel=1e-8)
        gaps = []
        for n in (10**9, 10**12):
            moved = far(n, 1, initial)
            expected = limit(moved, 1, norm_growth=True)
            gaps.append(predict(moved, method="exact").test_error / expected.test_error - 1.0)
        assert abs(gaps[1]) < 0.12 * abs(gaps[0]) < 0.005
    start = [limit(far(10**12, 0, initial), 0).test_error for initial in ("sphere", "gaussian")]
    assert (start[1] < 0.9 * start[0]) == target.startswith("H0")
