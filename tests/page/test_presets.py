"""What the presets say is what is computed at their sizes."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import critical_steps, predict
from featurestep.page import panels
from featurestep.page.words import PRESETS


def test_the_second_spike_of_the_quadratic_target_leaves_the_bulk_where_the_text_says() -> None:
    preset = PRESETS["moniri2"]
    found = critical_steps(preset.state.problem, degrees=2)
    assert f"from α = {found.spike_exponent[1]:.2f} on (1/4 as n → ∞)" in preset.text
    assert found.published_exponent[1] == pytest.approx(0.25)


def test_larger_steps_do_not_help_a_linear_target() -> None:
    state = PRESETS["moniri1"].state
    errors = [predict(state.replace(step_exponent=a).problem).test_error for a in (0.3, 0.4, 0.5)]
    assert errors == sorted(errors)


def test_the_learning_curve_crosses_tuned_ridge_where_the_text_says() -> None:
    preset = PRESETS["cui"]
    curve = panels.curve(preset.state)
    x = np.array(curve["x"])
    ahead = np.array(curve["test_error"]) < np.array(curve["ridge_n_tuned"])
    assert ahead[x < 0.999].all()
    assert not ahead[x >= 1.1].any()
    assert (
        "ahead of tuned ridge on n samples while n < d, behind it from n = 1.1d on" in preset.text
    )
    assert "on 4d others" in preset.text
    assert preset.state.problem.n_step == 4 * preset.state.problem.d


def test_spiked_random_features_are_drawn_and_fail_at_the_maximal_step() -> None:
    preset = PRESETS["maximal"]
    problem = preset.state.problem
    network, spiked = (predict(problem, method=m).test_error for m in ("exact", "isotropic"))
    assert f"expect an error of {spiked:.2f} where the network has {network:.2f}" in preset.text
    assert f"η = {problem.step_size / problem.width**0.5:.0f}√N" in preset.text
    assert f"n₀ = {problem.n_step / problem.d:.0f}d" in preset.text
    curve = panels.curve(preset.state, draft=True)
    assert curve["isotropic"][-1] == pytest.approx(spiked, rel=1e-6)
    assert "isotropic" not in panels.curve(preset.state.replace(isotropic=False), draft=True)


def test_more_samples_in_the_step_help_with_two_directions() -> None:
    state = PRESETS["stairs"].state
    errors = [predict(state.replace(step_ratio=r).problem).test_error for r in (1.0, 4.0, 16.0)]
    assert errors == sorted(errors, reverse=True)


def test_double_descent_peaks_where_the_width_meets_n() -> None:
    curve = panels.curve(PRESETS["descent"].state)
    assert curve["x"][int(np.argmax(curve["test_error"]))] == 1.0


def test_the_same_rows_twice_against_one_half_for_each() -> None:
    preset = PRESETS["same"]
    state = preset.state
    halves = state.replace(rows="fresh", n=state.n // 2, phi=2 * state.phi)
    assert (halves.problem.d, halves.problem.width) == (state.problem.d, state.problem.width)
    twice, half = (predict(each.problem).test_error for each in (state, halves))
    assert f"All {state.n:,} rows" in preset.text
    assert f"the test error is {twice:.3f}. With one half" in preset.text
    assert f"it is {half:.3f}." in preset.text


def test_errors_of_the_classification() -> None:
    preset = PRESETS["classes"]
    point = panels.point(preset.state)
    simpler = point["baselines"]
    assert f"{100 * point['test_error']:.1f} % of new signs are wrong" in preset.text
    assert f"{100 * simpler['untrained']:.1f} % without the step" in preset.text
    assert f"{100 * simpler['linear_n_tuned']:.1f} % with logistic regression" in preset.text


def test_two_steps_against_one() -> None:
    preset = PRESETS["two"]
    state, one = preset.state, preset.state.replace(steps=1)
    both, first, large = (
        predict(each.problem).test_error for each in (state, one, one.replace(step_ratio=2.0))
    )
    assert f"{state.n:,} fresh samples each: the test error is {both:.2f}" in preset.text
    assert f"after the first step {first:.2f}, and {large:.2f} after one step" in preset.text
    assert f"with all {2 * state.n:,}" in preset.text


def test_small_d_against_the_same_ratios_at_larger_sizes() -> None:
    preset = PRESETS["small"]
    problem = preset.state.problem
    sizes = {name: 100 * getattr(problem, name) for name in ("n", "d", "width")}
    larger = problem.replace(**sizes, step_size=10 * problem.step_size)
    small, large = predict(problem).test_error, predict(larger).test_error
    assert f"At d = {problem.d} " in preset.text
    assert f"d(d + 1)/2 = {problem.d * (problem.d + 1) // 2:,} quadratic" in preset.text
    assert problem.n == problem.width
    assert f"n = N = {problem.n:,}" in preset.text
    assert f"The test error is {small:.2f}; with 100 times the sizes" in preset.text
    assert f"it is {large:.2f}." in preset.text
    assert panels.point(preset.state)["baselines"]["untrained"] < 1.0  # the best linear function's
