"""The panels as Plotly figures, written as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from ..regime import interval
from .parts import exponents, here
from .spectrum_axis import nice
from .state import State
from .theme import THEMES, Theme

Figure = dict[str, Any]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
AXES = {
    "exponent": "step exponent α",
    "samples": "samples over dimension, n/d",
    "width": "width over samples, N/n",
    "ridge": "ridge λ",
}
_BASELINES = {  # by their names in `theory.baselines`
    "untrained": ("untrained", "dot"),
    "ridge_n_tuned": ("tuned ridge on n inputs", "dashdot"),
    "kernel": ("kernel ridge", "6px,2px"),
    "noise_floor": ("noise floor", "dot"),
}
_LIMITS = {  # n → ∞
    "": ("limit with norm growth", "4px,3px"),
    "published_": ("published limit", "1px,3px"),
}
_CURVES = (("test_error", "test"), ("train_loss", "train"))
_NAMED = 4  # regimes with their degree written above
_PEAKED = 8.0  # largest over smallest test error from which their axis is logarithmic
_DECADES = 4.0  # of a logarithmic axis, at most


def errors(state: State, point: Any, curve: Any, stairs: Any, simulated: Any) -> Figure:
    """Train and test error along the axis, their limits, the baselines and the current point."""
    theme = THEMES[state.theme]
    traces: list[Any] = []
    for (name, label), colour in zip(_CURVES, (theme.test, theme.train), strict=True):
        if isinstance(stairs, list):
            traces += [_staircase(stairs, prefix, name, colour) for prefix in _LIMITS]
        if isinstance(curve, Mapping):
            traces.append(pinnable(line(curve["x"], curve[name], label, colour, width=2.6)))
        if isinstance(simulated, Mapping):
            traces += _simulated(simulated, name, label, colour, theme)
    flat, named = _baselines(state, point, curve, theme)
    up = _y_axis(curve, [*traces, *flat])
    traces = [*flat, *traces]
    if isinstance(point, Mapping) and (at := here(state)) is not None:
        for name, colour in (("test_error", theme.test), ("train_loss", theme.train)):
            traces.append(_marker(at, point[name], colour, theme))
    shapes, notes = _regimes(theme) if state.over == "exponent" else ([], [])
    notes += _direct(named, up, theme)
    low, high = exponents(state)
    across: Figure = {"title": AXES[state.over], "type": "log"}
    if state.over == "exponent":
        across |= {"type": "linear", "range": [low - 0.008, high + 0.008]}
    figure = frame(theme, traces, across, up, notes, revision=state.over)
    figure["layout"]["shapes"] = shapes
    ranks = [*(label for _, label in _CURVES), "published", "limit"]
    for trace in traces:
        first = (rank for rank, name in enumerate(ranks) if trace["name"].startswith(name))
        trace["legendrank"] = next(first, len(ranks))
        trace["legendgroup"] = trace["name"]  # items of their own widths, where rows are many
    figure["layout"]["legend"] |= {"x": -1.0, "y": -1.0, "xanchor": "left", "yanchor": "top"}
    return figure


def _y_axis(curve: Any, traces: list[Any]) -> Figure:
    """From 0, or logarithmic where a peak of the test error would flatten everything else."""
    values = [value for trace in traces for value in trace["y"] if value is not None]
    top = 1.03 * max(values, default=1.0)
    found = [v for v in curve["test_error"] if v] if isinstance(curve, Mapping) else []
    if not found or max(found) < _PEAKED * min(found):
        return {"title": "test error, train loss", "range": [0.0, nice(top)]}
    low = max(min(value for value in values if value > 0.0) / 1.2, top * 10.0**-_DECADES)
    ends = [math.log10(low), math.log10(1.2 * top)]
    ticks = {"dtick": 1, "exponentformat": "power", "minexponent": 0}
    return {"title": "test error, train loss", "type": "log", "range": ends, **ticks}


def _baselines(
    state: State, point: Any, curve: Any, theme: Theme
) -> tuple[list[Any], list[tuple[float, str, str]]]:
    """Simpler predictors: curves for the legend, or level lines with (height, name, colour)."""
    traces, named = list[Any](), list[tuple[float, str, str]]()
    if not isinstance(point, Mapping):
        return traces, named
    low, high = exponents(state)
    if state.over != "exponent":
        low, high = (curve["x"][0], curve["x"][-1]) if isinstance(curve, Mapping) else (0.1, 10.0)
    for (name, (label, dash)), colour in zip(_BASELINES.items(), theme.baselines, strict=True):
        value = point["baselines"].get(name, 0.0)
        if state.over != "exponent" and isinstance(curve, Mapping) and name in curve:
            traces.append(line(curve["x"], curve[name], label, colour, dash=dash))
        elif value > 0.0 and (state.over == "exponent" or name == "noise_floor"):
            level = line([low, high], [value, value], label, colour, dash=dash)
            traces.append({**level, "showlegend": False})
            named.append((value, label, colour))
    return traces, named


def _direct(named: list[tuple[float, str, str]], up: Figure, theme: Theme) -> list[Any]:
    """Names on level lines: above them, or below where the next line is close above."""
    is_log = up.get("type") == "log"
    places = sorted((math.log10(y) if is_log else y, label, colour) for y, label, colour in named)
    room = 0.08 * (up["range"][1] - up["range"][0])
    notes = []
    for rank, (y, label, colour) in enumerate(places):
        tight = rank + 1 < len(places) and places[rank + 1][0] - y < room
        font = {"size": 12, "color": colour}
        anchor: Figure = {"xref": "paper", "yref": "y", "xanchor": "right", "font": font}
        anchor |= {"bgcolor": theme.paper, "opacity": 0.85, "borderpad": 0}
        notes.append(note(label, 1.0, y, theme, **anchor, yanchor="top" if tight else "bottom"))
    return notes


def _staircase(stairs: list[Any], prefix: str, name: str, colour: str) -> Figure:
    label, dash = _LIMITS[prefix]
    x = [edge for step in stairs for edge in (step["low"], step["high"])]
    y = [step[prefix + name] for step in stairs for _ in range(2)]
    trace = line(x, y, label, colour, dash=dash, width=1.3 if not prefix else 1.8)
    return {**trace, "showlegend": name == "test_error"}


def _simulated(data: Any, name: str, label: str, colour: str, theme: Theme) -> list[Any]:
    bars = {"type": "data", "array": data[f"{name}_error"], "color": colour, "thickness": 1.4}
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": data["x"],
        "y": data[name],
        "error_y": {**bars, "width": 4},
        "marker": open_squares(colour, theme),
        "name": "simulated",
        "showlegend": False,
        "hovertemplate": f"{label} %{{y:.4g}} ± %{{error_y.array:.2g}}"
        f"<extra>simulated, n = {data['n']:,}</extra>",
    }
    if "theory" not in data:
        return [points]
    theory = line(data["theory"]["x"], data["theory"][name], "", colour, dash="dot", width=1.2)
    return [{**theory, "name": f"theory, n = {data['n']:,}", "showlegend": False}, points]


def open_squares(colour: str, theme: Theme) -> Figure:
    """The marks of simulations."""
    edge = {"color": colour, "width": 1.8}
    return {"color": theme.paper, "size": 8, "symbol": "square", "line": edge}


def _regimes(theme: Theme) -> tuple[list[Any], list[Any]]:
    """Every other regime tinted, and the first few named above the axes."""
    shapes, notes = [], []
    for degree in range(1, 12):
        low, high = interval(degree)
        if degree % 2 == 0:
            box = {"type": "rect", "xref": "x", "yref": "paper", "layer": "below"}
            ends = {"x0": low, "x1": high, "y0": 0, "y1": 1}
            shapes.append({**box, **ends, "fillcolor": theme.tint, "line": {"width": 0}})
        if degree <= _NAMED:
            text = f"ℓ = {degree}" if degree < 3 else str(degree)
            notes.append(note(text, (low + high) / 2, 1.0, theme))
    return shapes, notes


def note(text: str, x: float, y: float, theme: Theme, **rest: Any) -> Figure:
    """A text in a figure."""
    place = {"x": x, "y": y, "xref": "x", "yref": "paper", "yanchor": "bottom"}
    font = {"size": 12, "color": theme.muted}
    return {"text": text, **place, "showarrow": False, "font": font, **rest}


def learned(state: State, point: Any) -> Figure:
    """M(κ) over E[y|κ]."""
    theme = THEMES[state.theme]
    traces = []
    if isinstance(point, Mapping):
        best = line(point["kappa"], point["best"], "best, E[y|κ]", theme.muted, dash="6px,3px")
        found = line(point["kappa"], point["learned"], "learned, M(κ)", theme.test, width=2.4)
        traces = [best, pinnable(found)]
    axis = {"title": "input along the learned direction, κ", "range": [-3.05, 3.05]}
    heights = [value for trace in traces for value in trace["y"]]
    ends = [-nice(-1.05 * min(heights, default=-1.0)), nice(1.05 * max(heights, default=1.0))]
    return frame(theme, traces, axis, {"title": "output", "range": ends})


def degrees(state: State, name: str, values: Sequence[float | None], colour: str) -> Figure:
    """A share of each degree, as bars; the page puts those of its two lanes side by side."""
    theme = THEMES[state.theme]
    bars = {
        "type": "bar",
        "x": [f"H<sub>{degree}</sub>" for degree in range(1, len(values) + 1)],
        "y": values,
        "name": name,
        "marker": {"color": colour},
        "text": ["" if value is None or value < 0.005 else f"{value:.0%}" for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "constraintext": "none",
        "textfont": {"size": 10.5, "color": theme.ink},
        "hovertemplate": "%{x}: %{y:.1%}<extra></extra>",
    }
    up = {"range": [0, 1.12], "tickformat": ".0%", "dtick": 0.25}
    across = {"title": "degree of the learned direction, H<sub>k</sub>(κ)", "type": "category"}
    figure = frame(theme, [bars] if values else [], across, up)
    figure["layout"].update(barmode="group", bargap=0.2, bargroupgap=0.06, hovermode="closest")
    return figure


def message(state: State, text: str) -> Figure:
    """A panel without a result, and why."""
    theme = THEMES[state.theme]
    hidden = {"visible": False}
    where = {"xref": "paper", "yref": "paper", "yanchor": "middle"}
    shown = "<br>".join(escape(row) for row in wrap(text, 60))  # Plotly reads markup
    return frame(theme, [], dict(hidden), dict(hidden), [note(shown, 0.5, 0.5, theme, **where)])


def line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", width: float = 1.6
) -> Figure:
    """A curve."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": colour, "width": width, "dash": dash, "simplify": False},
        "hovertemplate": "%{y:.4g}",
    }


def pinnable(trace: Figure) -> Figure:
    """A curve that the page may keep to compare with."""
    return {**trace, "meta": "pin"}


def _marker(x: float, y: float, colour: str, theme: Theme) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [y],
        "marker": {"color": colour, "size": 11, "line": {"color": theme.paper, "width": 2}},
        "name": "here",
        "showlegend": False,
        "hoverinfo": "skip",
    }


def frame(
    theme: Theme,
    traces: list[Any],
    xaxis: Figure,
    yaxis: Figure,
    notes: Sequence[Figure] = (),
    *,
    revision: str = "same",
) -> Figure:
    """A figure in the house style. Margins are fixed, and titles stand clear of ticks in them.

    Those that follow their contents have Plotly draw everything twice.
    """
    axis = {
        "gridcolor": theme.rule,
        "linecolor": theme.muted,
        "tickcolor": theme.muted,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
    }
    below = {"xref": "paper", "xanchor": "center", "yanchor": "top", "yshift": -26}
    beside = {"xref": "paper", "xanchor": "center", "yanchor": "middle", "xshift": -56}
    beside["textangle"] = -90
    ink = {"size": 13, "color": theme.ink}
    titles = [note(xaxis.pop("title", ""), 0.5, 0.0, theme, **below, font=ink)]
    titles.append(note(yaxis.pop("title", ""), 0.0, 0.5, theme, **beside, font=ink))
    layout: Figure = {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 13, "color": theme.ink},
        "margin": {"l": 70, "r": 14, "t": 24, "b": 48, "autoexpand": False},
        "xaxis": {**axis, "showgrid": False, "showline": True, **xaxis},
        "yaxis": {**axis, **yaxis},
        "annotations": [*notes, *titles],
        "legend": {
            "orientation": "h",
            "font": {"size": 11, "color": theme.ink},
            "bgcolor": "rgba(0,0,0,0)",
            "tracegroupgap": 2,
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
        },
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.paper, "bordercolor": theme.rule},
        "uirevision": revision,
    }
    return {"data": traces, "layout": layout}
