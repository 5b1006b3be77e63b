"""Colours of the page's two themes: the house palette, with its lighter half on a dark ground."""

from __future__ import annotations

from typing import NamedTuple

from ..core.display import PALETTE

BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY, _ = PALETTE


class Theme(NamedTuple):
    """Colours by their role in a figure."""

    paper: str = "#ffffff"
    ink: str = "#1b2733"
    muted: str = "#5b6875"  # axes, reference curves
    rule: str = "#e6eaee"  # grid lines
    tint: str = "#f2f5f8"  # every other regime
    test: str = BLUE
    fill: str = "rgba(0, 114, 178, 0.16)"  # under a curve in the colour of `test`
    ghost: str = "rgba(91, 104, 117, 0.3)"  # of a histogram behind the curves
    train: str = VERMILION
    baselines: tuple[str, ...] = (GREEN, PURPLE, AMBER, "#7a8691")


_LIGHT = ("rgba(86, 180, 233, 0.2)", "rgba(163, 176, 188, 0.3)", AMBER)
_LINES = ("#2fc39a", "#d79bc0", "#f0e442", "#8e9ba7")
THEMES = {
    "light": Theme(),
    "dark": Theme("#182029", "#e8edf2", "#a3b0bc", "#2b3742", "#1e2832", SKY, *_LIGHT, _LINES),
}
