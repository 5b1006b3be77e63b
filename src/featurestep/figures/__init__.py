"""The figures of the two papers: computed, drawn and held to what the papers claim."""

from __future__ import annotations

from types import ModuleType

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

__all__ = ["FIGURES", "Claim", "FigureClaimFailed", "PaperFigure", "Report", "chosen", "encoded"]


def _of(module: ModuleType, name: str, title: str) -> PaperFigure:
    return PaperFigure(name, title, module.compute, module.draw, module.check)


FIGURES = {
    figure.name: figure
    for figure in (
        _of(spectra, "spectrum", "spectrum of the features before and after the step"),
        _of(weights, "weights", "spectrum of the weights with its one spike"),
        exponent.FIRST,
        exponent.SECOND,
        _of(alignment, "alignment", "overlaps of the singular vectors with polynomials of κ"),
        _of(equivalence, "equivalence", "trained, spiked and Gaussian features as n grows"),
        _of(double_descent, "double-descent", "the untrained network against its width"),
        _of(learning_curves, "learning-curves", "learning curves at the maximal step"),
        _of(readout_law, "readout-law", "test error against the exponent for four readout laws"),
        _of(
            maximal_step,
            "maximal-step",
            "test error at steps of order √N, exactly and by spiked random features",
        ),
    )
}
