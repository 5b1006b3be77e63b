"""A fitted estimator in three panels: curves, singular values, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from ..plots.style import PALETTE, line_colour, new_axes, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .explained import Explained

PANELS = 3
COLUMNS = 10  # of the most important ones
CURVES = 6


@styled
def draw(model: Explained, axes: Any = None) -> list[Axes]:
    """The panels on given Axes, or on a new figure."""
    if axes is None:
        shown = new_axes(columns=PANELS, width=6.8, height=2.3, sharex=False)
    else:
        shown = list(np.ravel(axes))
    if len(shown) != PANELS:
        raise InvalidProblem("axes", f"must be {PANELS} Axes", len(shown))
    _curves(shown[0], model)
    _spectrum(shown[1], model)
    _columns(shown[2], model)
    return shown


def _curves(ax: Axes, model: Explained) -> None:
    curves = model.learned_curve_[:CURVES]
    for index, curve in enumerate(curves):
        degrees = ", ".join(map(str, curve.degrees)) or "none"
        colour = line_colour(index, len(curves))
        ax.plot(curve.kappa, curve.values, color=colour, label=f"degrees {degrees}")
    ax.set_xlabel(r"$\kappa$, along the learned direction")
    ax.set_ylabel("mean output")
    cosine = model.direction_stability_.cosine[: len(curves)]
    ax.set_title("estimated cosine " + ", ".join(f"{c:.2f}" for c in cosine))
    ax.legend()


def _spectrum(ax: Axes, model: Explained) -> None:
    spikes = model.spikes_
    bulk = spikes.bulk[spikes.count :]
    ax.hist(bulk[bulk > 1e-9], bins=40, color="0.72", density=True)
    for value in spikes.values:
        ax.axvline(value, ymax=0.5, color=PALETTE[1])
    ax.axvline(spikes.edge, color=PALETTE[0], linestyle=":")
    ax.set_xlabel(r"singular value of $F/\sqrt{n}$")
    ax.set_title(f"{spikes.count} beyond the edge, {len(spikes.untrained)} untrained")
    if spikes.count and spikes.values[0] > 4 * spikes.edge:
        ax.set_xscale("log")


def _columns(ax: Axes, model: Explained) -> None:
    shares = model.feature_importances_
    order = np.argsort(shares)[::-1][:COLUMNS][::-1]
    names = getattr(model, "feature_names_in_", np.arange(len(shares)))
    ax.barh([str(names[i]) for i in order], shares[order], color=PALETTE[0])
    ax.set_xlabel("share of the squared slope")
