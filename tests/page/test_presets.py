"""What the presets say is what is computed at their sizes."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import critical_steps, predict
from featurestep.page import parts
from featurestep.page.presets import PRESETS


def test_the_second_spike_of_the_quadratic_target_leaves_the_bulk_where_the_text_says() -> None:
    preset = PRESETS["moniri2"]
    found = critical_steps(preset.state.problem)
    assert f"from α = {found.spike_exponent[1]:.2f} on (1/4 as n → ∞)" in preset.text
    assert found.published_exponent[1] == pytest.approx(0.25)


def test_larger_steps_do_not_help_a_linear_target() -> None:
    state = PRESETS["moniri1"].state
    errors = [predict(state.replace(step_exponent=a).problem).test_error for a in (0.3, 0.4, 0.5)]
    assert errors == sorted(errors)


def test_the_learning_curve_crosses_tuned_ridge_where_the_text_says() -> None:
    preset = PRESETS["cui"]
    curve = parts.curve(preset.state)
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
    curve = parts.curve(preset.state, draft=True)
    assert curve["isotropic"][-1] == pytest.approx(spiked, rel=1e-6)
    assert "isotropic" not in parts.curve(preset.state.replace(isotropic=False), draft=True)


def test_more_samples_in_the_step_help_with_two_directions() -> None:
    state = PRESETS["stairs"].state
    errors = [predict(state.replace(step_ratio=r).problem).test_error for r in (1.0, 4.0, 16.0)]
    assert errors == sorted(errors, reverse=True)


def test_double_descent_peaks_where_the_width_meets_n() -> None:
    curve = parts.curve(PRESETS["descent"].state)
    assert curve["x"][int(np.argmax(curve["test_error"]))] == 1.0
