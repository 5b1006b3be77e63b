"""The figures of the two papers: computed, drawn and held to what the papers claim."""

from __future__ import annotations

from functools import partial

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
from .base import Claim, FigureClaimFailed, PaperFigure, Report, chosen, encoded

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

find = partial(chosen, FIGURES)
