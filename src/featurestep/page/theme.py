"""Colours of the page's two themes: the house palette, with its lighter half on a dark ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..plot_style import PALETTE

BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY, _ = PALETTE


@dataclass(frozen=True)
class Theme:
    """Colours by their role in a figure."""

    paper: str
    ink: str
    muted: str  # axes, reference curves
    rule: str  # grid lines
    tint: str  # every other regime
    test: str
    fill: str  # under a curve in the colour of `test`
    train: str
    baselines: tuple[str, str, str]


THEMES: Mapping[str, Theme] = {
    "light": Theme(
        paper="#ffffff",
        ink="#1b2733",
        muted="#5b6875",
        rule="#e6eaee",
        tint="#f2f5f8",
        test=BLUE,
        fill="rgba(0, 114, 178, 0.16)",
        train=VERMILION,
        baselines=(GREEN, PURPLE, "#7a8691"),
    ),
    "dark": Theme(
        paper="#182029",
        ink="#e8edf2",
        muted="#a3b0bc",
        rule="#2b3742",
        tint="#1e2832",
        test=SKY,
        fill="rgba(86, 180, 233, 0.2)",
        train=AMBER,
        baselines=("#2fc39a", PURPLE, "#8e9ba7"),
    ),
}
