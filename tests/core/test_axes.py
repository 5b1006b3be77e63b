"""Axes: text, tables and lists say the same, for the command line, sweep files and the page."""

from __future__ import annotations

from typing import Any

import pytest

from featurestep import InvalidProblem, Problem
from featurestep.core.axes import axis_values, read_axis
from featurestep.page.state import PageState, axis_text, grid
from featurestep.sweeps import read_sweep

BASE = {"n": 60, "d": 30, "width": 40, "step_exponent": 0.3, "ridge": 0.01}
SAME: list[tuple[str, str, Any, tuple[Any, ...]]] = [
    ("ridge", "0.1:0.4:4", {"start": 0.1, "stop": 0.4, "count": 4}, (0.1, 0.2, 0.3, 0.4)),
    ("n", "100:400:step=100", {"start": 100, "stop": 400, "step": 100}, (100, 200, 300, 400)),
    (
        "ridge",
        "log:0.01:1:3",
        {"start": 0.01, "stop": 1.0, "count": 3, "scale": "log"},
        (0.01, 0.1, 1.0),
    ),
    ("d", "1:2:5", {"start": 1, "stop": 2, "count": 5}, (1, 2)),
    ("target", "H1, H1 + 0.5*H2", ["H1", "H1 + 0.5*H2"], ("H1", "H1 + 0.5*H2")),
    ("centre", "true,False", [True, False], (True, False)),
]


@pytest.mark.parametrize(("field", "text", "written", "values"), SAME)
def test_every_way_to_write_an_axis_gives_the_same_values(
    field: str, text: str, written: Any, values: tuple[Any, ...]
) -> None:
    assert read_axis("--over", f"{field.replace('_', '-')}={text}") == (field, values)
    assert axis_values("grid", field, written) == values
    for each in (text, written):
        sweep = read_sweep({"problem": BASE, "grid": {field: each}, "tasks": ["predict"]})
        assert sweep.dimensions[0].fields == {field: values}


def test_the_page_writes_its_axis_in_the_same_language() -> None:
    for over in ("exponent", "samples", "width", "ridge"):
        state = PageState(over=over)
        name, values = read_axis("axis", axis_text(state))
        assert grid(state).axes == {name: values}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ridge", "must read FIELD=VALUES"),
        ("depth=1,2", "must name a field"),
        ("ridge=0.1:1", "must read START:STOP:COUNT"),
        ("ridge=0.1:x:3", "must read START:STOP:COUNT"),
        ("ridge=0.1:1:2.5", "must have a COUNT from 1"),
        ("ridge=log:0:1:5", "must have ends > 0 on a log scale"),
        ("ridge=0.1:1:step=-1", "must have the sign of stop − start"),
        ("ridge=log:0.1:1:step=1", "needs a linear scale"),
        ("ridge=1,1.0", "must have distinct values"),
    ],
)
def test_what_is_no_axis_is_one_line(text: str, rule: str) -> None:
    with pytest.raises(InvalidProblem) as refusal:
        read_axis("--over", text)
    assert str(refusal.value).startswith("--over")
    assert rule in str(refusal.value)


def test_ratios_are_fields_too() -> None:
    assert read_axis("--over", "phi=0.5,1") == ("phi", (0.5, 1))
    assert Problem(**BASE).vary(phi=[0.5, 1.0]).dims == ("phi",)
