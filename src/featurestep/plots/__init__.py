"""Results drawn: every function takes results and Axes, or makes its own, and returns the Axes.

`draw(result)` is what `result.plot()` calls; the others are its pieces.
"""

from .answers import draw
from .curves import compare, curve, curves, learned, shade_regimes, staircase
from .diagrams import phase, tracks
from .simulation import agreement, draws, gaps, points, simulated, sweep_curves
from .spectra import features, overlaps, panels, weights
from .style import STYLE, figure_of, new_axes, render, styled

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
