"""Colours of the page's two themes: the house palette, with its lighter half on a dark ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..plots.style import PALETTE

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
    ghost: str  # of a histogram behind the curves
    train: str
    baselines: tuple[str, str, str, str]


_ROLES: Mapping[str, tuple[Any, Any]] = {  # on a light ground, on a dark one
    "paper": ("#ffffff", "#182029"),
    "ink": ("#1b2733", "#e8edf2"),
    "muted": ("#5b6875", "#a3b0bc"),
    "rule": ("#e6eaee", "#2b3742"),
    "tint": ("#f2f5f8", "#1e2832"),
    "test": (BLUE, SKY),
    "fill": ("rgba(0, 114, 178, 0.16)", "rgba(86, 180, 233, 0.2)"),
    "ghost": ("rgba(91, 104, 117, 0.3)", "rgba(163, 176, 188, 0.3)"),
    "train": (VERMILION, AMBER),
    "baselines": (
        (GREEN, PURPLE, AMBER, "#7a8691"),
        ("#2fc39a", "#d79bc0", "#f0e442", "#8e9ba7"),
    ),
}
THEMES: Mapping[str, Theme] = {
    name: Theme(**{role: pair[column] for role, pair in _ROLES.items()})
    for column, name in enumerate(("light", "dark"))
}
