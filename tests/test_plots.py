"""Figures: what is drawn is what the results say, on Axes of one's own or on new ones."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

from featurestep import baselines, limit, optimum, predict, simulate
from featurestep import compare as compare_problems
from featurestep.plots import (
    STYLE,
    agreement,
    compare,
    curve,
    curves,
    draws,
    figure_of,
    gaps,
    learned,
    new_axes,
    render,
    shade_regimes,
    simulated,
    staircase,
)
from featurestep.plots.curves import dashes
from featurestep.plots.style import PALETTE, line_colour, symbols

from .problems import CENTRED_RELU

PROBLEM = CENTRED_RELU.replace(n=2000, d=600, width=1000)


@pytest.fixture(scope="module")
def results():
    return predict(PROBLEM.vary(step_exponent=np.linspace(0.0, 0.5, 11), ridge=[0.1, 1.0]))


def test_learned_draws_both_functions_on_given_axes():
    ax = Figure().subplots()
    found = predict(PROBLEM)
    assert learned(found, ax) is ax
    best, network = ax.lines
    assert np.array_equal(best.get_ydata(), found.target_along(best.get_xdata()))
    assert np.array_equal(network.get_ydata(), found.learned(network.get_xdata()))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"steps": 2}, r"best, $E[y\,|\,\kappa]$"),
        ({"loss": "logistic"}, r"best, log-odds given $\kappa$"),
        ({"loss": "hinge"}, r"best, sign of $E[y\,|\,\kappa]$"),
        ({"rows": "same"}, r"best, $E[y\,|\,\kappa]$"),
    ],
)
def test_every_prediction_is_drawn_by_itself(changes, name):
    found = predict(PROBLEM.replace(readout="rademacher", **changes))
    best, network = found.plot().lines
    assert best.get_label() == name
    assert np.array_equal(best.get_ydata(), found.best_along(best.get_xdata()))
    assert np.array_equal(network.get_ydata(), found.learned(network.get_xdata()))


def test_the_best_output_of_a_logistic_fit_is_the_log_odds():
    found = predict(PROBLEM.replace(loss="logistic", readout="rademacher"))
    kappa = np.array([-1.0, 0.0, 1.0])
    chance = 0.5 * (1.0 + found.target_along(kappa))
    np.testing.assert_allclose(found.best_along(kappa), np.log(chance / (1.0 - chance)))


def test_curve_has_one_line_for_each_value_of_the_second_field(results):
    ax = curve(results, "test_error")
    assert len(ax.lines) == 2
    for line, ridge in zip(ax.lines, (0.1, 1.0), strict=True):
        assert np.array_equal(line.get_ydata(), results.test_error.sel(ridge=ridge))
        assert f"= {ridge:g}" in line.get_label()
    assert ax.get_xlabel() == r"step exponent $\alpha$"
    assert ax.get_ylabel() == r"test error $L_{\mathrm{te}}$"


def test_axes_are_logarithmic_where_values_span_decades():
    wide = predict(PROBLEM.vary(ridge=[0.01, 0.1, 1.0]))
    narrow = predict(PROBLEM.vary(ridge=[0.1, 0.2]))
    assert curve(wide, "test_error").get_xscale() == "log"
    assert curve(narrow, "test_error").get_xscale() == "linear"


def test_categories_are_points_not_lines():
    ax = curve(predict(PROBLEM.vary(activation=["relu", "gelu"])), "test_error")
    assert ax.lines[0].get_linestyle() == "None"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["relu", "gelu"]


def test_staircase_steps_at_the_ends_of_the_regimes():
    ax = new_axes()[0]
    ax.set_xlim(-0.1, 0.3)
    limits = [limit(PROBLEM, degree=k) for k in (2, 0, 1)]
    staircase(limits, "test_error", ax)
    (steps,) = ax.patches
    values, edges, _ = steps.get_data()
    assert np.allclose(edges, [-0.1, 0.0, 0.25, 0.3])
    assert values.tolist() == [limits[i].test_error for i in (1, 2, 0)]
    assert ax.get_xlim() == (-0.1, 0.3)


def test_regimes_are_shaded_and_named_inside_the_axis():
    ax = new_axes()[0]
    ax.set_xlim(0.0, 0.5)
    shade_regimes(ax)
    assert ax.get_xlim() == (0.0, 0.5)
    assert [text.get_text() for text in ax.texts] == [r"$\ell = 1$", r"$\ell = 2$", "$3$", "$4$"]
    first = ax.patches[0]
    assert first.get_x() == pytest.approx(0.25)
    assert first.get_width() == pytest.approx(1 / 12)


def test_curves_put_a_staircase_on_each_line(results):
    stairs = [[limit(PROBLEM.replace(ridge=r), degree=k) for k in range(4)] for r in (0.1, 1.0)]
    panels = curves(results, ("train_loss", "test_error"), stairs)
    for ax in panels:
        drawn = [patch for patch in ax.patches if hasattr(patch, "get_data")]
        assert len(ax.lines) == len(drawn) == 2
    names = [text.get_text() for text in figure_of(panels[0]).legends[0].get_texts()]
    assert names == [r"ridge $\lambda$ = 0.1", r"ridge $\lambda$ = 1", "published limit"]


def test_compare_draws_each_error_in_its_own_colour():
    names = ("untrained", "best_linear")
    found = {n: baselines(PROBLEM.replace(n=n)).as_dict() for n in (500, 1000)}
    data = {name: ("n", [row[name] for row in found.values()]) for name in names}
    ax = compare(xarray.Dataset(data, coords={"n": list(found)}), names, "error")
    assert ax.get_ylabel() == "error"
    assert [line.get_label() for line in ax.lines] == ["untrained network", "best linear function"]
    assert [line.get_color() for line in ax.lines] == list(PALETTE[:2])


def test_many_lines_leave_the_palette_and_name_only_some():
    grid = PROBLEM.vary(step_exponent=[0.1, 0.2], ridge=np.linspace(0.1, 1.0, 20))
    ax = curve(predict(grid), "test_error")
    assert len({tuple(np.atleast_1d(line_colour(i, 20))) for i in range(20)}) == 20
    assert len(ax.get_legend_handles_labels()[1]) <= 8


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_the_same_results_give_the_same_bytes(kind, results):
    first, second = (render(figure_of(curve(results, "train_loss")), kind) for _ in range(2))
    assert first == second


def test_no_global_state_is_left_behind(results):
    before = dict(matplotlib.rcParams)
    panels = curves(results, ("train_loss", "test_error"))
    assert dict(matplotlib.rcParams) == before
    assert panels[0].yaxis.label.get_size() == STYLE["axes.labelsize"]
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_nothing_is_clipped_at_column_width(results):
    panels = curves(results, ("train_loss", "test_error"))
    figure = figure_of(panels[0])
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for ax in panels:
        box = ax.get_tightbbox()
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


SMALL = PROBLEM.replace(n=120, d=60, width=90)
ERRORS = ("train_loss", "test_error")


def bar_ends(container):
    """Lower and upper ends of the bars of one line, (points, 2)."""
    return np.array([segment[:, 1] for segment in container[2][0].get_segments()])


@pytest.fixture(scope="module")
def compared():
    grid = SMALL.vary(step_exponent=[0.0, 0.2, 0.4], ridge=[0.1, 1.0])
    return compare_problems(grid, seeds=3, n_test=200)


def test_simulated_points_lie_on_the_theory_with_two_standard_errors(compared):
    mean, error = (
        data.sel(variant="trained", drop=True)
        for data in (compared.simulation.mean, compared.simulation.standard_error)
    )
    theory = predict(
        compared.problem.base.vary(step_exponent=np.linspace(0, 0.4, 9), ridge=[0.1, 1])
    )
    panels = agreement(theory, mean, error, ERRORS)
    for ax, name in zip(panels, ERRORS, strict=True):
        *lines, _ = ax.containers  # the last is the legend's
        for container, ridge in zip(lines, (0.1, 1.0), strict=True):
            centre, spread = mean[name].sel(ridge=ridge), error[name].sel(ridge=ridge)
            low, high = bar_ends(container).T
            assert np.allclose(low, centre - 2 * spread)
            assert np.allclose(high, centre + 2 * spread)
    (legend,) = figure_of(panels[0]).legends
    assert [text.get_text() for text in legend.get_texts()][-1] == "simulated, ± 2 s.e."


def test_simulated_curves_have_bars_where_there_are_errors(compared):
    mean = compared.simulation.mean.sel(variant="trained", drop=True)
    error = compared.simulation.standard_error.sel(variant="trained", drop=True)
    assert [len(ax.containers) for ax in simulated(mean, error, ERRORS)] == [2, 2]
    assert [len(ax.containers) for ax in simulated(mean, None, ERRORS)] == [0, 0]


def test_gaps_are_in_per_cent_of_the_prediction():
    found = compare_problems(SMALL, seeds=3, n_test=200)
    ax = gaps(found.rows)
    drawn = [container[0].get_xdata()[0] for container in ax.containers]
    assert np.allclose(drawn, [100 * row.relative_gap for row in found.rows])
    assert [tick.get_text() for tick in ax.get_yticklabels()][2] == "training error"


@pytest.mark.parametrize("seeds", [1, 3])
def test_draws_show_every_seed_of_every_variant(seeds):
    found = simulate(SMALL, seeds=seeds, n_test=200, variants=["trained", "initial"])
    ax = draws(found.dataset)
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [2 * seeds] * 2
    assert np.array_equal(dots[0].get_xdata(), found.values["test_error"].ravel())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["trained", "initial"]


def test_an_optimum_is_drawn_with_its_minimum():
    best = optimum(CENTRED_RELU.replace(readout="constant"), over=("ridge",))
    ax = best.plot()
    curve, star = ax.lines
    assert star.get_xdata()[0] == best.location["ridge"]
    assert np.min(curve.get_ydata()) == pytest.approx(best.value, rel=1e-6)
    assert best.location["ridge"] in curve.get_xdata()


def test_coinciding_limits_are_both_seen():
    """The dashes of one fall into the gaps of the other."""
    (first, (on, off)), (second, pattern) = dashes(), dashes(second=True)
    assert (on, off) == pattern
    assert first == 0.0
    assert second == on == off


def test_names_of_lines_lie_outside_the_panel_that_is_alone():
    ax = learned(predict(PROBLEM))
    figure = figure_of(ax)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(ax.get_window_extent())
    assert len(legend.get_texts()) == 2


def test_names_of_lines_stay_with_their_panel_among_others():
    first, second = Figure(layout="constrained").subplots(1, 2)
    learned(predict(PROBLEM), first)
    assert first.get_legend() is not None
    assert second.get_legend() is None
    assert not figure_of(first).legends


def test_terms_are_written_as_formulas():
    assert symbols("H2(z1)*z3") == r"$H_{2}(z_{1})\,z_{3}$"
