"""The panels as Plotly figures, written as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from textwrap import wrap
from typing import Any

from .parts import here
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
_BASELINES = {
    "untrained": ("untrained", "dot"),
    "ridge_n_tuned": ("linear", "dashdot"),
    "noise_floor": ("noise floor", "dot"),
}
_RANKS = ("test error", "train loss", "n → ∞", "simulated")  # first in the legend
_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
_ROW, _NARROW = 29, 430.0  # pixels: a legend's row, the width of a narrow panel
_NAMED = 4  # regimes with their degree written above


def errors(state: State, point: Any, curve: Any, stairs: Any, simulated: Any) -> Figure:
    """Train and test error along the axis, their limits, the baselines and the current point."""
    theme = THEMES[state.theme]
    traces: list[Any] = []
    if isinstance(point, Mapping):
        traces += _baselines(state, point, curve, theme)
    for name, label, colour in (
        ("test_error", "test error", theme.test),
        ("train_loss", "train loss", theme.train),
    ):
        if isinstance(stairs, list):
            traces.append(_staircase(stairs, name, colour, theme))
        if isinstance(curve, Mapping):
            traces.append(line(curve["x"], curve[name], label, colour, width=2.4))
        if isinstance(simulated, Mapping):
            traces += _simulated(simulated, name, label, colour, theme)
    if isinstance(point, Mapping) and (at := here(state)) is not None:
        for name, colour in (("test_error", theme.test), ("train_loss", theme.train)):
            traces.append(_marker(at, point[name], colour, theme))
    log = state.over != "exponent"
    axis: Figure = {"title": {"text": AXES[state.over]}, "type": "log" if log else "linear"}
    if not log:
        axis["range"] = _exponents(state)
    figure = frame(theme, traces, axis, {"range": [0.0, _top(traces)]}, revision=state.over)
    if not log:
        figure["layout"]["shapes"], figure["layout"]["annotations"] = _regimes(theme)
    for trace in traces:
        ranks = [rank for rank, name in enumerate(_RANKS) if trace["name"].startswith(name)]
        trace["legendrank"] = min(ranks, default=len(_RANKS))
    figure["layout"]["legend"] = _legend(theme, bottom=True)
    figure["layout"]["margin"]["b"] = 48 + _ROW * _legend_rows(traces)
    return figure


def _legend_rows(traces: list[Any]) -> int:
    """How many rows the names take in a panel of the narrowest width."""
    shown = [trace for trace in traces if trace.get("showlegend", True)]
    rows, room = 0, 0.0
    for trace in sorted(shown, key=lambda trace: int(trace["legendrank"])):
        needed = 42.0 + 5.6 * len(trace["name"])
        if needed > room:
            rows, room = rows + 1, _NARROW
        room -= needed
    return rows


def nice(value: float) -> float:
    """The next round number outwards: axes that stay while a curve moves are quick to redraw."""
    if value <= 0.0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * scale >= 0.999999 * value) * scale


def _top(traces: list[Any]) -> float:
    values = [value for trace in traces for value in trace["y"] if value is not None]
    return nice(1.03 * max(values, default=1.0))


def _exponents(state: State) -> list[float]:
    at = state.exponent
    inside = at is None or 0.0 <= at <= 0.5
    low, high = (0.0, 0.5) if inside or at is None else (min(0.0, at), max(0.5, at))
    return [low - 0.008, high + 0.008]


def _baselines(state: State, point: Any, curve: Any, theme: Theme) -> list[Any]:
    x = [0.0, 0.5]
    if state.over != "exponent" and isinstance(curve, Mapping):
        x = [curve["x"][0], curve["x"][-1]]
    traces = []
    for (name, (label, dash)), colour in zip(_BASELINES.items(), theme.baselines, strict=True):
        value = point["baselines"][name]
        if state.over == "exponent" or (name == "noise_floor" and value > 0):
            if name != "noise_floor" or value > 0:
                traces.append(line(x, [value, value], label, colour, dash=dash))
        elif name == "untrained" and isinstance(curve, Mapping) and "untrained" in curve:
            traces.append(line(curve["x"], curve["untrained"], label, colour, dash=dash))
    return traces


def _staircase(stairs: list[Any], name: str, colour: str, theme: Theme) -> Figure:
    x = [edge for step in stairs for edge in (step["low"], step["high"])]
    y = [step[name] for step in stairs for _ in range(2)]
    trace = line(x, y, "n → ∞", colour, dash="4px,3px", width=1.3)
    return {**trace, "legendgroup": "limit", "showlegend": name == "test_error"}


def _simulated(data: Any, name: str, label: str, colour: str, theme: Theme) -> list[Any]:
    bars = {"type": "data", "array": data[f"{name}_error"], "color": colour, "thickness": 1.4}
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": data["x"],
        "y": data[name],
        "error_y": {**bars, "width": 4},
        "marker": {
            "color": theme.paper,
            "size": 8,
            "symbol": "square",
            "line": {"color": colour, "width": 1.8},
        },
        "name": "simulated",
        "legendgroup": "simulated",
        "showlegend": name == "test_error",
        "hovertemplate": f"{label} %{{y:.4g}} ± %{{error_y.array:.2g}}"
        f"<extra>simulated, n = {data['n']:,}</extra>",
    }
    if "theory" not in data:
        return [points]
    theory = line(data["theory"]["x"], data["theory"][name], "", colour, dash="dot", width=1.2)
    return [{**theory, "name": f"theory, n = {data['n']:,}", "showlegend": False}, points]


def _regimes(theme: Theme) -> tuple[list[Any], list[Any]]:
    """Every other regime tinted, and the first few named above the axes."""
    shapes, notes = [], []
    for degree in range(1, 12):
        low, high = (degree - 1) / (2 * degree), degree / (2 * degree + 2)
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
    font = {"size": 11, "color": theme.muted}
    return {"text": text, **place, "showarrow": False, "font": font, **rest}


def learned(state: State, point: Any) -> Figure:
    """M(κ) over E[y|κ]."""
    theme = THEMES[state.theme]
    traces = []
    if isinstance(point, Mapping):
        best = line(point["kappa"], point["best"], "best, E[y|κ]", theme.muted, dash="6px,3px")
        found = line(point["kappa"], point["learned"], "learned, M(κ)", theme.test, width=2.4)
        traces = [best, found]
    axis = {"title": {"text": "input along the learned direction, κ"}, "range": [-3.05, 3.05]}
    heights = [value for trace in traces for value in trace["y"]]
    ends = [-nice(-1.05 * min(heights, default=-1.0)), nice(1.05 * max(heights, default=1.0))]
    return frame(theme, traces, axis, {"title": {"text": "output"}, "range": ends})


def degrees(state: State, rows: Any) -> Figure:
    """Of each degree: the share that the spikes carry, and the share of the target learned."""
    theme = THEMES[state.theme]
    traces = []
    if isinstance(rows, list):
        x = [f"H<sub>{row['degree']}</sub>" for row in rows]
        for name, label, colour in (
            ("carried", "carried by the spikes", theme.train),
            ("share", "of the target, learned", theme.test),
        ):
            values = [row.get(name) for row in rows]
            bar = {"type": "bar", "x": x, "y": values, "name": label, "marker": {"color": colour}}
            if any(value is not None for value in values):
                text = [_percent(value) for value in values]
                shown: Figure = {"text": text, "textposition": "outside", "cliponaxis": False}
                shown["textfont"] = {"size": 11, "color": theme.muted}
                traces.append({**bar, **shown, "hovertemplate": "%{x}: %{y:.1%}<extra></extra>"})
    y = {"range": [0, 1.12], "tickformat": ".0%", "dtick": 0.25}
    axis = {
        "title": {"text": "degree of the learned direction, H<sub>k</sub>(κ)"},
        "type": "category",
    }
    figure = frame(theme, traces, axis, y)
    figure["layout"].update(barmode="group", bargap=0.35, bargroupgap=0.08, hovermode="closest")
    return figure


def _percent(value: float | None) -> str:
    return "" if value is None or value < 0.005 else f"{value:.0%}"


def message(state: State, text: str) -> Figure:
    """A panel without a result, and why."""
    theme = THEMES[state.theme]
    hidden = {"visible": False}
    figure = frame(theme, [], hidden, hidden)
    where = {"xref": "paper", "yref": "paper", "yanchor": "middle"}
    shown = "<br>".join(escape(row) for row in wrap(text, 60))  # Plotly reads markup
    figure["layout"]["annotations"] = [note(shown, 0.5, 0.5, theme, **where)]
    return figure


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
    theme: Theme, traces: list[Any], xaxis: Figure, yaxis: Figure, *, revision: str = "same"
) -> Figure:
    """A figure in the house style."""
    axis = {
        "gridcolor": theme.rule,
        "linecolor": theme.muted,
        "tickcolor": theme.muted,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
    }
    layout: Figure = {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 12, "color": theme.ink},
        # Fixed: margins that follow their contents have Plotly draw everything twice.
        "margin": {"l": 56, "r": 14, "t": 24, "b": 46, "autoexpand": False},
        "xaxis": {**axis, "showgrid": False, "showline": True, **_standoff(xaxis)},
        "yaxis": {**axis, **_standoff(yaxis)},
        "legend": _legend(theme),
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.paper, "bordercolor": theme.rule},
        "uirevision": revision,
    }
    return {"data": traces, "layout": layout}


def _standoff(axis: Figure) -> Figure:
    if "title" not in axis:
        return axis
    return {**axis, "title": {**axis["title"], "standoff": 6, "font": {"size": 12}}}


def _legend(theme: Theme, *, bottom: bool = False) -> Figure:
    look = {"orientation": "h", "font": {"size": 11, "color": theme.muted}, "x": 0}
    look["bgcolor"] = "rgba(0,0,0,0)"
    if bottom:
        place = {"xref": "container", "yref": "container", "x": 0.01, "y": 0.01}
        return {**look, **place, "yanchor": "bottom"}
    return {**look, "y": 1.0, "yanchor": "bottom"}
