"""The spectrum's numbers, from `theory.spectrum` or from a draft that follows a slider."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import asdict
from typing import Any

import numpy as np

from ..core.errors import NotConverged
from ..core.problem import Problem
from ..core.spiked import spiked_weights
from ..theory.spectra import Spectrum, Spike
from ..theory.spectra import spectrum as solve
from ..theory.spectra.branch import Trail
from ..theory.spectra.draft import Draft, draft_spectrum
from ..theory.validity import prediction_notes
from .spectrum_axis import spectrum_axes
from .state import State

_POINTS = 160  # of the density's curve in full
# Of the last drafts of several pages, those with light weights and the others.
_trails: dict[bool, deque[tuple[Problem, Trail]]] = {b: deque(maxlen=12) for b in (True, False)}
_APART = 0.5  # distance from which two problems are not of one drag


def spectrum(state: State, how: str = "full") -> dict[str, Any]:
    """Bulk and spikes of the features' singular values, in full, or as a draft.

    One that is asked as a draft, not as close to the full one, may have other weights, and then
    says so.
    """
    if how == "full":
        return as_data(state, solve(state.problem))
    return as_data(state, _drafted(state.problem, light=how == "draft"))


def as_data(state: State, found: Spectrum | Draft) -> dict[str, Any]:
    """A spectrum as what the panel draws, with its axes, for which the server has no engine."""
    s, density = (found.s, found.density) if isinstance(found, Draft) else found.curve(_POINTS)
    return {
        "s": s.tolist(),
        "density": density.tolist(),
        "edges": [[float(np.sqrt(end)) for end in pair] for pair in found.edges],
        "atom": found.atom,
        "spikes": [_spike(spike) for spike in found.spikes],
        "notes": _own_notes(found),
        "axes": asdict(spectrum_axes(state)),
        "rough": isinstance(found, Draft) and (found.light or found.blurred),
    }


def _drafted(problem: Problem, light: bool) -> Draft:
    """A draft that begins where that of the most similar problem has ended in this process."""
    trails = _trails[light]
    alike = [each for each in trails if each[0].law == problem.law]
    near = min(reversed(alike), key=lambda each: _distance(problem, each[0]), default=None)
    try:
        found, trail = draft_spectrum(problem, near[1] if near else None, light=light)
    except NotConverged:
        raise NotConverged("this one takes longer: it is drawn when the controls rest") from None
    finally:
        if near is not None and _distance(problem, near[0]) < _APART:
            trails.remove(near)  # the new one takes its place, or it led nowhere
    trails.append((problem, trail))
    return found


def _distance(a: Problem, b: Problem) -> float:
    """How far two problems are from each other, in sliders' terms."""
    sizes = ((a.n, b.n), (a.d, b.d), (a.width, b.width), (1.0 + a.step_size, 1.0 + b.step_size))
    return sum(abs(math.log(x / y)) for x, y in sizes) + (a.sigma != b.sigma)


def _spike(spike: Spike) -> dict[str, Any]:
    names = ("singular_value", "degree", "constant_overlap", "share")
    data = {name: getattr(spike, name) for name in names}
    return {**data, "overlaps": list(spike.overlaps), "resolved": bool(spike.resolved)}


def _own_notes(found: Spectrum | Draft) -> list[str]:
    """Notes that the prediction of the same problem does not have already."""
    problem, weights = found.problem, spiked_weights(found.problem)
    told = prediction_notes(problem, weights, "exact")
    return [note for note in found.notes if note not in told]
