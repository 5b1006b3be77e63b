"""The contract of results: the same for every verb, for one problem and for a grid."""

from __future__ import annotations

import html
import inspect
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import featurestep
from featurestep import (
    GridResult,
    InvalidProblem,
    Note,
    Problem,
    Result,
    Setting,
    baselines,
    compare,
    critical_steps,
    feature_gap,
    learnable,
    limit,
    optimum,
    phase_diagram,
    predict,
    simulate,
    simulated_spectrum,
    spectrum,
)
from featurestep.core.display import Table, cell
from featurestep.core.results import allowance, grouped_notes, over_grid
from featurestep.plots import answers

from .. import command

BASE = Problem(n=120, d=60, width=80, step_exponent=0.2, ridge=0.1, readout="constant")
GRID = BASE.vary(noise_std=[0.1, 0.5])
FEW = {"seeds": 2, "n_test": 100}


def linear(p):
    """Larger and with linear features: its critical steps are found quickly."""
    if isinstance(p, Problem):
        return p.replace(activation="identity", n=10 * p.n, d=10 * p.d, width=10 * p.width)
    return linear(p.base).vary(**p.axes)


VERBS = {
    "predict": predict,
    "limit": limit,
    "baselines": baselines,
    "optimum": optimum,
    "feature_gap": lambda p: feature_gap(p, seeds=2),
    "simulate": lambda p: simulate(p, **FEW),
    "compare": lambda p: compare(p, **FEW),
    "learnable": learnable,
    "spectrum": spectrum,
    "critical_steps": lambda p: critical_steps(linear(p), degrees=1),
    "simulated_spectrum": lambda p: simulated_spectrum(p, seeds=2, top=2),
    "phase_diagram": lambda p: phase_diagram(
        p.vary(step_exponent=[0.1, 0.3])
        if isinstance(p, Problem)
        else p.base.vary(step_exponent=[0.3], **p.axes)
    ),
}
SETTINGS = {
    "simulate": lambda p, **run: simulate(p, **FEW, **run),
    "compare": lambda p, **run: compare(p, **FEW, **run),
    "feature_gap": lambda p, **run: feature_gap(p, seeds=2, **run),
    "simulated_spectrum": lambda p, **run: simulated_spectrum(p, seeds=2, top=2, **run),
    "phase_diagram": lambda p, **run: phase_diagram(p.vary(step_exponent=[0.3]), seeds=2, **run),
}


@pytest.fixture(scope="module")
def found():
    return {(name, kind): verb(p) for name, verb in VERBS.items()
            for kind, p in (("one", BASE), ("grid", GRID))}  # fmt: skip


@pytest.mark.parametrize("kind", ["one", "grid"])
@pytest.mark.parametrize("name", VERBS)
def test_every_result_keeps_the_contract(found, name, kind):
    result = found[name, kind]
    assert isinstance(result, Result)
    assert isinstance(result.notes, tuple)
    json.dumps(result.as_dict(), allow_nan=False)
    assert len(repr(result).splitlines()) <= 8
    shown = result._repr_html_()
    for table in result.tables():
        assert table.html() in shown
        assert table.rows
    assert all(f"Note: {note}." in html.unescape(shown) for note in result.notes)
    known = result.kind.MEANINGS if isinstance(result, GridResult) else result.MEANINGS
    assert set(result.numbers) <= set(known)
    for number in result.numbers:
        assert getattr(result, number) is not None or name == "limit"
        assert number in result.dataset or number.endswith("_error")
    assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.parametrize("kind", ["one", "grid"])
@pytest.mark.parametrize("name", VERBS)
def test_every_result_can_be_drawn(found, name, kind, monkeypatch):
    monkeypatch.setattr("featurestep.plots.answers.TRACK", (0.1, 0.4))
    ax = found[name, kind].plot()
    assert ax.get_figure() is not None
    assert ax.has_data()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_simulation_takes_a_setting_and_says_so(name):
    setting = Setting(inputs="mixture(2, 2.0)")
    found = SETTINGS[name](BASE, setting=setting)
    assert any("mixture(2, 2.0)" in note for note in found.notes)
    assert found != SETTINGS[name](BASE)


@pytest.mark.parametrize("name", [name for name in VERBS if name != "phase_diagram"])
def test_equality_is_by_value(found, name):
    again = VERBS[name](BASE)
    assert again == found[name, "one"]
    assert hash(again) == hash(found[name, "one"])
    assert VERBS[name](BASE.replace(noise_std=0.7)) != again
    assert found[name, "one"] != found[name, "grid"]


@pytest.mark.parametrize("name", ["predict", "spectrum", "critical_steps", "simulated_spectrum"])
def test_a_grid_of_refusals_is_a_result_as_any_other(found, name):
    kind = found[name, "grid"].kind

    def refuse(problem):
        raise InvalidProblem("n", "must be larger", problem.n)

    result = over_grid(kind, GRID, refuse)
    assert set(result.dataset.status.values) == {"refused: n must be larger; got 120"}
    for number, dims in kind.DIMS.items():
        assert result.dataset[number].dims == ("noise_std", *dims)
        assert result.dataset[number].size == 0
    assert len(json.loads(json.dumps(result.as_dict(), allow_nan=False))["points"]) == 2
    assert "see below" in result._repr_html_()
    assert len(result.notes) == 2


@pytest.mark.parametrize("name", ["predict", "limit", "baselines", "optimum"])
def test_a_grid_has_the_numbers_of_its_points(found, name):
    result = found[name, "grid"]
    for i, problem in enumerate(GRID):
        one = VERBS[name](problem)
        for number, value in one.numbers.items():
            listed = result.dataset[number].values[i]
            if isinstance(value, float):
                assert listed == pytest.approx(value, rel=1e-9, nan_ok=True)


def test_a_simulation_has_its_means_as_numbers():
    one, grid = simulate(BASE, **FEW), simulate(GRID, **FEW)
    assert one.test_error == one.values["test_error"].mean()
    assert isinstance(one.test_error, float)
    assert grid.test_error.dims == ("noise_std",)
    assert grid.test_error.values[0] == pytest.approx(grid.values["test_error"][0, 0].mean())


@pytest.mark.parametrize("kind", [featurestep.Prediction, featurestep.Limit, featurestep.Baselines])
def test_help_documents_the_numbers(kind):
    assert all(
        name in kind.__doc__ and text in kind.__doc__ for name, text in kind.MEANINGS.items()
    )


def test_a_bad_point_spoils_nothing_and_has_a_status():
    found = limit(BASE.vary(step_exponent=[0.1, 0.25]))
    assert found.status.values[0] == "ok"
    assert found.status.values[1].startswith("refused: degree must be given")
    assert np.isnan(found.test_error.values[1])
    assert any("no number at step_exponent = 0.25" in note for note in found.notes)


def test_what_a_grid_varies_is_not_searched():
    with pytest.raises(InvalidProblem, match=r"^over must not name what the grid varies"):
        optimum(BASE.vary(ridge=[0.1, 1.0]))


def test_notes_admit_what_they_say():
    small, none = Note("small: why", "small", 0.1), Note("outside")
    assert allowance([]) == 0.0
    assert allowance([small, small]) == pytest.approx(0.2)
    assert allowance([small, none]) == np.inf
    again = pickle.loads(pickle.dumps(small))
    assert (again, again.kind, again.size) == (small, "small", 0.1)
    points = [({"n": 1}, (small, small)), ({"n": 2}, ()), ({"n": 3}, (none,))]
    assert grouped_notes(points) == [
        "1 of 3 points, the last at n = 1: small: why",
        "1 of 3 points, the last at n = 3: outside",
    ]


def test_ratios_vary_like_fields():
    grid = BASE.vary(psi=[0.5, 2.0], phi=[0.1, 0.5])
    assert [(p.width, p.n, p.d) for p in grid] == [
        (120, 600, 60), (120, 120, 60), (30, 600, 60), (30, 120, 60),
    ]  # fmt: skip
    assert [p.n_step for p in BASE.vary(phi_step=[0.5, 3.0])] == [120, 20]
    held = BASE.vary(n=[100, 200], phi=0.5, psi=0.25)
    assert [(p.n, p.d, p.width) for p in held] == [(100, 50, 200), (200, 100, 400)]
    assert held.varied == ("d", "n", "width")
    assert predict(held).test_error.dims == ("n",)
    with pytest.raises(InvalidProblem, match=r"^phi must be > 0; got -1"):
        list(BASE.vary(phi=[-1.0]))
    with pytest.raises(InvalidProblem, match="phi must not be given together with n and d"):
        BASE.replace(phi=0.5, n=100, d=50)
    with pytest.raises(InvalidProblem, match="width is set by psi"):
        BASE.replace(psi=0.5, width=50)
    with pytest.raises(InvalidProblem, match="vary needs at least one field"):
        BASE.vary(phi=0.5)


def test_tables_wrap_meanings_and_never_values():
    table = Table.of(("", "value", "meaning"), [("a", 1.0 / 3.0, "word " * 30)])
    lines = table.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    assert sum("0.33333" in line for line in lines) == 1
    assert [cell(v) for v in (None, np.nan, 1.0, "x", (1, 2), ())] == [
        "–",
        "–",
        "1",
        "x",
        "1, 2",
        "–",
    ]
    assert "&lt;" in Table.of(("a",), [("<",)]).html()


def test_a_target_without_a_linear_part_is_noted():
    told = predict(BASE.replace(target="H2")).notes
    assert any("the target has no linear part" in note for note in told)
    assert not any("no linear part" in note for note in predict(BASE).notes)
    assert not any(
        "no linear part" in n for n in predict(BASE.replace(target="H2", step_size=0.0)).notes
    )


PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
COMMANDS = {
    "learnable": "learnable",
    "critical_steps": "critical",
    "simulated_spectrum": "spectrum --seeds 8",
    "phase_diagram": "phase",
    "feature_gap": "equivalence",
}


def written_row(found, name: str) -> str:
    """A verb's row of the table: each cell is what was tried, and says how it is reached."""
    one, grid = found[name, "one"], found[name, "grid"]
    asked = COMMANDS.get(name, name)
    shown = command.run(asked.split()[0], "--help").stdout
    assert all(option in shown for option in ("--over", "--plot", "--json"))
    takes = "setting" in inspect.signature(getattr(featurestep, name)).parameters
    assert takes == (name in SETTINGS)
    assert ("--inputs" in shown) == (takes or name == "spectrum")
    cells = [
        f"`{name}`",
        f"`{type(one).__name__}`",
        f"`{type(grid).__name__}`",
        f"`featurestep {asked}`",
        "`.plot()`" if type(one).__name__ in answers._ONE else "",
        "`_repr_html_`" if hasattr(one, "_repr_html_") else "",
        "`setting=`" if takes else "the theory has none",
    ]
    assert all(cells), cells
    return f"| {' | '.join(cells)} |"


def test_the_table_of_the_docs_is_that_of_the_verbs(found):
    rows = [written_row(found, name) for name in VERBS]
    header = "| verb | Problem | Grid | command | plot | notebook | Setting |"
    table = "\n".join([header, "|---|---|---|---|---|---|---|", *rows])
    assert table in PAGE, f"docs/results.md must contain\n{table}"
