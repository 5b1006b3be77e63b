"""The spectrum's numbers, from `theory.spectrum` or from a draft that follows a slider."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import NotConverged
from ..problem import Problem
from ..theory.spectra import Spectrum, Spike
from ..theory.spectra import spectrum as solve
from ..theory.spectra.branch import Trail
from ..theory.spectra.draft import Draft, draft_spectrum
from ..theory.spectra.notes import spectrum_notes
from .state import State

_POINTS = 160  # of the density's curve in full
_trails: deque[tuple[Problem, Trail]] = deque(maxlen=12)  # of the last drafts, of several pages
_APART = 0.5  # distance from which two problems are not of one drag


def spectrum(state: State, *, draft: bool = False) -> dict[str, Any]:
    """Bulk and spikes of the features' singular values, as plain data."""
    return as_data(_drafted(state.problem) if draft else solve(state.problem))


def as_data(found: Spectrum | Draft) -> dict[str, Any]:
    """A spectrum as what the panel draws."""
    s, density = (found.s, found.density) if isinstance(found, Draft) else found.curve(_POINTS)
    return {
        "s": s.tolist(),
        "density": density.tolist(),
        "edges": [[float(np.sqrt(end)) for end in pair] for pair in found.edges],
        "atom": found.atom,
        "spikes": [_spike(spike) for spike in found.spikes],
        "notes": _own_notes(found),
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
    return [note for note in found.notes if note not in told]


def carried(data: Mapping[str, Any], degree: int) -> float:
    """The share of H_k(κ) that the spikes carry together."""
    return float(sum(spike["overlaps"][degree - 1] for spike in data["spikes"]))
