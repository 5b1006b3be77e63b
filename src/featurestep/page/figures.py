"""The panels as Plotly figures, written as plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from .spectrum_axis import nice
from .state import State
from .theme import THEMES, Theme

Figure = dict[str, Any]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
NOTHING = "\u200b"  # for texts that come and go: what was empty Plotly may not write any more
PIN = {"meta": "pin"}  # of curves that the page may keep to compare with
_BEST = {"logistic": "best, log-odds given κ", "hinge": "best, sign of E[y|κ]"}
AXES = {
    "exponent": "step exponent α",
    "samples": "samples over dimension, n/d",
    "width": "width over samples, N/n",
    "ridge": "ridge λ",
}


def open_squares(colour: str, theme: Theme) -> Figure:
    """The marks of simulations."""
    edge = {"color": colour, "width": 1.8}
    return {"color": theme.paper, "size": 8, "symbol": "square", "line": edge}


def note(text: str, x: float, y: float, theme: Theme, **rest: Any) -> Figure:
    """A text in a figure."""
    place = {"x": x, "y": y, "xref": "x", "yref": "paper", "yanchor": "bottom"}
    font = {"size": 12, "color": theme.muted}
    return {"text": text, **place, "showarrow": False, "font": font, **rest}


def learned(state: State, point: Any) -> Figure:
    """M(κ) over E[y|κ], or over the best output for another loss."""
    theme = THEMES[state.theme]
    traces = []
    if isinstance(point, Mapping):
        if why := point["undrawn"].get("learned"):
            return message(state, why)
        name = _BEST.get(state.loss, "best, E[y|κ]")
        best = line(point["kappa"], point["best"], name, theme.muted, dash="6px,3px")
        found = line(point["kappa"], point["learned"], "learned, M(κ)", theme.test, width=2.4)
        traces = [best, found | PIN]
    axis = {"title": "input along the learned direction, κ", "range": [-3.05, 3.05]}
    heights = [value for trace in traces for value in trace["y"]]
    ends = [-nice(-1.05 * min(heights, default=-1.0)), nice(1.05 * max(heights, default=1.0))]
    return frame(theme, traces, axis, {"title": "output", "range": ends})


def degrees(state: State, name: str, values: Sequence[float | None], colour: str) -> Figure:
    """A share of each degree, as bars; the page puts those of its two lanes side by side."""
    theme = THEMES[state.theme]
    x = [f"H<sub>{degree}</sub>" for degree in range(1, len(values) + 1)]
    text = ["" if value is None or value < 0.005 else f"{100 * value:.0f}" for value in values]
    bars: Figure = {"type": "bar", "x": x, "y": values, "name": name, "marker": {"color": colour}}
    bars |= {"text": text, "textposition": "outside", "cliponaxis": False, "constraintext": "none"}
    bars |= {"textfont": {"size": 10.5, "color": theme.ink}}
    bars |= {"hovertemplate": "%{x}: %{y:.1%}<extra></extra>"}
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
    shown = "<br>".join(escape(row) for row in wrap(text, 36))  # Plotly reads markup
    return frame(theme, [], dict(hidden), dict(hidden), [note(shown, 0.5, 0.5, theme, **where)])


def line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", width: float = 1.6
) -> Figure:
    """A curve."""
    trace = {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name}
    drawn = {"color": colour, "width": width, "dash": dash, "simplify": False}
    return {**trace, "line": drawn, "hovertemplate": "%{y:.4g}"}


def marks(x: Any, y: Any, name: str, marker: Figure, **rest: Any) -> Figure:
    """Points, which no legend names."""
    trace = {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}
    return {**trace, "showlegend": False, **rest}


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

    Those that follow their contents have Plotly draw everything twice, and ticks that are hidden
    where they would not fit have it measure every one.
    """
    axis: Figure = {"gridcolor": theme.rule, "linecolor": theme.muted, "tickcolor": theme.muted}
    axis |= {"zeroline": False, "ticks": "outside", "ticklen": 4, "ticklabeloverflow": "allow"}
    legend = {"orientation": "h", "font": {"size": 11, "color": theme.ink}, "tracegroupgap": 2}
    legend |= {"xanchor": "left", "yanchor": "top"}  # the page puts it below the axes
    below = {"xref": "paper", "xanchor": "center", "yanchor": "top", "yshift": -26}
    beside = {"xref": "paper", "xanchor": "center", "yanchor": "middle", "xshift": -56}
    beside["textangle"] = -90
    ink = {"size": 13, "color": theme.ink}
    titles = [note(xaxis.pop("title", ""), 0.5, 0.0, theme, **below, font=ink)]
    titles.append(note(yaxis.pop("title", ""), 0.0, 0.5, theme, **beside, font=ink))
    titles = [title for title in titles if title["text"]]
    layout: Figure = {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 13, "color": theme.ink},
        "margin": {"l": 70, "r": 14, "t": 24, "b": 48, "autoexpand": False},
        "xaxis": {**axis, "showgrid": False, "showline": True, **xaxis},
        "yaxis": {**axis, **yaxis},
        "annotations": [*notes, *titles],
        "legend": legend,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.paper, "bordercolor": theme.rule},
        "uirevision": revision,
    }
    # Each item of the legend is a group: then it has a width of its own.
    grouped = [{**trace, "legendgroup": trace["name"]} for trace in traces]
    return {"data": grouped, "layout": layout}
