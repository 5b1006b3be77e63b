"""The lines that the page shows give the numbers that it shows; so do its files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shlex
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

from featurestep.cli import main
from featurestep.page import panels, views
from featurestep.page.state import POINTS, PageState
from featurestep.page.words import PRESETS

STATES = {
    **{name: preset.state for name, preset in PRESETS.items()},
    "size": PageState(step="size", step_size=7.5, readout="rademacher", residual="full"),
    "initial": PageState(initial="gaussian", readout="rademacher"),
    "ridge": PageState(
        over="ridge", step_scale=2.0, step_ratio=0.5, c2=-0.5, c3=0.25, readout="rademacher"
    ),
    "beyond": PageState(n=200, step="size", step_size=40.0, readout="rademacher"),
    "scale": PageState(step_scale=1.7, activation="tanh", noise_std=0.3, target="formula"),
}


@cache
def shown(state: PageState) -> tuple[panels.Data, panels.Data]:
    """What the page shows of a state, computed once."""
    return panels.point(state), panels.curve(state)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_python_lines_give_the_same_numbers(state: PageState) -> None:
    printed = io.StringIO()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(printed):
        exec(compile(views.python_lines(state), "<page>", "exec"), names)
    point, curve = shown(state)
    assert printed.getvalue().startswith(f"{point['test_error']} {point['train_loss']}\n")
    found = names["curve"]["test_error"].values  # type: ignore[index]
    np.testing.assert_allclose(found, curve["test_error"], rtol=1e-8)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_command_lines_give_the_same_numbers(state: PageState) -> None:
    first, second = views.shell_lines(state).splitlines()
    answers = []
    for line in (first, second):
        name, *arguments = shlex.split(line)
        assert name == "featurestep"
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        answers.append(json.loads(result.stdout))
    point, curve = shown(state)
    assert answers[0]["test_error"] == pytest.approx(point["test_error"], rel=1e-12)
    assert answers[0]["train_loss"] == pytest.approx(point["train_loss"], rel=1e-12)
    rows = [row["test_error"] for row in answers[1]["points"]]
    np.testing.assert_allclose(rows, curve["test_error"], rtol=1e-9)


def test_the_lines_name_the_first_layer() -> None:
    state = PageState(initial="gaussian")
    assert "    initial='gaussian',\n" in views.python_lines(state)
    assert all("--initial gaussian" in line for line in views.shell_lines(state).splitlines())
    assert "initial" not in views.python_lines(PageState())


def test_the_table_has_everything_of_the_panel() -> None:
    state = PageState()
    simulated = {
        "n": 500,
        "x": [0.1],
        "test_error": [1.0],
        "train_loss": [0.5],
        "test_error_error": [0.01],
        "train_loss_error": [0.02],
    }
    answers = {
        "point": panels.point(state),
        "curve": panels.curve(state),
        "stairs": panels.stairs(state),
        "simulated": simulated,
    }
    rows = list(csv.DictReader(io.StringIO(views.csv_text(state, answers))))
    series = [row["series"] for row in rows]
    assert series.count("finite n") == POINTS["exponent"]
    for name in ("limit with norm growth", "published limit"):
        assert series.count(name) == 2 * panels.STAIRS
    assert float(rows[0]["test_error"]) == answers["point"]["test_error"]
    assert rows[-1] == {
        "series": "simulated n=500",
        "step exponent α": "0.1",
        "test_error": "1.0",
        "train_loss": "0.5",
        "test_error_standard_error": "0.01",
        "train_loss_standard_error": "0.02",
    }
    record = json.loads(views.json_text(state, {**answers, "spectrum": ValueError("no")}))
    assert record["state"]["n"] == state.n
    assert record["problem"]["d"] == state.problem.d
    assert record["curve"]["test_error"] == answers["curve"]["test_error"]
    assert record["spectrum"] == {"error": "no"}
