"""The panels' numbers are the engine's, and a part that fails leaves the others alone."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from featurestep import baselines, limit, predict, spectrum
from featurestep.page import figures, parts, spectrum_panel, words
from featurestep.page.pool import Memory, Pool, Refused, Task, TooSlow
from featurestep.page.presets import PRESETS
from featurestep.page.state import State
from featurestep.page.views import Views, curve_key, main_view, spectrum_view, tasks_of

STATES = [preset.state for preset in PRESETS.values()]
NAMES = list(PRESETS)


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_the_point_is_the_prediction(state: State) -> None:
    found, point = predict(state.problem), parts.point(state)
    for name in ("test_error", "train_loss", "train_mse", "readout_norm", "alignment"):
        assert point[name] == getattr(found, name)
    kappa = np.array(point["kappa"])
    np.testing.assert_array_equal(point["learned"], found.learned(kappa))
    np.testing.assert_array_equal(point["best"], found.target_along(kappa))
    assert point["baselines"]["untrained"] == baselines(state.problem).untrained
    json.dumps(point, allow_nan=False)


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_the_curve_is_the_prediction_over_a_grid(state: State) -> None:
    grid = parts.grid(state)
    found, curve = predict(grid), parts.curve(state)
    np.testing.assert_allclose(curve["test_error"], found["test_error"].values, rtol=1e-9)
    np.testing.assert_allclose(curve["train_loss"], found["train_loss"].values, rtol=1e-9)
    assert curve["x"] == sorted(curve["x"])
    assert curve["refused"] == ""


def test_the_staircase_is_the_limit_of_each_regime() -> None:
    state = State()
    for step in parts.stairs(state)[:4]:
        found = limit(state.problem, step["degree"], norm_growth=True)
        assert step["test_error"] == pytest.approx(found.test_error, rel=1e-12)
        assert step["train_loss"] == pytest.approx(found.train_loss, rel=1e-12)


def test_the_current_point_lies_on_the_curve() -> None:
    for over in ("exponent", "samples", "width", "ridge"):
        state = State(over=over, step_exponent=0.3, ridge=0.0316227766)
        at, curve = parts.here(state), parts.curve(state)
        x, y = np.array(curve["x"]), np.array(curve["test_error"])
        value = np.interp(at, x, y) if over == "exponent" else np.interp(np.log(at), np.log(x), y)
        assert parts.point(state)["test_error"] == pytest.approx(value, rel=0.01)


def test_a_step_outright_is_shown_at_its_exponent() -> None:
    by_size = State(step="size", step_size=2000**0.3, n=2000)
    assert parts.here(by_size) == pytest.approx(0.3)
    assert curve_key(by_size) == curve_key(State(n=2000))


def test_the_spectrum_is_the_engine_s() -> None:
    state = State()
    data = spectrum_panel.spectrum(state)
    found = spectrum(state.problem)
    assert [s["degree"] for s in data["spikes"]] == [s.degree for s in found.spikes]
    for shown, spike in zip(data["spikes"], found.spikes, strict=True):
        assert shown["singular_value"] == spike.singular_value
        assert shown["overlaps"] == list(spike.overlaps)
    ends = np.sqrt(np.array(found.edges))
    np.testing.assert_array_equal(data["edges"], ends)
    np.testing.assert_array_equal(data["density"], found.singular_density(np.array(data["s"])))
    drawn = spectrum_panel.figure(state, data)
    labels = [note["text"] for note in drawn["layout"]["annotations"]]
    assert sum("κ" in label for label in labels) == len(found.spikes)
    square = next(spike for spike in found.spikes if spike.degree == 2)
    assert square.share == square.power_overlaps[1] > square.overlaps[1] + 0.2
    assert any(f"κ²</b> {square.share:.0%}" in label for label in labels)  # as figures label it


def test_a_far_spike_is_named_at_the_edge_and_an_atom_is_told() -> None:
    spike = {
        "overlaps": [0.0] * 6,
        "constant_overlap": 1.0,
        "share": 1.0,
        "degree": 0,
        "resolved": True,
    }
    data = {
        "s": [0.1, 1.0],
        "density": [1.0, 0.0],
        "edges": [[0.1, 1.0]],
        "atom": 0.25,
        "spikes": [{**spike, "singular_value": 40.0}],
    }
    drawn = spectrum_panel.figure(State(theme="dark"), data)
    texts = " ".join(note["text"] for note in drawn["layout"]["annotations"])
    assert "constant</b> 100% at 40 →" in texts
    assert "25% of the values are 0" in texts
    assert drawn["layout"]["xaxis"]["range"][1] < 2.0


def test_degrees_say_how_much_of_the_target_is_learned() -> None:
    point = parts.point(State(step_exponent=0.4))
    rows = words.shares(point["degrees"])
    assert [row["degree"] for row in rows] == list(range(1, parts.DEGREES + 1))
    assert 0.9 < rows[0]["share"] <= 1.0
    assert 0.2 < rows[1]["share"] < 0.8
    assert rows[2]["share"] is None
    told = words.sentence(point)
    assert "the linear part well, the quadratic (" in told
    assert "below the untrained network's" in told


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.21755, "1.218"),
        (0.066141, "0.06614"),
        (44.7213, "44.72"),
        (12345.6, "12,346"),
        (1.234e-5, "1.23·10⁻⁵"),
        (3.2e9, "3.20·10⁹"),
    ],
)
def test_numbers_as_people_read_them(value: float, text: str) -> None:
    assert words.number(value) == text


def test_spikes_in_words() -> None:
    def spike(degree: int, resolved: bool = True) -> dict[str, object]:
        return {"degree": degree, "resolved": resolved}

    assert words.spikes([]) == "No spike stands clear of the bulk."
    assert words.spikes([spike(1)]) == "1 spike: linear feature of the learned direction."
    both = "2 spikes: linear and quadratic features of the learned direction."
    assert words.spikes([spike(1), spike(2), spike(3, resolved=False)]) == both


def test_a_part_that_fails_leaves_the_other_panels_alone(views: Views) -> None:
    state = State()
    answers = views.answers(state)
    broken = {**answers, "curve": TooSlow("stopped after 8 s")}
    shown = main_view(state, broken)
    assert shown["message"] == "stopped after 8 s"
    assert shown["sentence"] == main_view(state, answers)["sentence"]
    assert shown["graph-learned"] == main_view(state, answers)["graph-learned"]
    assert len(shown["graph-errors"]["data"]) >= 4
    none = {"point": answers["point"], "spectrum": Refused("no solution at z = 1")}
    panels = spectrum_view(state, none)
    assert panels["graph-degrees"]["data"]
    assert "no solution" in panels["graph-spectrum"]["layout"]["annotations"][0]["text"]


def test_moving_along_the_curve_computes_no_new_curve() -> None:
    first, second = tasks_of(State(step_exponent=0.1)), tasks_of(State(step_exponent=0.2))
    assert first["curve"] == second["curve"]
    assert first["stairs"] == second["stairs"]
    assert first["point"] != second["point"]
    dark = tasks_of(State(step_exponent=0.1, theme="dark"))
    assert dark == first


def test_themes_differ_in_colour_only(views: Views) -> None:
    shown = []
    for theme in ("light", "dark"):
        state = State(theme=theme)
        shown.append(main_view(state, views.answers(state))["graph-errors"])
    light, dark = shown
    assert [t["y"] for t in light["data"]] == [t["y"] for t in dark["data"]]
    assert light["layout"]["paper_bgcolor"] != dark["layout"]["paper_bgcolor"]
    assert figures.message(State(theme="dark"), "x")["layout"]["font"]["color"] == "#e8edf2"


def test_the_legend_takes_two_rows_at_most() -> None:
    state = State(noise_std=0.5, readout="constant")
    point, curve, stairs = parts.point(state), parts.curve(state), parts.stairs(state)
    columns = ("test_error", "train_loss", "test_error_error", "train_loss_error", "x")
    simulated = {"n": 1600, "theory": curve, **{name: [0.1, 0.2] for name in columns}}
    drawn = figures.errors(state, point, curve, stairs, simulated)
    named = [trace["name"] for trace in drawn["data"] if trace.get("showlegend", True)]
    assert len(named) == 7
    assert drawn["layout"]["margin"]["b"] <= 48 + 2 * 29


def test_what_takes_too_long_is_stopped_and_the_worker_replaced() -> None:
    pool = Pool(1, Memory(), deadline=0.01)
    try:
        (late,) = pool.ask([Task("point", State().to_query())])
        assert isinstance(late, TooSlow)
        assert "takes too long" in str(late)
        pool.deadline = 60.0
        (found,) = pool.ask([Task("point", State().to_query())])
        assert found["test_error"] == predict(State().problem).test_error
        pool.seats[0].kill()
        while pool.seats[0].process.lives:
            time.sleep(0.01)
        (again,) = pool.ask([Task("point", State(n=500).to_query())])
        (refused,) = pool.ask([Task("point", State(activation="abs").to_query())])
        assert again["n"] == 500
        assert isinstance(refused, Refused)
        assert "activation must have c_1" in str(refused)
    finally:
        pool.close()


@pytest.mark.parametrize("error", [Refused("too many parts"), TooSlow("stopped after 20 s")])
def test_where_the_full_spectrum_fails_a_draft_stays_and_says_so(
    views: Views, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    state = State(readout="constant", n=321)
    monkeypatch.setattr(views.slow, "ask", lambda *_: [error])
    found = views.spectrum_answers(state)["spectrum"]
    draft = views.spectrum_answers(state, draft=True)["spectrum"]
    assert {**found, "validity": []} == {**draft, "validity": []}
    assert found["validity"] == [*draft["validity"], f"the spectrum is drawn as a draft ({error})"]
    monkeypatch.setattr(views.drafts, "ask", lambda *_: [Refused("takes longer")])
    assert views.spectrum_answers(state)["spectrum"] is error
