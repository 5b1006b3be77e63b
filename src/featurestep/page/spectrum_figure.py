"""The spectrum's figure: bulk and spikes, what they carry, and the real network's beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import figures
from .axes import SpectrumAxes
from .figures import THEMES, Theme
from .state import PageState

_CARRIED = ("constant", "κ", "κ²", "κ³", "κ⁴", "κ⁵", "κ⁶")
_NAME_HEIGHT = 0.09  # of a spike's name above the axis, and
_NAME_ROOM = (0.22, 0.18)  # across and up: to the right of a name that is so near stands one higher
_NAME_WIDTH = 0.1  # of the axis, half of it: nearer to the end or to a spike a name goes left
_MIN_NAMED_OVERLAP = 0.1  # squared overlap from which a simulated value is said to carry something
Data = Mapping[str, Any]


class Carried(NamedTuple):
    """The power of κ that simulated spikes carry, and their mean squared overlap with it."""

    degree: int
    share: float


def figure(state: PageState, data: Data, simulated: Data | None = None) -> figures.Figure:
    """The bulk's density, with every spike as a labelled mark on the axis."""
    theme = THEMES[state.theme]
    values = [spike["singular_value"] for spike in data["spikes"]]
    seen = [spike["singular_value"] for spike in simulated["spikes"]] if simulated else []
    axes = SpectrumAxes(**data["axes"]).reaching([*values, *seen], data["density"])
    traces, notes, shapes = [_bulk(data, axes, theme)], list[Any](), list[Any]()
    traces.append(_corner("draft" if data["rough"] else figures.NOTHING, axes, theme))
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
        notes.append(figures.note("log →", at, 1.0, theme, xanchor="left", xshift=4))
    if data["atom"] > 0:
        text = f"{data['atom']:.0%} of the values are 0"
        notes.append(figures.note(text, 0.0, 1.0, theme, xref="paper", xanchor="left"))
    ticks = axes.ticks()
    named = {"tickvals": axes.place(ticks), "ticktext": [f"{tick:g}" for tick in ticks]}
    title = "singular value of F/√n" + ", log beyond the bulk" * axes.is_bent
    across = {"title": title, "range": [0.0, 1.0], **named}
    up = {"title": "density", "range": [0.0, axes.top]}
    drawn = figures.frame(theme, traces, across, up, notes)
    drawn["layout"] |= {"hovermode": "closest", "showlegend": False, "shapes": shapes}
    drawn["layout"]["meta"] = axes.as_dict()
    return drawn


def _bulk(data: Data, axes: SpectrumAxes, theme: Theme) -> figures.Figure:
    line = figures.line(axes.place(data["s"]), data["density"], "predicted", theme.test, width=1.8)
    hover = {"customdata": data["s"], "hovertemplate": "s = %{customdata:.3g}<extra>bulk</extra>"}
    return {**line, **hover, "fill": "tozeroy", "fillcolor": theme.fill, **figures.PIN}


def _corner(text: str, axes: SpectrumAxes, theme: Theme) -> figures.Figure:
    """A word above the panel; a trace, for what is no frame comes and goes without a new one."""
    place = {"x": [1.0], "y": [axes.top], "text": [text], "textposition": "top left"}
    font = {"textfont": {"size": 12, "color": theme.muted}, "cliponaxis": False}
    return {"type": "scatter", "mode": "text", "name": "", "hoverinfo": "skip", **place, **font}


def _marks(
    data: Data, axes: SpectrumAxes, theme: Theme, *, small: bool = False
) -> list[figures.Figure]:
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
        found.append(figures.marks(x, y, "predicted spike", marker, **shown, **figures.PIN))
    return found


def _name_heights(places: Sequence[float]) -> list[float]:
    """Of the names at places from right to left, so that each is the lowest above its own mark."""
    heights = list[float]()
    last = -np.inf
    for place in reversed(places):
        near = place - last < _NAME_ROOM[0]
        heights.append(heights[-1] + _NAME_ROOM[1] if near else _NAME_HEIGHT)
        last = place
    return heights[::-1]


def overlaps_text(overlaps: Sequence[float]) -> str:
    """Squared overlaps with H_0(κ), H_1(κ), … that are worth a word."""
    shares = [f"H<sub>{k}</sub> {share:.0%}" for k, share in enumerate(overlaps) if share >= 0.01]
    return ", ".join(shares)


def _label(spike: Data, seen: Carried | None, theme: Theme, tight: bool) -> figures.Figure:
    """What a spike carries, written on top of it, and what its simulated counterpart does."""
    text = f"<b>{_CARRIED[spike['degree']]}</b> {spike['share']:.0%}"
    text += "" if spike["resolved"] else "<br>not resolved"
    if seen is not None:
        other = "" if seen.degree == spike["degree"] else f"{_CARRIED[seen.degree]} "
        text += f"<br><span style='font-size:0.85em'>sim. {other}{seen.share:.0%}</span>"
    font = {"size": 14, "color": theme.ink}
    place = "top left" if tight else "top center"
    texts = [figures.NOTHING, text]
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


def _histogram(simulated: Data, axes: SpectrumAxes, theme: Theme) -> figures.Figure:
    ends = np.repeat(simulated["ends"], 2)[1:-1]
    heights = np.repeat(simulated["heights"], 2).tolist()
    line = figures.line(axes.place(ends), heights, "simulated", theme.muted, width=0.8)
    return {**line, "fill": "tozeroy", "fillcolor": theme.ghost, "hoverinfo": "skip"}


def _other_size(state: PageState, simulated: Data, axes: SpectrumAxes, theme: Theme) -> list[Any]:
    """The prediction at the simulation's own n where that is another: like is put beside like."""
    if simulated["n"] == state.n:
        return []
    theory, name = simulated["theory"], f"predicted, n = {simulated['n']:,}"
    bulk = figures.line(
        axes.place(theory["s"]), theory["density"], name, theme.test, dash="dot", width=1.2
    )
    return [{**bulk, "hoverinfo": "skip"}, *_marks(theory, axes, theme, small=True)]


def _seen(
    simulated: Data, alone: Mapping[int, Carried], axes: SpectrumAxes, theme: Theme
) -> figures.Figure:
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
    text: figures.Figure = {"text": [names.get(spike["rank"], "") for spike in spikes]}
    text |= {"textposition": "top center", "textfont": {"size": 12, "color": theme.muted}}
    hover = f"%{{customdata}}<extra>simulated, n = {simulated['n']:,}</extra>"
    squares = figures.marks(x, y, "simulated spikes", figures.open_squares(theme.train, theme))
    squares |= {**text, "mode": "markers+text"}
    return {**squares, "customdata": told, "hovertemplate": hover, "cliponaxis": False}
