"""Figures of sweeps: what is drawn against what, and what cannot be."""

from __future__ import annotations

import pytest

from featurestep import InvalidProblem, sweep
from featurestep.plots import figure_of, sweep_curves

SIMULATE = {"seeds": 2, "n_test": 50, "variants": ["trained", "initial"]}


@pytest.fixture(scope="module")
def results():
    from featurestep import Problem

    base = Problem(n=60, d=30, width=40, step_exponent=0.3, ridge=0.01)
    grid = base.vary(ridge=[0.001, 0.1, 1.0], step_exponent=[0.1, 0.3], noise_std=[0.1])
    return sweep(grid, tasks={"predict": {}, "limit": {}, "simulate": SIMULATE}, engine="serial")


def names(ax):
    (legend,) = figure_of(ax).legends
    return [text.get_text() for text in legend.get_texts()]


def test_colours_are_the_second_dimension(results):
    ax = sweep_curves(results, at={"variant": "trained"})
    assert ax.get_xscale() == "log"
    assert len(ax.containers) == 3  # two of points, one in the legend
    assert [name for name in names(ax) if "0.1" in name or "0.3" in name] == names(ax)[:2]
    assert names(ax)[2:] == ["predict", "limit", "simulate"]


def test_variants_are_lines_where_nothing_else_is(results):
    ax = sweep_curves(results, at={"step_exponent": 0.3})
    assert {"variant = trained", "variant = initial"} <= set(names(ax))
    assert ax.lines[0].get_color() == "black"


def test_another_axis_can_be_chosen(results):
    ax = sweep_curves(results, "train_loss", x="step_exponent", at={"variant": "initial"})
    assert "exponent" in ax.get_xlabel()
    assert "loss" in ax.get_ylabel()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "at must fix all but one of step_exponent, variant"),
        ({"quantity": "colour"}, "quantity must be one of"),
        ({"x": "colour"}, "x must be one of"),
        ({"at": {"colour": 1}}, "at must name one of"),
        ({"at": {"ridge": 7}}, r"at must give ridge one of its values \(0.001, 0.1, 1.0\)"),
        ({"at": {"ridge": 0.1, "step_exponent": 0.1}}, "x needs a dimension"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(results, arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        sweep_curves(results, **arguments)


def test_points_of_a_design_are_not_joined(base):
    content = {
        "problem": {k: v for k, v in base.given.items() if v is not None},
        "grid": {"design": {"kind": "sobol", "points": 4, "box": {"ridge": [0.1, 1.0]}}},
        "tasks": ["predict"],
        "engine": "serial",
    }
    ax = sweep_curves(sweep(content))
    assert ax.lines[0].get_linestyle() == "None"
    assert "ridge" in ax.get_xlabel()
