"""The errors' figure: curves along an axis, their limits, simpler predictors and where we are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.extensions import departing
from ..core.problem import BINARY_LOSSES, interval
from .errors_axis import errors, exponents, here
from .figures import AXES, NOTHING, PIN, Figure, frame, line, marks, note, open_squares
from .spectrum_axis import nice
from .state import State
from .theme import THEMES, Theme

_BASELINES = {  # by their names in `theory.baselines`
    "untrained": ("untrained", "dot"),
    "ridge_n_tuned": ("tuned ridge on n inputs", "dashdot"),
    "kernel": ("kernel ridge", "6px,2px"),
    "noise_floor": ("noise floor", "dot"),
    "linear_n_tuned": ("tuned linear fit on n inputs", "dashdot"),
    "bayes_error": ("least error", "dot"),
}
_LEVELS = ("noise_floor", "bayes_error")  # the same along every axis
_LIMITS = {  # n → ∞
    "": ("limit with norm growth", "4px,3px"),
    "published_": ("published limit", "1px,3px"),
}
_CURVES = ("test", "train")
_DASHES = {"test": "solid", "train": "12px,3px"}
_NAMED = 4  # regimes with their degree written above
_PEAKED = 8.0  # largest over smallest test error from which their axis is logarithmic
_DECADES = 4.0  # of a logarithmic axis, at most


def figure(state: State, point: Any, curve: Any, stairs: Any, simulated: Any) -> Figure:
    """Train and test error along the axis, their limits, the baselines and the current point."""
    theme = THEMES[state.theme]
    traces: list[Any] = []
    names = errors(state)
    for name, label, colour in zip(names, _CURVES, (theme.test, theme.train), strict=True):
        if isinstance(stairs, list):
            traces += [_staircase(stairs, prefix, name, colour) for prefix in _LIMITS]
        if isinstance(curve, Mapping):
            traces.append(
                PIN | line(curve["x"], curve[name], label, colour, dash=_DASHES[label], width=2.6)
            )
        if name == "test_error" and isinstance(curve, Mapping) and "isotropic" in curve:
            spiked = line(curve["x"], curve["isotropic"], "spiked random features", theme.muted)
            traces.append(spiked | {"line": {**spiked["line"], "dash": "10px,4px,2px,4px"}})
        if isinstance(simulated, Mapping):
            traces += _simulated(simulated, name, label, colour, theme)
    flat = _baselines(state, point, curve, theme)
    up = _y_axis(state, curve, [*traces, *flat])
    traces = [*_named(flat, up, curve, names, theme.ink), *traces]
    if isinstance(point, Mapping) and (at := here(state)) is not None:
        edge = {"color": theme.paper, "width": 2}
        marker = {"color": [theme.test, theme.train], "size": 11, "line": edge}
        both = [point[name] for name in names]
        traces.append(marks([at, at], both, "here", marker, hoverinfo="skip"))
    published = state.over == "exponent" and not departing(state.problem)
    shapes, notes = _regimes(theme) if published else ([], [])
    low, high = exponents(state)
    across: Figure = {"title": AXES[state.over], "type": "log"}
    if state.over == "exponent":
        across |= {"type": "linear", "range": [low - 0.008, high + 0.008]}
    ranks = [*_CURVES, "published", "limit"]
    for trace in traces:
        first = (rank for rank, name in enumerate(ranks) if trace["name"].startswith(name))
        trace["legendrank"] = next(first, len(ranks))
    drawn = frame(theme, traces, across, up, notes, revision=state.over)
    drawn["layout"]["shapes"] = shapes
    return drawn


def _y_axis(state: State, curve: Any, traces: list[Any]) -> Figure:
    """From 0, or logarithmic where a peak of the test error would flatten everything else."""
    title = "test error, train loss" if "train_loss" in errors(state) else "test and train error"
    if state.loss in BINARY_LOSSES:
        title = "share of wrong signs"
    values = [value for trace in traces for value in trace["y"] if value is not None]
    top = 1.03 * max(values, default=1.0)
    found = [v for v in curve["test_error"] if v] if isinstance(curve, Mapping) else []
    if not found or max(found) < _PEAKED * min(found):
        return {"title": title, "range": [0.0, nice(top)]}
    low = max(min(value for value in values if value > 0.0) / 1.2, top * 10.0**-_DECADES)
    ends = [math.log10(low), math.log10(1.2 * top)]
    ticks = {"dtick": 1, "exponentformat": "power", "minexponent": 0}
    return {"title": title, "type": "log", "range": ends, **ticks}


def _baselines(state: State, point: Any, curve: Any, theme: Theme) -> list[Any]:
    """Simpler predictors: curves for the legend, or level lines, which it does not name."""
    traces = list[Any]()
    if not isinstance(point, Mapping):
        return traces
    low, high = exponents(state)
    if state.over != "exponent":
        low, high = (curve["x"][0], curve["x"][-1]) if isinstance(curve, Mapping) else (0.1, 10.0)
    for (name, (label, dash)), colour in zip(_BASELINES.items(), _colours(theme), strict=True):
        value = point["baselines"].get(name, 0.0)
        if state.over != "exponent" and isinstance(curve, Mapping) and name in curve:
            traces.append(line(curve["x"], curve[name], label, colour, dash=dash))
        elif value > 0.0 and (state.over == "exponent" or name in _LEVELS):
            level = line([low, high], [value, value], label, colour, dash=dash)
            traces.append({**level, "showlegend": False})
    return traces


def _colours(theme: Theme) -> tuple[str, ...]:
    """Of the simpler predictors; those of another loss take the colours of the square's."""
    untrained, ridge, kernel, floor = theme.baselines
    return untrained, ridge, kernel, floor, ridge, floor


def _named(traces: list[Any], up: Figure, curve: Any, names: Sequence[str], ink: str) -> list[Any]:
    """Level lines with their names on them: above, or below where the next one is close above.

    They stand at the right end, or at the left one where only there no curve is in their way.
    """
    scale = math.log10 if up.get("type") == "log" else float
    levels = [trace for trace in traces if not trace.get("showlegend", True)]
    levels.sort(key=lambda level: level["y"])
    heights = [scale(level["y"][0]) for level in levels]
    room = 0.08 * (up["range"][1] - up["range"][0])
    third = len(curve["x"]) // 3 if isinstance(curve, Mapping) else 0
    ends = [(curve[name][:third], curve[name][-third:]) for name in names] if third else []
    for rank, (level, y) in enumerate(zip(levels, heights, strict=True)):
        tight = rank + 1 < len(levels) and heights[rank + 1] - y < room
        low, high = (y - room, y) if tight else (y, y + room)
        left, right = (
            any(low < scale(v) < high for each in ends for v in each[side] if v) for side in (0, 1)
        )
        first = right and not left
        font = {"size": 12, "color": ink}
        place = f"{'bottom' if tight else 'top'} {'right' if first else 'left'}"
        text = [level["name"], NOTHING] if first else [NOTHING, level["name"]]
        level |= {"mode": "lines+text", "text": text, "textposition": place, "textfont": font}
    return traces


def _staircase(stairs: list[Any], prefix: str, name: str, colour: str) -> Figure:
    label, dash = _LIMITS[prefix]
    x = [edge for step in stairs for edge in (step["low"], step["high"])]
    y = [step[prefix + name] for step in stairs for _ in range(2)]
    trace = line(x, y, label, colour, dash=dash, width=1.3 if not prefix else 1.8)
    return {**trace, "showlegend": name == "test_error"}


def _simulated(data: Any, name: str, label: str, colour: str, theme: Theme) -> list[Any]:
    bars = {"type": "data", "array": data[f"{name}_error"], "color": colour, "thickness": 1.4}
    points = marks(data["x"], data[name], "simulated", open_squares(colour, theme))
    points |= {"error_y": {**bars, "width": 4}}
    hover = (
        f"{label} %{{y:.4g}} ± %{{error_y.array:.2g}}<extra>simulated, n = {data['n']:,}</extra>"
    )
    points |= {"hovertemplate": hover}
    if "theory" not in data:
        return [points]
    theory = line(data["theory"]["x"], data["theory"][name], "", colour, dash="dot", width=1.2)
    return [{**theory, "name": f"theory, n = {data['n']:,}", "showlegend": False}, points]


def _regimes(theme: Theme) -> tuple[list[Any], list[Any]]:
    """Every other regime tinted, all as one shape, and the first few named above the axes."""
    ends = [interval(degree) for degree in range(2, 12, 2)]
    path = "".join(f"M{low},0H{high}V1H{low}Z" for low, high in ends)
    tinted = {"type": "path", "xref": "x", "yref": "paper", "layer": "below", "path": path}
    notes = []
    for degree in range(1, _NAMED + 1):
        text = f"ℓ = {degree}" if degree < 3 else str(degree)
        notes.append(note(text, sum(interval(degree)) / 2, 1.0, theme))
    return [{**tinted, "fillcolor": theme.tint, "line": {"width": 0}}], notes
