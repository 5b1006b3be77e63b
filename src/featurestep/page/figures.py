"""The panels as Plotly figures, written as plain dictionaries; colours of the two themes.

Errors, learned function and degrees; then the spectrum: bulk and spikes, what they carry, and the
real network's beside them.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from ..core.display import PALETTE
from ..core.problem import BINARY_LOSSES, interval
from ..core.results import departing
from ..core.types import FloatArray
from .state import PageState, SpectrumAxes, errors, exponents, here, nice

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


def learned(state: PageState, point: Any) -> Figure:
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


def degrees(state: PageState, name: str, values: Sequence[float | None], colour: str) -> Figure:
    """A share of each degree, as bars; the page puts those of its two lanes side by side."""
    theme = THEMES[state.theme]
    x = [f"H<sub>{degree}</sub>" for degree in range(1, len(values) + 1)]
    text = ["" if value is None or value < 0.005 else f"{100 * value:.0f}" for value in values]
    bars: Figure = {"type": "bar", "x": x, "y": values, "name": name, "marker": {"color": colour}}
    bars |= {"text": text, "textposition": "outside", "cliponaxis": False, "constraintext": "none"}
    bars |= {"textfont": {"size": 10, "color": theme.ink}}
    bars |= {"hovertemplate": "%{x}: %{y:.1%}<extra></extra>"}
    highest = max([0.0, *(value for value in values if value is not None)])
    top = 1.12 if highest <= 1.06 else nice(1.06 * highest)  # room for the number on a bar
    up = {"range": [0, top], "tickformat": ".0%", "dtick": 0.25}
    across = {"title": "degree of the learned direction, H<sub>k</sub>(κ)", "type": "category"}
    figure = frame(theme, [bars] if values else [], across, up)
    figure["layout"].update(barmode="group", bargap=0.06, bargroupgap=0.06, hovermode="closest")
    return figure


def message(state: PageState, text: str) -> Figure:
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


_BASELINES = {  # by their names in `theory.baselines`
    "untrained": ("untrained", "dot"),
    "ridge_n_tuned": ("tuned ridge", "dashdot"),
    "kernel": ("kernel ridge", "6px,2px"),
    "noise_floor": ("noise floor", "dot"),
    "linear_n_tuned": ("tuned linear fit", "dashdot"),
    "bayes_error": ("least error", "dot"),
}
_LEVELS = ("noise_floor", "bayes_error")  # the same along every axis
_LIMITS = {  # n → ∞
    "": ("limit with norm growth", "4px,3px"),
    "published_": ("published limit", "1px,3px"),
}
_CURVES = ("test", "train")
_DASHES = {"test": "solid", "train": "12px,3px"}
_RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # with ticks
_POWERS = {"exponentformat": "power", "minexponent": 0}  # 10⁻⁶, not 1μ
_NAME_HEIGHT = 0.12  # of the axis
_NAMED = 4  # regimes with their degree written above
_PEAKED = 8.0  # largest over smallest test error from which their axis is logarithmic
_DECADES = 4.0  # of a logarithmic axis, at most


def errors_figure(state: PageState, point: Any, curve: Any, stairs: Any, simulated: Any) -> Figure:
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
    low, high = exponents(state)
    across: Figure = {"title": AXES[state.over], "type": "log"}
    if state.over == "exponent":
        across |= {"type": "linear", "range": [low - 0.008, high + 0.008]}
    elif state.over == "ridge":
        across |= _POWERS
    else:
        across |= {"tickvals": _RATIOS, "ticktext": [f"{ratio:g}" for ratio in _RATIOS]}
    traces = [*_named(flat, traces, across, up, theme.ink), *traces]
    if isinstance(point, Mapping) and (at := here(state)) is not None:
        edge = {"color": theme.paper, "width": 2}
        marker = {"color": [theme.test, theme.train], "size": 11, "line": edge}
        both = [point[name] for name in names]
        traces.append(marks([at, at], both, "here", marker, hoverinfo="skip"))
    published = state.over == "exponent" and not departing(state.problem)
    shapes, notes = _regimes(theme) if published else ([], [])
    ranks = [*_CURVES, "published", "limit"]
    for trace in traces:
        first = (rank for rank, name in enumerate(ranks) if trace["name"].startswith(name))
        trace["legendrank"] = next(first, len(ranks))
    drawn = frame(theme, traces, across, up, notes, revision=state.over)
    drawn["layout"]["shapes"] = shapes
    return drawn


def _y_axis(state: PageState, curve: Any, traces: list[Any]) -> Figure:
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
    return {"title": title, "type": "log", "range": ends, "dtick": 1, **_POWERS}


def _baselines(state: PageState, point: Any, curve: Any, theme: Theme) -> list[Any]:
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


def _named(
    traces: Sequence[Any], others: Sequence[Any], across: Figure, up: Figure, ink: str
) -> list[Any]:
    """Level lines with their names on them: where the fewest other lines are in their way.

    A name stands above or below its line, at the right end or at the left one. It takes a third of
    the axis, on a narrow screen two thirds.
    """
    scales = [math.log10 if axis.get("type") == "log" else float for axis in (across, up)]
    curves = [trace for trace in (*others, *traces) if trace["mode"] == "lines"]
    lines = [found for trace in curves if (found := _scaled(trace, *scales))[0].size]
    room = _NAME_HEIGHT * (up["range"][1] - up["range"][0])
    named = []
    for level in traces:
        if level.get("showlegend", True):  # a curve, which the legend names
            named.append(level)
            continue
        (left, right), (y, _) = _scaled(level, *scales)
        width = (right - left) / 3.0
        tried = []
        for high, last in itertools.product((True, False), (True, False)):
            box = (y, y + room) if high else (y - room, y)
            starts = (right - width, right - 2 * width) if last else (left, left + width)
            hidden = [_crossings(lines, (x, x + width), box) for x in starts]
            cut = not up["range"][0] <= box[0] < box[1] <= up["range"][1]
            tried.append((cut, 2 * hidden[0] + hidden[1], not high, not last, starts[0], box))
        _, _, low, first, start, box = min(tried)
        taken = np.array([box[0] + 0.3 * room, box[0] + 0.7 * room])  # no other name stands here
        lines += [(np.array([start, start + width]), np.full(2, at)) for at in taken]
        text = [level["name"], NOTHING] if first else [NOTHING, level["name"]]
        place = f"{'bottom' if low else 'top'} {'right' if first else 'left'}"
        font = {"size": 12, "color": ink}
        words = {"mode": "lines+markers+text", "text": text, "textposition": place}
        unseen = {"size": 4, "opacity": 0}  # Plotly sets a text apart from a mark, not from a line
        named.append({**level, **words, "textfont": font, "marker": unseen})
    return named


def _scaled(trace: Any, *scales: Callable[[float], float]) -> tuple[FloatArray, FloatArray]:
    """Points of a line as its axes place them."""
    points = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if y and y > 0.0]
    x, y = (np.array([scale(each[k]) for each in points]) for k, scale in enumerate(scales))
    return x, y


def _crossings(
    lines: Sequence[tuple[FloatArray, FloatArray]],
    across: tuple[float, float],
    up: tuple[float, float],
) -> int:
    """How many lines go through a box; one on its border does not."""
    count = 0
    for x, y in lines:
        ends = np.interp(across, x, y)
        inside = y[(across[0] < x) & (x < across[1])]
        met = (x[0] < across[1]) & (x[-1] > across[0])
        seen = np.concatenate([ends, inside])
        count += bool(met and seen.min() < up[1] and seen.max() > up[0])
    return count


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


_CARRIED = ("constant", "κ", "κ²", "κ³", "κ⁴", "κ⁵", "κ⁶")
_SPIKE_NAME_HEIGHT = 0.09  # of a spike's name above the axis, and
_NAME_ROOM = (0.22, 0.18)  # across and up: to the right of a name that is so near stands one higher
_NAME_WIDTH = 0.1  # of the axis, half of it: nearer to the end or to a spike a name goes left
_MIN_NAMED_OVERLAP = 0.1  # squared overlap from which a simulated value is said to carry something
Data = Mapping[str, Any]


class Carried(NamedTuple):
    """The power of κ that simulated spikes carry, and their mean squared overlap with it."""

    degree: int
    share: float


def spectrum_figure(state: PageState, data: Data, simulated: Data | None = None) -> Figure:
    """The bulk's density, with every spike as a labelled mark on the axis."""
    theme = THEMES[state.theme]
    values = [spike["singular_value"] for spike in data["spikes"]]
    seen = [spike["singular_value"] for spike in simulated["spikes"]] if simulated else []
    axes = SpectrumAxes(**data["axes"]).reaching([*values, *seen], data["density"])
    traces, notes, shapes = [_bulk(data, axes, theme)], list[Any](), list[Any]()
    traces.append(_corner("draft" if data["rough"] else NOTHING, axes, theme))
    met, places = _by_rank(simulated), axes.place(values)
    for rank, mark in enumerate(_marks(data, axes, theme)):
        tight = any(0.0 < other - places[rank] < _NAME_WIDTH for other in (*places, 1.0))
        traces.append(mark | _label(data["spikes"][rank], met.pop(rank, None), theme, tight))
    if simulated is not None:
        traces[:0] = [_histogram(simulated, axes, theme)]
        traces += [*_other_size(state, simulated, axes, theme), _seen(simulated, met, axes, theme)]
    if axes.is_bent:
        (at,) = axes.place([axes.bend])
        bend = {"type": "line", "xref": "x", "yref": "paper", "layer": "below", "y0": 0, "y1": 1}
        shapes.append({**bend, "x0": at, "x1": at, "line": {"color": theme.rule, "dash": "dot"}})
        notes.append(note("log →", at, 1.0, theme, xanchor="left", xshift=4))
    if data["atom"] > 0:
        text = f"{data['atom']:.0%} of the values are 0"
        notes.append(note(text, 0.0, 1.0, theme, xref="paper", xanchor="left"))
    ticks = axes.ticks()
    named = {"tickvals": axes.place(ticks), "ticktext": [f"{tick:g}" for tick in ticks]}
    title = "singular value of F/√n" + ", log beyond the bulk" * axes.is_bent
    across = {"title": title, "range": [0.0, 1.0], **named}
    up = {"title": "density", "range": [0.0, axes.top]}
    drawn = frame(theme, traces, across, up, notes)
    drawn["layout"] |= {"hovermode": "closest", "showlegend": False, "shapes": shapes}
    drawn["layout"]["meta"] = axes.as_dict()
    return drawn


def _bulk(data: Data, axes: SpectrumAxes, theme: Theme) -> Figure:
    bulk = line(axes.place(data["s"]), data["density"], "predicted", theme.test, width=1.8)
    hover = {"customdata": data["s"], "hovertemplate": "s = %{customdata:.3g}<extra>bulk</extra>"}
    return {**bulk, **hover, "fill": "tozeroy", "fillcolor": theme.fill, **PIN}


def _corner(text: str, axes: SpectrumAxes, theme: Theme) -> Figure:
    """A word above the panel; a trace, for what is no frame comes and goes without a new one."""
    place = {"x": [1.0], "y": [axes.top], "text": [text], "textposition": "top left"}
    font = {"textfont": {"size": 12, "color": theme.muted}, "cliponaxis": False}
    return {"type": "scatter", "mode": "text", "name": "", "hoverinfo": "skip", **place, **font}


def _marks(data: Data, axes: SpectrumAxes, theme: Theme, *, small: bool = False) -> list[Figure]:
    """The spikes as triangles on the axis, hollow where not resolved; the names have a point above.

    A density has no height at a spike, so that no line up to one is drawn.
    """
    found = []
    heights = _name_heights(axes.place([spike["singular_value"] for spike in data["spikes"]]))
    for spike, share in zip(data["spikes"], heights, strict=True):
        at, height = spike["singular_value"], axes.top * share
        hollow = small or not spike["resolved"]
        marker = {"symbol": "triangle-up", "size": [8 if small else 14, 0], "opacity": 1.0}
        marker |= {"color": theme.paper if hollow else theme.train}
        marker["line"] = {"color": theme.train, "width": 1.6}
        x, y = axes.place([at, at]), [0.0, height]
        shares = overlaps_text([spike["constant_overlap"], *spike["overlaps"]])
        hover = f"s = {at:.4g}<br>{shares}<extra>spike</extra>"
        shown = {"customdata": [at] * 2, "hovertemplate": hover, "cliponaxis": False}
        found.append(marks(x, y, "predicted spike", marker, **shown, **PIN))
    return found


def _name_heights(places: Sequence[float]) -> list[float]:
    """Of the names at places from right to left, so that each is the lowest above its own mark."""
    heights = list[float]()
    last = -np.inf
    for place in reversed(places):
        near = place - last < _NAME_ROOM[0]
        heights.append(heights[-1] + _NAME_ROOM[1] if near else _SPIKE_NAME_HEIGHT)
        last = place
    return heights[::-1]


def overlaps_text(overlaps: Sequence[float]) -> str:
    """Squared overlaps with H_0(κ), H_1(κ), … that are worth a word."""
    shares = [f"H<sub>{k}</sub> {share:.0%}" for k, share in enumerate(overlaps) if share >= 0.01]
    return ", ".join(shares)


def _label(spike: Data, seen: Carried | None, theme: Theme, tight: bool) -> Figure:
    """What a spike carries, written on top of it, and what its simulated counterpart does."""
    text = f"<b>{_CARRIED[spike['degree']]}</b> {spike['share']:.0%}"
    text += "" if spike["resolved"] else "<br>not resolved"
    if seen is not None:
        other = "" if seen.degree == spike["degree"] else f"{_CARRIED[seen.degree]} "
        text += f"<br><span style='font-size:0.85em'>sim. {other}{seen.share:.0%}</span>"
    font = {"size": 14, "color": theme.ink}
    place = "top left" if tight else "top center"
    texts = [NOTHING, text]
    return {"mode": "markers+text", "text": texts, "textposition": place, "textfont": font}


def _by_rank(simulated: Data | None) -> dict[int, Carried]:
    """What the simulated spikes of each rank carry, over the draws."""
    ranks: dict[int, list[Data]] = defaultdict(list)
    for spike in simulated["spikes"] if simulated else ():
        ranks[spike["rank"]].append(spike)
    named = {}
    for rank, found in ranks.items():
        powers = np.mean([[s["overlaps"][0], *s["power_overlaps"]] for s in found], axis=0)
        named[rank] = Carried(int(np.argmax(powers)), float(powers.max()))
    return named


def _histogram(simulated: Data, axes: SpectrumAxes, theme: Theme) -> Figure:
    ends = np.repeat(simulated["ends"], 2)[1:-1]
    heights = np.repeat(simulated["heights"], 2).tolist()
    outline = line(axes.place(ends), heights, "simulated", theme.muted, width=0.8)
    return {**outline, "fill": "tozeroy", "fillcolor": theme.ghost, "hoverinfo": "skip"}


def _other_size(state: PageState, simulated: Data, axes: SpectrumAxes, theme: Theme) -> list[Any]:
    """The prediction at the simulation's own n where that is another: like is put beside like."""
    if simulated["n"] == state.n:
        return []
    theory, name = simulated["theory"], f"predicted, n = {simulated['n']:,}"
    bulk = line(axes.place(theory["s"]), theory["density"], name, theme.test, dash="dot", width=1.2)
    return [{**bulk, "hoverinfo": "skip"}, *_marks(theory, axes, theme, small=True)]


def _seen(
    simulated: Data, alone: Mapping[int, Carried], axes: SpectrumAxes, theme: Theme
) -> Figure:
    """Every draw's values beyond the bulk; those that no predicted spike stands for are named."""
    spikes = simulated["spikes"]
    names = {
        rank: f"{_CARRIED[each.degree]} {each.share:.0%}"
        for rank, each in alone.items()
        if each.share > _MIN_NAMED_OVERLAP
    }
    told = [
        f"s = {spike['singular_value']:.4g}<br>{overlaps_text(spike['overlaps'])}"
        for spike in spikes
    ]
    x, y = axes.place(spike["singular_value"] for spike in spikes), [0.05 * axes.top] * len(spikes)
    text: Figure = {"text": [names.get(spike["rank"], "") for spike in spikes]}
    text |= {"textposition": "top center", "textfont": {"size": 12, "color": theme.muted}}
    hover = f"%{{customdata}}<extra>simulated, n = {simulated['n']:,}</extra>"
    squares = marks(x, y, "simulated spikes", open_squares(theme.train, theme))
    squares |= {**text, "mode": "markers+text"}
    return {**squares, "customdata": told, "hovertemplate": hover, "cliponaxis": False}
