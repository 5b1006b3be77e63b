"""The spectrum's panel: its numbers from `theory.spectrum`, and its figure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import NotConverged
from ..problem import Problem
from ..theory.spectra import Spectrum, Spike
from ..theory.spectra import spectrum as solve
from ..theory.spectra.branch import Trail
from ..theory.spectra.draft import Draft, draft_spectrum
from ..theory.spectra.notes import spectrum_notes
from . import figures
from .state import State
from .theme import THEMES, Theme

_POINTS = 160  # of the density's curve in full
_REACH = 8.0  # upper edges: spikes beyond are named at the right end, or the bulk would be a line
_trails: deque[tuple[Problem, Trail]] = deque(maxlen=12)  # of the last drafts, of several pages
_APART = 0.5  # distance from which two problems are not of one drag
_CARRIED = ("constant", "κ", "κ²", "κ³", "κ⁴", "κ⁵", "κ⁶")


def spectrum(state: State, *, draft: bool = False) -> dict[str, Any]:
    """Bulk and spikes of the features' singular values, as plain data."""
    found = _drafted(state.problem) if draft else solve(state.problem)
    s, density = (found.s, found.density) if isinstance(found, Draft) else found.curve(_POINTS)
    return {
        "s": s.tolist(),
        "density": density.tolist(),
        "edges": [[float(np.sqrt(end)) for end in pair] for pair in found.edges],
        "atom": found.atom,
        "spikes": [_spike(spike) for spike in found.spikes],
        "validity": _own_notes(found),
    }


def _drafted(problem: Problem) -> Draft:
    """A draft that begins where that of the most similar problem has ended in this process."""
    near = _nearest(problem)
    try:
        found, trail = draft_spectrum(problem, near[1] if near else None)
    except NotConverged:
        raise NotConverged("this one takes longer: it is drawn when the controls rest") from None
    finally:
        if near is not None and _distance(problem, near[0]) < _APART:
            _trails.remove(near)  # the new one takes its place, or it led nowhere
    _trails.append((problem, trail))
    return found


def _nearest(problem: Problem) -> tuple[Problem, Trail] | None:
    alike = [each for each in _trails if each[0].law == problem.law]
    return min(reversed(alike), key=lambda each: _distance(problem, each[0]), default=None)


def _distance(a: Problem, b: Problem) -> float:
    """How far two problems are from each other, in sliders' terms."""
    sizes = ((a.n, b.n), (a.d, b.d), (a.width, b.width), (1.0 + a.step_size, 1.0 + b.step_size))
    return sum(abs(math.log(x / y)) for x, y in sizes) + (a.sigma != b.sigma)


def _spike(spike: Spike) -> dict[str, Any]:
    return {
        "singular_value": spike.singular_value,
        "degree": spike.degree,
        "overlaps": list(spike.overlaps),
        "constant_overlap": spike.constant_overlap,
        "share": spike.share,
        "resolved": bool(spike.resolved),
    }


def _own_notes(found: Spectrum | Draft) -> list[str]:
    """Notes that the prediction of the same problem does not have already."""
    told = spectrum_notes(found.problem)
    return [note for note in found.validity if note not in told]


def carried(data: Mapping[str, Any], degree: int) -> float:
    """The share of H_k(κ) that the spikes carry together."""
    return float(sum(spike["overlaps"][degree - 1] for spike in data["spikes"]))


def figure(state: State, data: Mapping[str, Any]) -> figures.Figure:
    """The bulk's density, with every spike as a labelled line."""
    theme = THEMES[state.theme]
    top = max(max(data["density"]), 1e-9)
    edge = data["edges"][-1][1]
    reach = _REACH * edge
    near = [spike for spike in data["spikes"] if spike["singular_value"] <= reach]
    far = [spike for spike in data["spikes"] if spike["singular_value"] > reach]
    right = max([1.25 * edge, *(1.12 * spike["singular_value"] for spike in near)])
    if far:
        right = max(right, 1.6 * edge)
    traces = [_bulk(data, theme)]
    notes: list[Any] = []
    for index, spike in enumerate(near):
        height = top * (0.72 if index % 2 == 0 else 0.46)
        traces.append(_stem(spike, height, theme))
        notes.append(_label(spike, spike["singular_value"], height, theme))
    if far:
        notes.append(_beyond(far, theme))
    if data["atom"] > 0:
        notes.append(_atom(data["atom"], theme))
    axis = {"title": {"text": "singular value of F/√n"}, "range": [0.0, figures.nice(right)]}
    drawn = figures.frame(
        theme, traces, axis, {"range": [0.0, figures.nice(1.12 * top)], "title": _DENSITY}
    )
    drawn["layout"].update(annotations=notes, hovermode="closest", showlegend=False)
    return drawn


_DENSITY = {"text": "density"}


def _bulk(data: Mapping[str, Any], theme: Theme) -> figures.Figure:
    line = figures.line(data["s"], data["density"], "bulk", theme.test, width=1.8)
    return {**line, "fill": "tozeroy", "fillcolor": theme.fill, "hovertemplate": "s = %{x:.3g}"}


def _stem(spike: Mapping[str, Any], height: float, theme: Theme) -> figures.Figure:
    at = spike["singular_value"]
    dash = "solid" if spike["resolved"] else "dot"
    stem = figures.line([at, at], [0.0, height], "spike", theme.train, dash=dash, width=2.4)
    shares = _shares(spike)
    return {**stem, "hovertemplate": f"s = {at:.4g}<br>{shares}<extra>spike</extra>"}


def _shares(spike: Mapping[str, Any]) -> str:
    named = [(0, spike["constant_overlap"]), *enumerate(spike["overlaps"], 1)]
    return ", ".join(f"H<sub>{k}</sub> {share:.0%}" for k, share in named if share >= 0.01)


def _name(spike: Mapping[str, Any]) -> str:
    return f"<b>{_CARRIED[spike['degree']]}</b> {spike['share']:.0%}"


def _label(spike: Mapping[str, Any], x: float, y: float, theme: Theme) -> figures.Figure:
    text = _name(spike) + ("" if spike["resolved"] else "<br>not resolved")
    return figures.note(text, x, y, theme, yref="y", font={"size": 12, "color": theme.ink})


def _beyond(spikes: Sequence[Mapping[str, Any]], theme: Theme) -> figures.Figure:
    text = "<br>".join(f"{_name(spike)} at {spike['singular_value']:.3g} →" for spike in spikes)
    place = {"xref": "paper", "xanchor": "right", "yanchor": "top", "align": "right"}
    return figures.note(text, 1.0, 0.95, theme, **place, font={"size": 12, "color": theme.ink})


def _atom(mass: float, theme: Theme) -> figures.Figure:
    text = f"{mass:.0%} of the values are 0"
    return figures.note(text, 0.0, 1.0, theme, xref="paper", xanchor="left")
