"""Results drawn: every function takes results and Axes, or makes its own, and returns the Axes.

`draw(result)` is what `result.plot()` calls; the others are its pieces.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import draw
    from .curves import compare, curve, curves, learned, shade_regimes, staircase
    from .diagrams import phase, tracks
    from .simulation import agreement, draws, gaps, points, simulated
    from .spectra import features, overlaps, panels, weights
    from .style import STYLE, figure_of, new_axes, render, styled
    from .sweeps import sweep_curves

__all__ = [
    "STYLE",
    "agreement",
    "compare",
    "curve",
    "curves",
    "draw",
    "draws",
    "features",
    "figure_of",
    "gaps",
    "learned",
    "new_axes",
    "overlaps",
    "panels",
    "phase",
    "points",
    "render",
    "shade_regimes",
    "simulated",
    "staircase",
    "styled",
    "sweep_curves",
    "tracks",
    "weights",
]

_ROOMS = {
    "answers": "draw",
    "curves": "compare curve curves learned shade_regimes staircase",
    "diagrams": "phase tracks",
    "simulation": "agreement draws gaps points simulated",
    "spectra": "features overlaps panels weights",
    "style": "STYLE figure_of new_axes render styled",
    "sweeps": "sweep_curves",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
