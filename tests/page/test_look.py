"""Colours that can be read, and curves that differ by more than their colour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import featurestep.page
from featurestep.page import figures
from featurestep.page.figures import THEMES
from featurestep.page.state import PageState

STYLES = (Path(featurestep.page.__file__).parent / "assets" / "explore.css").read_text()
READABLE = 4.5  # WCAG 2, level AA


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def variables(selector: str) -> dict[str, str]:
    block = re.search(re.escape(selector) + r" \{(.*?)\}", STYLES, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block.group(1)))


PAIRS = [
    *((text, ground) for text in ("ink", "muted", "accent") for ground in ("paper", "ground")),
    ("accent-ink", "accent"),
    ("alert", "alert-ground"),
    ("alert", "paper"),
]


@pytest.mark.parametrize("selector", [":root", ':root[data-theme="dark"]'])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_texts_of_the_page_can_be_read(selector: str, text: str, ground: str) -> None:
    found = variables(selector)
    assert contrast(found[text], found[ground]) >= READABLE


@pytest.mark.parametrize("theme", THEMES.values())
def test_texts_of_figures_can_be_read(theme) -> None:
    assert contrast(theme.ink, theme.paper) >= READABLE
    assert contrast(theme.muted, theme.paper) >= READABLE


@pytest.mark.parametrize("name", THEMES)
def test_names_of_levels_are_written_in_ink_and_train_and_test_differ_by_dash(name: str) -> None:
    state = PageState(theme=name)
    levels = {"untrained": 1.0, "ridge_n_tuned": 0.8, "noise_floor": 0.1}
    point = {"test_error": 0.5, "train_loss": 0.3, "baselines": levels}
    curve = {"x": [0.0, 0.25, 0.5], "test_error": [0.9, 0.6, 0.5], "train_loss": [0.5, 0.4, 0.3]}
    drawn = figures.errors_figure(state, point, curve, None, None)["data"]
    named = [trace for trace in drawn if "textfont" in trace]
    assert len(named) == len(levels)
    assert {trace["textfont"]["color"] for trace in named} == {THEMES[name].ink}
    test, train = (next(t for t in drawn if t["name"] == n) for n in ("test", "train"))
    assert test["line"]["dash"] != train["line"]["dash"]


def test_names_of_levels_stand_where_no_curve_is_in_their_way() -> None:
    """Above at the right end the test error passes, and above at the left one the training loss."""
    levels = {"untrained": 0.156, "ridge_n_tuned": 0.0935, "noise_floor": 0.04}
    point = {"test_error": 0.101, "train_loss": 0.052, "baselines": levels}
    x = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    test, train = (
        [0.152, 0.139, 0.122, 0.114, 0.109, 0.101],
        [0.128, 0.117, 0.083, 0.065, 0.056, 0.052],
    )
    curve = {"x": x, "test_error": test, "train_loss": train}
    drawn = figures.errors_figure(PageState(), point, curve, None, None)["data"]
    places = {
        trace["name"]: (trace["text"].index(trace["name"]), trace["textposition"])
        for trace in drawn
        if "textfont" in trace
    }
    assert places == {
        "untrained": (1, "top left"),
        "tuned ridge": (1, "bottom left"),
        "noise floor": (0, "top right"),
    }


def test_a_name_is_not_cut_off_by_the_end_of_the_axis() -> None:
    """A level just below the top of the axis has its name below."""
    point = {"test_error": 1.0, "train_loss": 0.6, "baselines": {"untrained": 1.15}}
    curve = {"x": [0.0, 0.5], "test_error": [1.0, 0.95], "train_loss": [0.7, 0.65]}
    figure = figures.errors_figure(PageState(), point, curve, None, None)
    assert figure["layout"]["yaxis"]["range"] == [0.0, 1.2]
    (level,) = [trace for trace in figure["data"] if trace["name"] == "untrained"]
    assert level["textposition"].startswith("bottom")


def test_a_ridge_is_written_in_powers_of_ten() -> None:
    """Plotly's own form of 1e-6 is 1μ."""
    figure = figures.errors_figure(PageState(over="ridge"), None, None, None, None)
    assert figure["layout"]["xaxis"]["exponentformat"] == "power"
