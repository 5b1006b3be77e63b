"""The spectrum's numbers, from `theory.spectrum` or from a draft that follows a slider."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..core.errors import NotConverged
from ..core.extensions import require_known
from ..core.spiked import spiked_weights
from ..theory.spectra import DRAFT, Spectrum, Spike, solve_spectrum
from ..theory.spectra import spectrum as solve
from ..theory.validity import prediction_notes
from .spectrum_axis import spectrum_axes
from .state import State

_POINTS = 160  # of the density's curve in full


def spectrum(state: State, how: str = "full") -> dict[str, Any]:
    """Bulk and spikes of the features' singular values, in full, or as a draft."""
    if how == "full":
        return as_data(state, solve(state.problem))
    require_known(state.problem, "spectrum", {"steps"})
    if state.steps > 1:
        raise NotConverged("several steps: drawn when you stop moving the controls")
    try:
        found = solve_spectrum(state.problem, DRAFT)[1]
    except NotConverged:
        raise NotConverged(
            "this one takes longer: it is drawn when you stop moving the controls"
        ) from None
    return as_data(state, found) | {"rough": found.is_smoothed}


def as_data(state: State, found: Spectrum) -> dict[str, Any]:
    """A spectrum as what the panel draws, with its axes, for which the server has no engine."""
    s, density = found.curve(_POINTS)
    return {
        "s": s.tolist(),
        "density": density.tolist(),
        "edges": [[float(np.sqrt(end)) for end in pair] for pair in found.edges],
        "atom": found.atom,
        "spikes": [_spike(spike) for spike in found.spikes],
        "notes": _own_notes(found),
        "axes": asdict(spectrum_axes(state)),
        "rough": False,  # whether it looks different from the full one
    }


def _spike(spike: Spike) -> dict[str, Any]:
    names = ("singular_value", "degree", "constant_overlap", "share")
    data = {name: getattr(spike, name) for name in names}
    return {**data, "overlaps": list(spike.overlaps), "resolved": bool(spike.resolved)}


def _own_notes(found: Spectrum) -> list[str]:
    """Notes that the prediction of the same problem does not have already."""
    told = prediction_notes(found.problem, spiked_weights(found.problem), "exact")
    return [note for note in found.notes if note not in told]
