"""The real network for a state: errors along the axis, and the spectrum at the current point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import FeaturestepError
from ..processes import report_progress
from ..simulation import SimulatedSpectrum, simulate, simulated_spectrum
from ..theory.spectra import spectrum
from .errors_axis import axis, errors, grid
from .spectrum_panel import as_data
from .state import State
from .worker import Refused

SPECTRA = 2  # draws of the spectrum
BINS = 40
_SHARE = 0.8  # of the progress that the errors take
Tell = Callable[[float], None]


def run(query: str, count: int, seeds: int) -> Any:
    """In a process of its own, telling the share done: the data, or the error in its place."""
    try:
        return simulated(State.from_query(query), count, seeds, report_progress)
    except FeaturestepError as error:
        return Refused(str(error))


def simulated(state: State, count: int, seeds: int, report: Tell) -> dict[str, Any]:
    """Means and standard errors along the axis, and singular values at the current point."""
    problems = grid(state, count)
    found = simulate(
        problems, seeds=seeds, progress=lambda done, total: report(_SHARE * done / total)
    )
    mean, error = found.mean.isel(variant=0), found.standard_error.isel(variant=0)
    data: dict[str, Any] = {
        "x": axis(state, problems).tolist(),
        "n": state.n,
        "seeds": seeds,
        "seconds": found.wall_time,
        "spectrum": _spectrum(state, report),
    }
    for name in errors(state):
        data[name] = mean[name].values.tolist()
        data[f"{name}_error"] = error[name].values.tolist()
    return data


def _spectrum(state: State, report: Tell) -> dict[str, Any] | None:
    """A histogram of the bulk, each draw's values beyond it, and the prediction at this n."""
    problem = state.features.problem
    try:
        theory = spectrum(problem)
    except FeaturestepError:
        return None  # its panel says why
    found = simulated_spectrum(
        problem,
        seeds=SPECTRA,
        progress=lambda done, total: report(_SHARE + (1.0 - _SHARE) * min(1.0, done / total)),
    )
    border = float(np.sqrt(theory.border.place))
    ends = np.linspace(0.0, border, BINS + 1)
    return {
        "n": state.n,
        "ends": ends.tolist(),
        "heights": (np.diff(found.cumulative(ends**2).mean) / np.diff(ends)).tolist(),
        "spikes": _spikes(found, border),
        "theory": as_data(state, theory),
    }


def _spikes(found: SimulatedSpectrum, border: float) -> list[dict[str, Any]]:
    """Each value beyond the bulk, with its overlaps with H_0(κ) … H_6(κ) and with κ … κ⁶."""
    names = ("singular_value", "rank", "overlaps", "power_overlaps")
    rows = zip(
        found.singular_values(), found.hermite_overlaps(), found.power_overlaps(), strict=True
    )
    return [
        dict(zip(names, (float(s), rank, h.tolist(), p.tolist()), strict=True))
        for each in rows
        for rank, (s, h, p) in enumerate(zip(*each, strict=True))
        if s > border
    ]
