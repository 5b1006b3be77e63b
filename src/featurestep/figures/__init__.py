"""The figures of the two papers: computed, drawn and held to what the papers claim."""

from __future__ import annotations

from ..errors import InvalidProblem
from . import (
    alignment,
    double_descent,
    equivalence,
    exponent,
    learning_curves,
    maximal_step,
    readout_law,
    spectra,
    weights,
)
from .base import PaperFigure, Report, encoded
from .claims import Claim, FigureClaimFailed

__all__ = ["FIGURES", "Claim", "FigureClaimFailed", "PaperFigure", "Report", "encoded", "find"]

FIGURES = {
    figure.name: figure
    for figure in (
        spectra.FIGURE,
        weights.FIGURE,
        exponent.FIRST,
        exponent.SECOND,
        alignment.FIGURE,
        equivalence.FIGURE,
        double_descent.FIGURE,
        learning_curves.FIGURE,
        readout_law.FIGURE,
        maximal_step.FIGURE,
    )
}


def find(name: str) -> tuple[PaperFigure, ...]:
    """The figure of a name, or every one for `all`."""
    if name == "all":
        return tuple(FIGURES.values())
    if name not in FIGURES:
        raise InvalidProblem("NAME", f"must be all or one of {', '.join(FIGURES)}", name)
    return (FIGURES[name],)
