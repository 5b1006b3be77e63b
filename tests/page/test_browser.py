"""The page in real Chromium: what a person sees, moves, follows and takes away."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

import pytest

from featurestep import predict
from featurestep.page import panels, server, words
from featurestep.page.state import LIMITS, POINTS, PageState
from featurestep.page.words import PRESETS

from .explorer import PANELS, Explorer

pytestmark = pytest.mark.slow

ALL = set(PANELS)
QUICK = "n=500&readout=rademacher"  # a law of two values: its spectrum takes little time
Act = Callable[[Explorer], None]
CONTROLS: dict[str, tuple[Act, set[str]]] = {
    "step_exponent": (lambda e: e.press("step_exponent", "ArrowLeft"), ALL),
    "step_scale": (lambda e: e.press("step_scale"), ALL),
    "n": (lambda e: e.press("n"), ALL),
    "phi": (lambda e: e.press("phi"), ALL),
    "psi": (lambda e: e.press("psi"), ALL),
    "step_ratio": (lambda e: e.press("step_ratio"), ALL),
    "ridge": (lambda e: e.press("ridge"), ALL - {"spectrum"}),
    "noise_std": (lambda e: e.press("noise_std"), ALL),
    "c2": (lambda e: e.press("c2"), ALL),
    "activation": (lambda e: e.choose("activation", "softplus"), ALL),
    "readout": (lambda e: e.choose("readout", "uniform"), ALL),
    "centre": (lambda e: e.flip("centre"), ALL),
    "residual": (lambda e: e.tick("residual", "full, y − f"), ALL),
    "isotropic": (lambda e: e.flip("isotropic"), {"errors"}),
    "over": (lambda e: e.choose("over", "λ"), {"errors"}),
}


def test_each_control_changes_the_right_panels(explorer: Explorer) -> None:
    explorer.open(QUICK)
    for name, (act, expected) in CONTROLS.items():
        before = explorer.drawn()
        act(explorer)
        after = explorer.drawn()
        changed = {panel for panel in PANELS if before[panel] != after[panel]}
        assert changed == expected, name
    state = explorer.state
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)
    assert (state.activation, state.readout, state.residual) == ("softplus", "uniform", "full")
    assert not state.centre
    moved = {"n": 500, "phi": 0.3, "psi": 0.6, "step_ratio": 1.0, "step_scale": 1.0, "ridge": 0.1}
    for name, start in moved.items():
        assert start < getattr(state, name) < 1.15 * start


def test_the_first_layer_can_be_chosen(explorer: Explorer) -> None:
    explorer.open(QUICK)
    assert explorer.state.initial == "sphere"
    explorer.tick("initial", "gaussian")
    state = explorer.state
    assert state.initial == "gaussian"
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)
    explorer.tick("initial", "unit sphere")
    assert explorer.state.initial == "sphere"


BEYOND: dict[str, tuple[Act, object, str]] = {  # a control, its new value, what is not known
    "rows": (lambda e: e.tick("rows", "the step's"), "same", "rows used twice"),
    "covariance": (
        lambda e: e.choose("covariance", "10 % eleven times larger"),
        "two_levels",
        "a covariance",
    ),
    "loss": (
        lambda e: e.choose("loss", "logistic, labels ±1"),
        "logistic",
        "this loss",
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_settings_beyond_a_plain_problem(explorer: Explorer, name: str) -> None:
    act, value, told = BEYOND[name]
    explorer.open(QUICK)
    before = explorer.drawn()
    act(explorer)
    state = explorer.state
    assert getattr(state, name) == value
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)
    hint = explorer.text("hint-errors")
    assert hint.startswith("no limits n → ∞")
    assert hint.endswith(f" with {told}")
    refused = "There is no theory of the spectrum" in explorer.page.text_content("#graph-spectrum")
    assert refused == (explorer.data("spectrum") == []) == (name != "rows")
    reason = "Not defined:" in explorer.page.text_content("#graph-degrees")
    assert reason == (explorer.data("degrees") == []) == (name == "loss")
    assert explorer.drawn()["errors"] != before["errors"]
    assert explorer.page.is_visible("#row-step_ratio") == (name != "rows")
    assert explorer.text("message") == ""
    explorer.page.go_back()
    explorer.settled()
    assert explorer.text("hint-errors") == ""
    assert explorer.data("spectrum") != []


def test_settings_that_exclude_each_other_are_told_and_change_nothing(explorer: Explorer) -> None:
    explorer.open(f"{QUICK}&rows=same")
    before = explorer.drawn()
    explorer.choose("loss", "hinge, labels ±1")
    assert explorer.text("message") == "rows must be fresh for predict with loss hinge; got 'same'"
    assert "wrong" in explorer.page.get_attribute("#row-rows", "class")
    assert explorer.drawn() == before
    explorer.tick("rows", "fresh")
    assert explorer.text("message") == ""
    assert explorer.page.locator(".wrong").count() == 0
    assert "of the signs wrong" in explorer.text("sentence")


def test_numbers_can_be_typed_and_modes_switched(explorer: Explorer) -> None:
    explorer.open(QUICK)
    explorer.type("ridge", "0.025")
    assert explorer.state.ridge == 0.025
    assert float(explorer.page.input_value("#slide-ridge")) == pytest.approx(-1.6, abs=0.03)
    explorer.tick("step", "size η")
    assert not explorer.page.is_visible("#slide-step_exponent")
    explorer.type("step_size", "0")
    assert "Only the readout is trained" in explorer.text("sentence")
    explorer.tick("target", "formula")
    assert not explorer.page.is_visible("#slide-c1")
    explorer.type("formula", "tanh", prefix="pick")
    assert explorer.state.target_text == "tanh"
    assert explorer.text("value-test_error") == words.number(
        predict(explorer.state.problem).test_error
    )


def test_a_mistake_marks_its_field_in_one_line_and_moves_nothing(explorer: Explorer) -> None:
    explorer.open(f"{QUICK}&target=formula")
    explorer.type("formula", "H1 +", prefix="pick")
    assert explorer.text("message").startswith("target must be one of tanh")
    assert explorer.page.get_attribute("#pick-formula", "aria-invalid") == "true"
    explorer.type("formula", "H1 + H3/sqrt(6)", prefix="pick")
    assert explorer.page.get_attribute("#pick-formula", "aria-invalid") is None
    assert "cubic" in explorer.text("sentence")
    before, address = explorer.drawn(), explorer.page.url
    slider = explorer.page.input_value("#slide-n")
    explorer.type("n", "7")
    assert explorer.text("message").startswith("n must be a whole number from 100 to 1e+06; got 7")
    assert explorer.page.get_attribute("#box-n", "aria-invalid") == "true"
    assert "wrong" in explorer.page.get_attribute("#row-n", "class")
    assert explorer.page.locator(".wrong").count() == 1
    assert explorer.page.input_value("#slide-n") == slider
    assert explorer.drawn() == before
    assert explorer.page.url == address
    explorer.type("n", "500")
    assert explorer.page.locator(".wrong").count() == 0
    assert explorer.text("message") == ""


def test_a_target_of_nothing_is_told_and_the_console_stays_silent(explorer: Explorer) -> None:
    explorer.open(QUICK)
    before = explorer.drawn()
    explorer.type("c1", "0")
    explorer.type("c2", "0")
    assert explorer.text("message").startswith("target must not be the zero function")
    assert explorer.page.get_attribute("#box-c2", "aria-invalid") == "true"
    explorer.type("c2", "1")
    assert explorer.text("message") != "target must not be the zero function"
    assert explorer.drawn() != before


def test_a_link_restores_everything(explorer: Explorer) -> None:
    state = PageState(
        n=700,
        step_exponent=0.35,
        ridge=0.02,
        noise_std=0.2,
        activation="erf",
        centre=False,
        readout="uniform",
        target="formula",
        formula="H1 + 0.3*H3",
        over="width",
        theme="dark",
    )
    explorer.open(state.to_query())
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)
    assert explorer.page.input_value("#pick-formula") == "H1 + 0.3*H3"
    assert explorer.page.input_value("#box-n") == "700"
    assert explorer.page.get_attribute("html", "data-theme") == "dark"
    explorer.press("ridge")
    moved = explorer.state
    assert moved == state.replace(ridge=moved.ridge)
    explorer.page.click("#copy-link")
    copied = explorer.page.evaluate("() => navigator.clipboard.readText()")
    assert PageState.from_query(copied.partition("?")[2]) == moved
    drawn = explorer.drawn()
    explorer.open(copied.partition("?")[2])
    assert explorer.drawn() == drawn


def test_a_bad_link_is_told_and_the_default_shown(explorer: Explorer) -> None:
    explorer.open("n=12&frobnicate=1")
    assert explorer.text("message").startswith("n must be a whole number")
    found = predict(PageState().problem).test_error
    assert explorer.text("value-test_error") == words.number(found)
    explorer.press("ridge")
    assert explorer.text("message") == ""


def test_presets(explorer: Explorer) -> None:
    explorer.open(QUICK)
    for name, preset in PRESETS.items():
        explorer.click(f"preset-{name}")
        state = preset.state
        assert explorer.state == state
        assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)
        shown = [each for each in PRESETS if explorer.page.is_visible(f"#caption-{each}")]
        assert shown == [name]
        assert preset.source in explorer.text(f"caption-{name}")
    explorer.press("ridge")
    assert not any(explorer.page.is_visible(f"#caption-{each}") for each in PRESETS)


def test_what_a_hand_has_zoomed_stays_while_a_slider_moves(explorer: Explorer) -> None:
    """Also when the frame is drawn anew: the noise moves the end of the errors' axis."""
    page = explorer.open(QUICK).page
    axis = "() => document.getElementById('graph-errors')._fullLayout.xaxis.range"
    whole = page.evaluate(axis)
    explorer.press("ridge")
    assert page.evaluate(axis) == whole
    box = page.locator("#graph-errors .nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    zoomed = page.evaluate(axis)
    assert zoomed[1] - zoomed[0] < 0.5 * (whole[1] - whole[0])
    before = explorer.data("errors")
    explorer.press("ridge", times=2)
    assert page.evaluate(axis) == zoomed
    assert explorer.data("errors") != before
    explorer.type("noise_std", "2")
    assert page.evaluate(axis) == zoomed


# What is seen of each panel, and the same once Plotly has drawn all of it anew.
SEEN = """() => {
  const what = '.scatterlayer path, .barlayer path, .textpoint text, .bartext';
  const look = (graph) => [...graph.querySelectorAll(what)]
    .map((each) => [each.getAttribute('d') || each.textContent, each.getAttribute('transform'),
      each.getAttribute('x'), each.getAttribute('y')].join(' '));
  return [...document.querySelectorAll('.graph > div')].map((graph) => {
    const moved = look(graph);
    window.Plotly.redraw(graph);
    return [graph.id, moved, look(graph)];
  });
}"""


def test_curves_that_moved_are_as_if_drawn_anew(explorer: Explorer) -> None:
    page = explorer.open("readout=rademacher&step_exponent=0.35").page
    page.evaluate(
        """() => {
          window.drawn = { animate: 0, react: 0 };
          for (const name of Object.keys(window.drawn)) {
            const own = window.Plotly[name];
            window.Plotly[name] = (...all) => { window.drawn[name] += 1; return own(...all); };
          }
        }"""
    )
    before = explorer.drawn()
    for name in ("step_exponent", "ridge", "phi", "noise_std", "c2", "step_scale"):
        explorer.press(name)
        for panel, moved, anew in page.evaluate(SEEN):
            assert moved == anew, (name, panel)
            assert len(moved) >= 2
    drawn = page.evaluate("window.drawn")
    assert drawn["animate"] > drawn["react"]  # moved in their frames, that is
    assert all(before[panel] != after for panel, after in explorer.drawn().items())


def test_a_slider_has_a_name_a_value_and_keys(explorer: Explorer) -> None:
    explorer.open(QUICK)
    for name in ("ridge", "step_exponent", "c1"):
        slider = explorer.page.locator(f"#slide-{name}")
        assert slider.get_attribute("aria-label")
        assert slider.get_attribute("aria-valuetext")
    assert explorer.page.get_by_role("slider", name="ridge λ").count() == 1
    explorer.press("ridge", "End")
    assert explorer.state.ridge == 1000.0
    explorer.press("ridge", "Home")
    assert explorer.state.ridge == 1e-6
    focusable = explorer.page.locator("#slide-ridge")
    focusable.focus()
    assert explorer.page.evaluate("() => document.activeElement.id") == "slide-ridge"


def test_dragging_fast_ends_at_the_last_value(explorer: Explorer) -> None:
    explorer.open(QUICK)
    explorer.press("phi", "ArrowRight", times=40)
    state = explorer.state
    assert state.phi == pytest.approx(0.3 * 10**0.4, rel=0.02)
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)


SLIDE = """([name, steps]) => {
  const slider = document.getElementById('slide-' + name);
  slider.value = Number(slider.value) + steps * Number(slider.step);
  slider.dispatchEvent(new Event('input', { bubbles: true }));
}"""


def test_moves_in_quick_succession_are_all_kept(explorer: Explorer) -> None:
    explorer.open("readout=constant")
    with explorer.answered():
        explorer.page.evaluate(SLIDE, ["step_exponent", 3])
        explorer.page.evaluate(SLIDE, ["noise_std", 2])
        explorer.page.evaluate(SLIDE, ["step_exponent", 1])
        explorer.page.click("#pick-centre")
    state = explorer.state
    plain = PageState(readout="constant")
    step = {name: LIMITS[name].step for name in ("step_exponent", "noise_std")}
    assert state.step_exponent == pytest.approx(plain.step_exponent + 4 * step["step_exponent"])
    assert state.noise_std == pytest.approx(plain.noise_std + 2 * step["noise_std"])
    assert state.centre is not plain.centre
    for name in step:
        box = explorer.page.input_value(f"#box-{name}")
        assert float(box) == pytest.approx(getattr(state, name))
        assert float(explorer.page.input_value(f"#slide-{name}")) == pytest.approx(float(box))


def test_a_drag_by_the_mouse_moves_the_panels_and_keeps_its_value(explorer: Explorer) -> None:
    explorer.open(QUICK)
    box = explorer.page.locator("#slide-noise_std").bounding_box()
    middle = box["y"] + box["height"] / 2
    mouse = explorer.page.mouse
    with explorer.answered():
        mouse.move(box["x"] + 7, middle)
        mouse.down()
        for share in (0.1, 0.2, 0.3, 0.4, 0.5):
            mouse.move(box["x"] + share * box["width"], middle)
        mouse.up()
    dragged = explorer.state
    assert 1.2 < dragged.noise_std < 1.8  # of 3
    assert float(explorer.page.input_value("#box-noise_std")) == dragged.noise_std
    explorer.type("ridge", "0.3")  # another control does not bring the old value back
    state = explorer.state
    assert (state.noise_std, state.ridge) == (dragged.noise_std, 0.3)
    assert explorer.text("value-test_error") == words.number(predict(state.problem).test_error)


def test_a_preset_right_after_a_move_wins(explorer: Explorer) -> None:
    explorer.open("readout=constant")
    with explorer.answered():
        explorer.page.evaluate(SLIDE, ["ridge", 5])
        explorer.page.evaluate("() => document.getElementById('preset-descent').click()")
    assert explorer.state.ridge == PRESETS["descent"].state.ridge
    assert float(explorer.page.input_value("#box-ridge")) == PRESETS["descent"].state.ridge


def test_at_rest_the_spectrum_is_shown_in_full(explorer: Explorer) -> None:
    explorer.open(QUICK)
    explorer.press("phi")
    (bulk, _, *spikes), state = explorer.data("spectrum"), explorer.state
    expected = panels.spectrum(state)
    assert bulk["y"] == pytest.approx(expected["density"], rel=1e-9)
    values = [spike["singular_value"] for spike in expected["spikes"]]
    assert [trace["customdata"][0] for trace in spikes] == pytest.approx(values, rel=1e-12)
    curve = next(trace for trace in explorer.data("errors") if trace["name"] == "test")
    assert len(curve["x"]) == POINTS["exponent"]


def test_edge_and_spikes_do_not_jump_from_the_draft_to_the_full_spectrum(
    explorer: Explorer,
) -> None:
    explorer.open("n=500&step_exponent=0.45")  # of a continuous readout law
    for _ in range(3):
        before = explorer.data("spectrum")
        explorer.page.evaluate(SLIDE, ["phi", 2])
        explorer.page.wait_for_selector("html[data-spectrum=idle]", state="attached")
        draft = explorer.data("spectrum")
        explorer.settled()
        full = explorer.data("spectrum")
        assert full[0]["y"] != before[0]["y"]
        assert [trace["name"] for trace in draft] == [trace["name"] for trace in full]
        ends = [[t["customdata"][-1] for t in each if "customdata" in t] for each in (draft, full)]
        assert len(ends[0]) >= 2
        assert ends[0] == pytest.approx(ends[1], rel=1e-3)


def test_simulate_overlays_and_cancel_ends_it(explorer: Explorer) -> None:
    page = explorer.open("n=150&readout=rademacher").page
    with explorer.answered():  # a finished simulation asks for the view once more
        page.click("#simulate")
    assert explorer.text("simulation") == "□ 6 draws"
    seen = [trace["name"] for trace in explorer.data("spectrum")]
    assert {"simulated", "simulated spikes"} <= set(seen)
    traces = [t for t in explorer.data("errors") if t["name"].startswith("simulated")]
    assert len(traces) == 2
    assert len(traces[0]["x"]) == 6
    assert all(error > 0 for error in traces[0]["error_y"]["array"])
    explorer.type("n", "2000")
    assert not [t for t in explorer.data("errors") if t["name"].startswith("simulated")]
    page.click("#simulate")
    page.wait_for_selector("html[data-job=yes] #cancel", state="visible")
    explorer.press("ridge")  # the page answers meanwhile
    page.click("#cancel")
    page.wait_for_selector("html[data-job=no]", state="attached")
    assert explorer.text("simulation") == "cancelled"
    explorer.settled()
    assert not [t for t in explorer.data("errors") if t["name"].startswith("simulated")]


def test_figures_data_and_code_are_taken_away(explorer: Explorer, tmp_path: Path) -> None:
    explorer.open(QUICK)
    state = PageState.from_query(QUICK)
    explorer.page.click("#export summary")
    table = explorer.download("save-csv", tmp_path)
    found = predict(state.problem)
    assert f"here,{state.step_exponent},{found.test_error},{found.train_loss}" in table
    record = json.loads(explorer.download("save-json", tmp_path))
    assert record["point"]["test_error"] == found.test_error
    assert PageState(**record["state"]) == state
    assert len(record["spectrum"]["spikes"]) >= 1
    picture = explorer.download("save-svg", tmp_path)
    assert picture.startswith("<svg")
    explorer.page.hover("#graph-learned")
    with explorer.page.expect_download() as started:
        explorer.page.click("#graph-learned .modebar-btn", force=True)
    assert started.value.suggested_filename == "featurestep-learned.svg"
    explorer.page.click("#copy-python")
    copied = explorer.page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("import numpy as np")
    assert "featurestep predict --activation relu" in explorer.text("shell")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_both_widths_in_both_themes(explorer: Explorer, theme: str) -> None:
    explorer.open(f"theme={theme}")
    for width, least in ((1280, 400), (820, 400), (390, 340)):
        explorer.page.set_viewport_size({"width": width, "height": 1100})
        explorer.settled()
        across = explorer.page.evaluate("() => document.documentElement.scrollWidth")
        assert across <= width
        boxes = [explorer.page.locator(f"#panel-{panel}").bounding_box() for panel in PANELS]
        assert all(box is not None and box["width"] > least for box in boxes)
        for name in ("step_exponent", "ridge", "c4"):
            slider = explorer.page.locator(f"#slide-{name}")
            slider.scroll_into_view_if_needed()
            assert slider.bounding_box()["width"] > 60
    ground = explorer.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(243, 245, 248)" if theme == "light" else "rgb(16, 22, 29)")


def test_the_theme_follows_the_system_and_the_button(explorer: Explorer) -> None:
    explorer.page.emulate_media(color_scheme="dark")
    explorer.open()
    assert explorer.page.get_attribute("html", "data-theme") == "dark"
    paper = "() => document.getElementById('graph-errors').layout.paper_bgcolor"
    assert explorer.page.evaluate(paper) == "#182029"
    explorer.click("toggle-theme")
    assert explorer.page.evaluate(paper) == "#ffffff"
    assert explorer.state.theme == "light"


def test_play_moves_the_exponent_and_the_axis_stays(explorer: Explorer) -> None:
    explorer.open("readout=rademacher&step_exponent=0.2&n=1000")
    page = explorer.page
    page.evaluate(RECORD)
    page.click("#play")
    page.wait_for_function("() => document.getElementById('play').textContent.includes('Play')")
    explorer.settled()
    frames = json.loads(page.evaluate("() => JSON.stringify(window.frames_seen)"))
    moved = [frame["exponent"] for frame in frames]
    assert moved == sorted(moved)
    assert (moved[0], moved[-1]) == (0.0, 0.5)
    offered = json.loads(page.evaluate("() => JSON.stringify(window.offered)"))
    assert set(moved) <= set(offered)
    assert (offered[0], offered[-1]) == (0.0, 0.5)
    between = [after - before for before, after in itertools.pairwise(offered)]
    assert 0.0 < min(between) <= max(between) < 0.0201  # .005; on a busy machine larger
    axes = [(frame["x"], frame["y"], frame["ticks"]) for frame in frames]
    assert all(each == axes[0] for each in axes)  # the axis does not jump
    counts = [frame["spikes"] for frame in frames]
    assert counts[0] == 0
    assert counts[-1] >= 2
    first = next(f for f in frames if f["spikes"] == 2)
    assert 0.25 < first["exponent"] < 0.5  # the second spike leaves on the way
    assert explorer.state.step_exponent == 0.5


RECORD = """() => {
  window.frames_seen = [];
  window.offered = [];
  const offer = window.featurestep.offer;
  window.featurestep.offer = (query) => {
    window.offered.push(Number(new URLSearchParams(query).get('step_exponent')));
    return offer(query);
  };
  const graph = document.getElementById('graph-spectrum');
  const seen = () => {
    const exponent = Number(document.getElementById('box-step_exponent').value);
    const { xaxis, yaxis } = graph.layout;
    const spikes = graph.data.filter((trace) => trace.name === 'predicted spike').length;
    window.frames_seen.push({
      exponent: exponent, x: xaxis.range, y: yaxis.range, ticks: xaxis.ticktext, spikes: spikes,
    });
  };
  for (const event of ['plotly_afterplot', 'plotly_transitioned']) graph.on(event, seen);
}"""


def test_a_move_of_the_slider_ends_the_play(explorer: Explorer) -> None:
    explorer.open(QUICK)
    explorer.page.click("#play")
    explorer.page.wait_for_function(
        "() => Number(document.getElementById('box-step_exponent').value) > 0.01"
    )
    explorer.press("ridge")
    assert explorer.text("play") == "▶ Play α"
    stopped = explorer.page.input_value("#box-step_exponent")
    assert 0.0 < float(stopped) < 0.5


def test_a_curve_is_pinned_and_the_link_carries_it(explorer: Explorer) -> None:
    explorer.open(QUICK)
    before = explorer.data("errors")
    explorer.page.click("#pin")
    explorer.page.wait_for_selector("html[data-pinned=yes]", state="attached")
    explorer.type("ridge", "1")
    explorer.type("phi", "0.5")
    for panel in ("errors", "spectrum", "learned"):
        assert [t for t in explorer.data(panel) if t["name"] == "pinned"]
    ghosts = [t for t in explorer.data("errors") if t["name"] == "pinned"]
    kept = [t for t in before if t["name"] in ("test", "train")]
    assert [g["y"] for g in ghosts] == [k["y"] for k in kept]
    (test,) = [t for t in explorer.data("errors") if t["name"] == "test"]
    assert test["y"] != ghosts[0]["y"]
    drawn = explorer.drawn()
    link = explorer.page.url
    explorer.page.goto("about:blank")
    explorer.page.goto(link)
    explorer.page.wait_for_selector("html[data-pinned=yes]", state="attached")
    explorer.settled()
    assert explorer.drawn() == drawn
    explorer.page.click("#pin")
    explorer.page.wait_for_selector("html[data-pinned=no]", state="attached")
    assert not [t for t in explorer.data("errors") if t["name"] == "pinned"]
    assert "#pin" not in explorer.page.url


LETTERS = """() => document.querySelector('#graph-spectrum .xtick text')
  .getBoundingClientRect().height"""


def test_a_panel_fills_the_screen_with_larger_letters(explorer: Explorer) -> None:
    explorer.open(QUICK)
    small = explorer.page.evaluate(LETTERS)
    explorer.page.click("[data-panel=spectrum]")
    explorer.page.wait_for_function("() => document.fullscreenElement !== null")
    wide = "document.querySelector('#graph-spectrum .main-svg').getBoundingClientRect().width"
    explorer.page.wait_for_function(f"() => {wide} > 1200")
    assert explorer.page.evaluate(LETTERS) == pytest.approx(1.6 * small, rel=0.05)
    mark = "#graph-spectrum .scatterlayer .trace .point"  # the triangle of the last spike
    spike = explorer.page.locator(mark).nth(-2).bounding_box()
    explorer.page.mouse.move(spike["x"] + spike["width"] / 2, spike["y"] + spike["height"] / 2)
    explorer.page.wait_for_selector("#graph-spectrum .hoverlayer .hovertext")
    explorer.page.click("[data-panel=spectrum]")
    explorer.page.wait_for_function(f"() => {wide} < 600")
    assert explorer.page.evaluate(LETTERS) == pytest.approx(small)


def test_caveats_are_in_sight_beside_the_numbers(explorer: Explorer) -> None:
    explorer.open(f"{QUICK}&step=size&step_size=60")
    badge = explorer.page.locator("#caveats")
    assert badge.is_visible()
    box = badge.bounding_box()
    assert box["y"] + box["height"] < 300
    count = explorer.page.locator("#validity li").count()
    assert badge.inner_text().startswith(f"⚠ {count} caveat")
    state = explorer.state
    notes = [*predict(state.problem).notes, *panels.spectrum(state)["notes"]]
    assert len(notes) == count
    assert max(notes, key=lambda note: note.size) in badge.inner_text()
    badge.click()
    assert explorer.page.locator("#notes li").first.is_visible()
    explorer.open(f"{QUICK}&step_exponent=0.1")  # a view without a caveat
    assert explorer.page.locator("#validity li").count() == 0
    assert not badge.is_visible()


def test_the_page_says_what_its_letters_are_and_where_to_read_on(explorer: Explorer) -> None:
    explorer.open(QUICK)
    told = explorer.page.inner_text(".about")
    assert "κ is the input along the direction β" in told
    assert "ℓ is the highest power of κ" in told
    links = explorer.page.eval_on_selector_all(".about a", "all => all.map((a) => a.href)")
    assert "https://arxiv.org/abs/2310.07891" in links
    for address in server.documents().values():  # none where neither site nor repository is known
        assert urljoin(explorer.address, address) in links


OVERLAPS = """() => [...document.querySelectorAll('.graph > div')].flatMap((graph) => {
  const boxes = (what) => [...graph.querySelectorAll(what)]
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([text, box]) => text && box.width > 0);
  const meet = (a, b) => Math.max(a.left, b.left) < Math.min(a.right, b.right)
    && Math.max(a.top, b.top) < Math.min(a.bottom, b.bottom);
  const ticks = boxes('.xtick text, .ytick text');
  return boxes('.annotation-text, .textpoint text').flatMap(([title, box]) =>
    ticks.filter(([, tick]) => meet(box, tick)).map(([tick]) => [graph.id, title, tick]));
})"""


# Items of legends that are not within their panels, or not clear of the axes' titles.
CUT = """() => [...document.querySelectorAll('.graph > div')].flatMap((graph) => {
  const all = graph.getBoundingClientRect();
  const titles = [...graph.querySelectorAll('.annotation-text')].map((each) => each.getBoundingClientRect());
  return [...graph.querySelectorAll('.legend .traces .legendtext')]
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([, box]) => box.left < all.left || box.right > all.right || box.bottom > all.bottom
      || titles.some((title) => Math.max(box.left, title.left) < Math.min(box.right, title.right)
        && Math.max(box.top, title.top) < Math.min(box.bottom, title.bottom)))
    .map(([text]) => [graph.id, text]);
})"""  # noqa: E501


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_titles_and_names_stand_clear_of_ticks(explorer: Explorer, width: int) -> None:
    explorer.page.set_viewport_size({"width": width, "height": 1100})
    explorer.open(QUICK)
    for name in (None, "cui", "descent"):
        if name is not None:
            explorer.click(f"preset-{name}")
        assert explorer.page.evaluate(OVERLAPS) == []
        assert explorer.page.evaluate(CUT) == []
    if width == 1280:  # a legend of one row, within the panel
        explorer.click("preset-moniri2")
        rows = explorer.page.eval_on_selector_all(
            "#graph-errors .legend .traces",
            "all => all.map((each) => Math.round(each.getBoundingClientRect().top))",
        )
        assert len(rows) == 4
        assert len(set(rows)) == 1


def test_the_browser_goes_back_by_presets_changes_and_whole_drags(explorer: Explorer) -> None:
    page = explorer.open(QUICK).page
    start = explorer.state
    explorer.click("preset-descent")
    explorer.type("ridge", "0.3")
    page.locator("#slide-noise_std").scroll_into_view_if_needed()
    slider = page.locator("#slide-noise_std").bounding_box()
    across = slider["y"] + slider["height"] / 2
    with explorer.answered():
        page.mouse.move(slider["x"] + 0.3 * slider["width"], across)
        page.mouse.down()
        for share in (0.4, 0.5, 0.6, 0.7):
            page.mouse.move(slider["x"] + share * slider["width"], across)
            page.wait_for_timeout(150)
        page.mouse.up()
    dragged = explorer.state
    assert dragged.noise_std > 1.0
    descent = PRESETS["descent"].state
    for expected in (descent.replace(ridge=0.3), descent, start):
        with explorer.answered():
            page.go_back()
        assert explorer.state == expected
        assert float(page.input_value("#box-ridge")) == expected.ridge
    for _ in range(3):
        with explorer.answered():
            page.go_forward()
    assert explorer.state == dragged


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_below_the_header_moves_when_texts_change(explorer: Explorer, width: int) -> None:
    page = explorer.open(QUICK).page
    page.set_viewport_size({"width": width, "height": 900})
    tops = """() => [...document.querySelectorAll('.panel, .graph')]
      .map((each) => Math.round(each.getBoundingClientRect().top + scrollY))"""
    places = set()

    def look() -> None:  # of the first panel alone where one without a curve is lower and later
        found = page.evaluate(tops)
        places.add(tuple(found) if width == 1440 else min(found))

    for name in PRESETS:
        explorer.click(f"preset-{name}")
        look()
    page.click("#pin")
    page.wait_for_selector("html[data-pinned=yes]", state="attached")
    look()
    page.evaluate("() => { document.documentElement.dataset.job = 'yes'; }")
    page.locator("#simulation").evaluate("(shown) => { shown.textContent = '6 draws, n = 1,000'; }")
    look()
    page.evaluate("() => { document.documentElement.dataset.job = 'no'; }")
    inside = page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert inside
    explorer.choose("covariance", "eigenvalue i ∝ 1/i")  # a long hint above the errors
    look()
    explorer.press("ridge")  # no caption
    page.fill("#box-ridge", "-1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not(:empty)")
    look()
    assert len(places) == 1


def test_a_slider_is_as_wide_as_its_column_and_a_phone_shows_a_plot_first(
    explorer: Explorer,
) -> None:
    page = explorer.open(QUICK).page
    slider, box, label = (
        page.locator(each).bounding_box()
        for each in ("#slide-step_exponent", "#box-step_exponent", "label[for=box-step_exponent]")
    )
    room = box["x"] - label["x"] - 90  # the label's column
    assert slider["width"] == pytest.approx(room - 2 * 8, abs=2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    other = f"{QUICK}&covariance=two_levels"  # has no spectrum
    for query, first in ((QUICK, "#graph-spectrum"), (other, "#graph-errors")):
        explorer.open(query)
        graph, sheet = (page.locator(each).bounding_box() for each in (first, "#controls"))
        assert graph["y"] > 0
        assert graph["y"] + graph["height"] <= sheet["y"]


def test_the_page_goes_on_after_the_server_was_away(explorer: Explorer) -> None:
    page = explorer.open(QUICK).page
    page.route("**/answers", lambda route: route.abort())
    page.fill("#box-ridge", "0.7")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not(:empty)")
    assert "does not answer" in explorer.text("message")
    page.unroute("**/answers")
    page.wait_for_function("() => document.getElementById('message').textContent === ''")
    explorer.settled()
    assert explorer.state.ridge == 0.7
    assert explorer.text("value-test_error") == words.number(
        predict(explorer.state.problem).test_error
    )
    explorer.complaints = [text for text in explorer.complaints if "ERR_FAILED" not in text]
