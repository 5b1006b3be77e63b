"""The panels' numbers are the engine's, and a part that fails leaves the others alone."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, Note, baselines, limit, predict, spectrum
from featurestep.functions.quadrature import gauss_hermite
from featurestep.page import figures, panels, words
from featurestep.page import state as states
from featurestep.page import views as module
from featurestep.page.pool import Memory, PageTask, Pool, Refused, TooSlow, answer
from featurestep.page.state import PageState
from featurestep.page.views import Views, curve_key, main_view, spectrum_view, tasks_of
from featurestep.page.words import PRESETS
from featurestep.theory.baselines import kernel_error, untrained

from .explorer import written

STATES = [preset.state for preset in PRESETS.values()]
NAMES = list(PRESETS)
pytestmark = pytest.mark.usefixtures("solved_once")


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_the_point_is_the_prediction(state: PageState) -> None:
    found, point = predict(state.problem), panels.point(state)
    for name in ("test_error", *states.errors(state), "readout_norm", "alignment"):
        assert point[name] == getattr(found, name)
    kappa = np.array(point["kappa"])
    # It crosses 0: there the rounding is that of its largest values.
    np.testing.assert_allclose(point["learned"], found.learned(kappa), rtol=1e-12, atol=1e-13)
    best = found.target_along(kappa)
    if state.loss == "logistic":
        best = np.log((1.0 + best) / (1.0 - best))  # log-odds
    np.testing.assert_allclose(point["best"], best, rtol=1e-12)
    known = state.steps == 1  # `baselines` does not know several steps
    still = baselines(state.problem).untrained if known else predict(untrained(state.problem))
    assert point["baselines"]["untrained"] == (still if known else still.test_error)
    json.dumps(point, allow_nan=False)


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_the_curve_is_the_prediction_over_a_grid(state: PageState) -> None:
    grid = states.grid(state)
    found, curve = predict(grid), panels.curve(state)
    for name in states.errors(state):
        np.testing.assert_allclose(curve[name], found[name].values, rtol=1e-9)
    assert curve["x"] == sorted(curve["x"])
    assert curve["refused"] == ""


BEYOND = [  # a plain problem: a control, its value, the words for it, why there is no spectrum
    ("rows", "same", "rows used twice", ""),
    ("rows", "half", "rows used twice", ""),
    ("covariance", "two_levels", "a covariance", "a covariance"),
    ("loss", "logistic", "this loss", "labels ±1"),
]


@pytest.mark.parametrize(("name", "value", "told", "which"), BEYOND)
@pytest.mark.parametrize("how", ["draft", "full"])
def test_what_is_not_known_is_told_in_one_line_and_not_drawn(
    name: str, value: str, told: str, which: str, how: str
) -> None:
    state = PageState(readout="constant", n=500, isotropic=True, **{name: value})
    tasks = tasks_of(state, how)
    assert set(tasks) == {"curve", "point", "spectrum"}
    found = {part: answer(*task) for part, task in tasks.items()}
    drawn, texts = spectrum_view(state, found)
    if name == "rows" and how == "full":
        assert "spike" in texts["spikes"]
        assert len(drawn["graph-spectrum"]["data"]) >= 2
    else:
        assert isinstance(found["spectrum"], Refused)
        (shown,) = written(drawn["graph-spectrum"])
        told_why = f"There is no theory of the spectrum with {which}." if which else panels.LATER
        assert shown.replace("<br>", " ") == told_why
        assert drawn["graph-spectrum"]["data"] == []
        assert texts == {"spikes": "", "notes-spectrum": []}
    del found["spectrum"]
    drawn, texts = main_view(state, found)
    names = {trace["name"] for trace in drawn["graph-errors"]["data"]}
    assert {"test", "train", "untrained"} <= names
    assert names.isdisjoint({"published limit", "limit with norm growth", "spiked random features"})
    assert texts["hint-errors"].startswith("no limits n → ∞")
    assert "spiked random features" in texts["hint-errors"]
    assert texts["hint-errors"].endswith(f" with {told}")
    assert texts["message"] == ""
    known = "tuned ridge" in names
    assert known == (name == "rows")  # of square losses on isotropic inputs


def test_the_fit_of_real_labels_leaves_the_spectrum_as_it_is() -> None:
    plain = tasks_of(PageState())["spectrum"]
    assert tasks_of(PageState(intercept=True))["spectrum"] == plain
    assert tasks_of(PageState(loss="huber", intercept=True))["spectrum"] == plain
    assert tasks_of(PageState(loss="hinge"))["spectrum"] != plain


def test_labels_of_two_signs_have_no_learned_degrees() -> None:
    state = PageState(readout="rademacher", loss="hinge")
    point = answer(*tasks_of(state)["point"])
    drawn, texts = main_view(state, {"point": point})
    shown = written(drawn["graph-degrees"])[0].replace("<br>", " ")
    assert shown == "Not defined: with loss hinge the output does not estimate the labels."
    assert {trace["name"] for trace in drawn["graph-learned"]["data"]} == {
        "best, sign of E[y|κ]",
        "learned, M(κ)",
    }
    assert f"{point['test_error']:.1%} of the signs wrong" in texts["sentence"]


@pytest.mark.parametrize("loss", ["square_signs", "squared_hinge"])
def test_outputs_that_estimate_signs_have_learned_degrees(loss: str) -> None:
    """The share of the linear part of E[y|κ]."""
    state = PageState(readout="rademacher", loss=loss)
    point = answer(*tasks_of(state)["point"])
    drawn, texts = main_view(state, {"point": point})
    assert not point["undrawn"]
    (bars,) = drawn["graph-degrees"]["data"]
    found = predict(state.problem)
    nodes, weight = gauss_hermite(120)
    share = weight * nodes @ found.learned(nodes) / (weight * nodes @ found.target_along(nodes))
    assert bars["y"][0] == pytest.approx(share)
    assert texts["sentence"].startswith("Of the target the network learns")
    high = figures.degrees(state, "learned", [1.2, None, 0.1], "#000000")["layout"]["yaxis"]
    assert high["range"][1] > 1.06 * 1.2  # the number on the bar has room
    low = figures.degrees(state, "learned", [1.01, None, 0.1], "#000000")["layout"]["yaxis"]
    assert (
        low["range"] == figures.degrees(state, "learned", [], "#000000")["layout"]["yaxis"]["range"]
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rows": "same", "loss": "hinge"}, "rows"),
        ({"steps": 2, "covariance": "power_one"}, "covariance"),
        ({"rows": "same", "residual": "full"}, "residual"),
    ],
)
def test_a_state_without_a_prediction_is_refused_whole(
    views: Views, changes: dict[str, object], field: str
) -> None:
    state = PageState(readout="rademacher", **changes)
    for lane in module.LANES:  # the spectrum's panel, too, stays as it was
        with pytest.raises(InvalidProblem) as refused:
            views.answers(state, lane, "draft")
        assert refused.value.parameter == field


def test_a_curve_that_takes_too_long_stays_a_draft(views: Views) -> None:
    state = PageState(readout="rademacher", rows="same", n=700)
    drafts = views.answers(state, "main", "draft")[0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "DEADLINE", 0.0)
        late = views.answers(state.replace(theme="dark"), "main", "full")[0]
    assert late["curve"] == drafts["curve"]


def test_the_staircase_is_the_limit_of_each_regime() -> None:
    state = PageState()
    for step in panels.stairs(state)[:4]:
        found = limit(state.problem, step["degree"], norm_growth=True)
        assert step["test_error"] == pytest.approx(found.test_error, rel=1e-12)
        assert step["train_loss"] == pytest.approx(found.train_loss, rel=1e-12)


def test_the_current_point_lies_on_the_curve() -> None:
    for over in ("exponent", "samples", "width", "ridge"):
        state = PageState(over=over, step_exponent=0.3, ridge=0.0316227766, readout="rademacher")
        at, curve = states.here(state), panels.curve(state)
        x, y = np.array(curve["x"]), np.array(curve["test_error"])
        value = np.interp(at, x, y) if over == "exponent" else np.interp(np.log(at), np.log(x), y)
        assert panels.point(state)["test_error"] == pytest.approx(value, rel=0.01)


def test_a_step_outright_is_shown_at_its_exponent() -> None:
    by_size = PageState(step="size", step_size=2000**0.3, n=2000)
    assert states.here(by_size) == pytest.approx(0.3)
    assert curve_key(by_size) == curve_key(PageState(n=2000))


def test_the_spectrum_is_the_engine_s() -> None:
    state = PageState(readout="rademacher")
    data = panels.spectrum(state)
    found = spectrum(state.problem)
    assert [s["degree"] for s in data["spikes"]] == [s.degree for s in found.spikes]
    for shown, spike in zip(data["spikes"], found.spikes, strict=True):
        assert shown["singular_value"] == spike.singular_value
        assert shown["overlaps"] == list(spike.overlaps)
    ends = np.sqrt(np.array(found.edges))
    np.testing.assert_array_equal(data["edges"], ends)
    np.testing.assert_array_equal(data["density"], found.singular_density(np.array(data["s"])))
    drawn = figures.spectrum_figure(state, data)
    labels = written(drawn)
    for spike in found.spikes:  # with the power it carries; H_k are told on hover
        assert f"<b>{('κ', 'κ²')[spike.degree - 1]}</b> {spike.share:.0%}" in labels
    square = next(spike for spike in found.spikes if spike.degree == 2)
    assert square.share == square.power_overlaps[1] > square.overlaps[1] + 0.2
    marks = [trace for trace in drawn["data"] if trace["name"] == "predicted spike"]
    assert f"H<sub>2</sub> {found.spikes[1].overlaps[1]:.0%}" in marks[1]["hovertemplate"]
    for mark in marks:  # on the axis: a density has no height there
        assert mark["y"][0] == 0.0
        assert mark["mode"] == "markers+text"


def spectrum_data(**changes: object) -> dict[str, object]:
    data = {"s": [0.1, 1.0], "density": [1.0, 0.0], "edges": [[0.1, 1.0]], "atom": 0.25}
    places = asdict(states.spectrum_axes(PageState()))
    return {**data, "spikes": [], "notes": [], "axes": places, "rough": False, **changes}


def spike_data(at: float, degree: int, share: float) -> dict[str, object]:
    overlaps = [share if k == degree else 0.0 for k in range(1, 7)]
    shares = {"overlaps": overlaps, "power_overlaps": overlaps}
    constant = share if degree == 0 else 0.0
    found = {"singular_value": at, "degree": degree, "resolved": True, "constant_overlap": constant}
    return {**found, **shares, "share": share}


def test_an_atom_is_told_and_a_spike_at_the_end_is_named_to_its_left() -> None:
    state = PageState(theme="dark")
    right = states.spectrum_axes(state).right
    data = spectrum_data(spikes=[spike_data(0.98 * right, 0, 1.0)])
    drawn = figures.spectrum_figure(state, data)
    (mark,) = [trace for trace in drawn["data"] if trace["name"] == "predicted spike"]
    assert mark["text"][-1] == "<b>constant</b> 100%"
    assert (mark["mode"], mark["textposition"]) == ("markers+text", "top left")
    assert "25% of the values are 0" in written(drawn)


def test_a_simulation_is_laid_over_the_spectrum() -> None:
    seen = [
        {"singular_value": 3.0 + draw, "rank": 0, "overlaps": [0.0, 0.8] + [0.0] * 5,
         "power_overlaps": [0.8 + 0.1 * draw] + [0.0] * 5}
        for draw in (0, 1)
    ]  # fmt: skip
    alone = {"singular_value": 2.4, "rank": 1, "overlaps": [0.0] * 7, "power_overlaps": [0, 0.5]}
    theory = spectrum_data(spikes=[spike_data(2.9, 1, 0.9)])
    simulated = {"n": 900, "ends": [0.0, 0.5, 1.0], "heights": [1.5, 0.5], "theory": theory}
    simulated["spikes"] = [*seen, {**alone, "power_overlaps": [0.0, 0.5, 0.0, 0.0, 0.0, 0.0]}]
    drawn = figures.spectrum_figure(
        PageState(), spectrum_data(spikes=[spike_data(3.1, 1, 0.9)]), simulated
    )
    places = states.spectrum_axes(PageState())
    bars, *_, squares = drawn["data"]
    assert bars["y"] == [1.5, 1.5, 0.5, 0.5]
    assert bars["x"] == places.place([0.0, 0.5, 0.5, 1.0])
    assert squares["x"] == places.place([3.0, 4.0, 2.4])
    assert squares["text"] == ["", "", "κ² 50%"]
    texts = " ".join(written(drawn))
    assert "<b>κ</b> 90%" in texts
    assert "sim. 85%" in texts  # the mean over the draws
    dotted = [t for t in drawn["data"] if t.get("line", {}).get("dash") == "dot"]
    assert len(dotted) == 1  # the prediction at the simulation's own n: its bulk, and its spike
    marks = [t for t in drawn["data"] if t["name"] == "predicted spike"]
    assert [t["marker"]["size"][0] for t in marks] == [14, 8]


def test_degrees_say_how_much_of_the_target_is_learned() -> None:
    point = panels.point(PageState(step_exponent=0.4))
    rows = words.shares(point["degrees"])
    assert len(rows) == words.DEGREES
    assert 0.9 < rows[0] <= 1.0
    assert 0.2 < rows[1] < 0.8
    assert rows[2] is None
    told = words.sentence(point)
    assert "the linear part well and " in told
    assert "below the untrained network's" in told


@pytest.mark.parametrize(
    ("learned", "text"),
    [
        (
            (1.0, 0.5, 0.0),
            "the linear part well and 50% of the quadratic part, and nothing of the ",
        ),
        ((0.5, 0.5, 0.5), "learns 50% of the linear part, 50% of the quadratic part and 50% of "),
        ((0.0, 0.0, 0.0), "learns nothing of the linear, quadratic and cubic parts"),
        ((1.0, 1.0, 1.0), "learns the linear, quadratic and cubic parts well."),
    ],
)
def test_every_mixture_of_learned_degrees_is_a_sentence(learned, text) -> None:
    rows = [{"target": 1.0, "learned": share} for share in learned]
    rest = [{"target": 0.0, "learned": 0.0}] * 3
    point = {"degrees": [*rows, *rest], "test_error": 1.0, "step_size": 0.0, "is_binary": False}
    assert text in words.sentence({**point, "baselines": {"untrained": 1.0}})
    nothing = words.sentence({**point, "degrees": rest * 2, "baselines": {"untrained": 1.0}})
    assert nothing.startswith("The target has no part along the learned direction.")


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

    assert words.spikes([]) == "No spike leaves the bulk."
    assert words.spikes([spike(1)]) == "1 spike: linear feature of the learned direction."
    both = "2 spikes: linear and quadratic features of the learned direction."
    assert words.spikes([spike(1), spike(2), spike(3, resolved=False)]) == both


def test_a_part_that_fails_leaves_the_other_panels_alone(views: Views) -> None:
    state = PageState(readout="constant")  # whose spectrum is quick
    answers = views.answers(state, "main")[0]
    drawn, texts = main_view(state, {**answers, "curve": TooSlow("stopped after 8 s")})
    whole, told = main_view(state, answers)
    assert texts["message"] == "stopped after 8 s"
    assert texts["sentence"] == told["sentence"]
    assert drawn["graph-learned"] == whole["graph-learned"]
    assert len(drawn["graph-errors"]["data"]) >= 4
    assert drawn["graph-degrees"]["data"]
    panels, _ = spectrum_view(state, {"spectrum": Refused("no solution at z = 1")})
    assert panels["graph-degrees"]["data"] == []
    assert "no solution" in panels["graph-spectrum"]["layout"]["annotations"][0]["text"]


def test_moving_along_the_curve_computes_no_new_curve() -> None:
    first, second = tasks_of(PageState(step_exponent=0.1)), tasks_of(PageState(step_exponent=0.2))
    assert first["curve"] == second["curve"]
    assert first["stairs"] == second["stairs"]
    assert first["point"] != second["point"]
    dark = tasks_of(PageState(step_exponent=0.1, theme="dark"))
    assert dark == first


def test_themes_differ_in_colour_only(views: Views) -> None:
    shown = []
    for theme in ("light", "dark"):
        state = PageState(theme=theme, readout="constant")
        shown.append(main_view(state, views.answers(state, "main")[0])[0]["graph-errors"])
    light, dark = shown
    assert [t["y"] for t in light["data"]] == [t["y"] for t in dark["data"]]
    assert light["layout"]["paper_bgcolor"] != dark["layout"]["paper_bgcolor"]
    assert figures.message(PageState(theme="dark"), "x")["layout"]["font"]["color"] == "#e8edf2"


def drawn_errors(state: PageState, **changes: object) -> dict[str, Any]:
    stairs = panels.stairs(state) if state.over == "exponent" else None
    answers = {"point": panels.point(state), "curve": panels.curve(state), "stairs": stairs}
    return figures.errors_figure(state, *{**answers, "simulated": None, **changes}.values())


def test_the_legend_names_the_curves_and_both_limits() -> None:
    state = PageState(noise_std=0.5, readout="constant")
    drawn = drawn_errors(state)
    named = [trace["name"] for trace in drawn["data"] if trace.get("showlegend", True)]
    assert sorted(named) == ["limit with norm growth", "published limit", "test", "train"]
    texts = written(drawn)
    for name in ("untrained", "tuned ridge", "noise floor", "test error, train loss"):
        assert name in texts
    steps = panels.stairs(state)
    (published,) = [
        t for t in drawn["data"] if t["name"] == "published limit" and t.get("showlegend", True)
    ]
    assert published["y"][0] == pytest.approx(limit(state.problem, 1).test_error, rel=1e-12)
    assert steps[1]["published_test_error"] == pytest.approx(limit(state.problem, 2).test_error)


def test_a_learning_curve_has_the_linear_methods_by_name() -> None:
    state = PRESETS["cui"].state
    drawn = drawn_errors(state)
    curves = {trace["name"]: trace for trace in drawn["data"]}
    ratio = curves["kernel ridge"]["x"]
    at = len(ratio) // 2
    problem = states.base(state).replace(n=round(ratio[at] * state.problem.d))
    assert curves["kernel ridge"]["y"][at] == pytest.approx(kernel_error(problem))
    tuned = baselines(problem).ridge_n_tuned
    assert curves["tuned ridge"]["y"][at] == pytest.approx(tuned)
    centred = state.replace(activation="relu", centre=False)
    assert "kernel" not in panels.curve(centred, draft=True)


def test_a_peak_is_drawn_on_a_logarithmic_axis_with_points_on_it() -> None:
    state = PRESETS["descent"].state
    drawn = drawn_errors(state)
    assert drawn["layout"]["yaxis"]["type"] == "log"
    curve = panels.curve(state)
    peak = int(np.argmax(curve["test_error"]))
    assert curve["x"][peak] == pytest.approx(1.0, abs=0.021)
    near = [x for x in curve["x"] if 0.9 < x < 1.11]
    assert len(near) >= 5
    assert drawn_errors(PageState(n=500))["layout"]["yaxis"].get("type", "linear") == "linear"


def test_beyond_the_largest_exponent_the_curve_goes_on() -> None:
    state = PageState(n=200, step="size", step_size=40.0, readout="rademacher")
    at = states.here(state)
    curve = panels.curve(state)
    assert 0.6 < at < 0.7 == max(curve["x"])
    value = np.interp(at, curve["x"], curve["test_error"])
    assert predict(state.problem).test_error == pytest.approx(value, rel=0.01)
    key = PageState.from_query(curve_key(state))
    assert states.exponents(key) == states.exponents(state) == (0.0, 0.7)
    assert curve_key(state) == curve_key(state.replace(step_size=35.0))
    low, high = (PageState(n=150, step="size", step_size=s) for s in (0.01, 1000.0))
    for far in (low, high):
        assert states.exponents(PageState.from_query(curve_key(far))) == states.exponents(far)


def test_the_gravest_note_is_told_first() -> None:
    """The one that admits the largest error; and notes keep their size on the way from a worker."""
    small, large = Note("small sizes", "size", 0.02), Note("far beyond", "step", 0.3)
    through = pickle.loads(pickle.dumps([small, large]))
    assert words.gravest_first(through) == [("far beyond.", 0.3), ("small sizes.", 0.02)]
    unknown = words.gravest_first([small, "nobody knows"])
    assert unknown == [("nobody knows.", 1e9), ("small sizes.", 0.02)]


def test_what_takes_too_long_is_stopped_and_the_worker_replaced() -> None:
    pool = Pool(1, Memory())
    ask = partial(pool.ask, deadline=60.0)
    try:
        (late,) = pool.ask([PageTask("point", PageState().to_query())], deadline=0.01)
        assert isinstance(late, TooSlow)
        assert "takes too long" in str(late)
        (found,) = ask([PageTask("point", PageState().to_query())])
        assert found["test_error"] == predict(PageState().problem).test_error
        pool.workers[0].kill()
        while pool.workers[0].process.lives:
            time.sleep(0.01)
        (again,) = ask([PageTask("point", PageState(n=500).to_query())])
        (refused,) = ask([PageTask("point", PageState(activation="abs").to_query())])
        assert again["n"] == 500
        assert isinstance(refused, InvalidProblem)
        assert "activation must have c_1" in str(refused)
    finally:
        pool.close()


@pytest.mark.parametrize("error", [Refused("too many parts"), TooSlow("stopped after 20 s")])
def test_where_the_full_spectrum_fails_a_draft_stays_and_says_so(
    views: Views, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    state = PageState(readout="constant", n=321)
    asked = views.pool.ask

    def ask(tasks: list[PageTask], *rest: Any, **how: Any) -> list[Any]:
        return [error] if tasks[0].how == "full" else asked(tasks, *rest, **how)

    monkeypatch.setattr(views.pool, "ask", ask)
    found = views.answers(state, "spectrum")[0]["spectrum"]
    draft = views.answers(state, "spectrum", "draft")[0]["spectrum"]
    assert {**found, "notes": []} == {**draft, "notes": []}
    assert found["notes"] == [
        *draft["notes"],
        f"expect a less accurate spectrum: the full one was not computed ({error})",
    ]
    late = Refused("takes longer")
    monkeypatch.setattr(
        views.pool, "ask", lambda tasks, *_, **__: [error if tasks[0].how == "full" else late]
    )
    assert views.answers(state, "spectrum")[0]["spectrum"] is error
