"""How far a spectrum can be trusted."""

from __future__ import annotations

from ...problem import Problem
from ...spiked import spiked_weights
from ..validity import isotropic_bulk_notes, prediction_notes
from .typical import spectral_method


def spectrum_notes(problem: Problem, *, light: bool = False) -> tuple[str, ...]:
    """Notes on what the weights that a spectrum rests on leave out."""
    weights, method = spiked_weights(problem), spectral_method(problem, light=light)
    if method == "isotropic":
        return isotropic_bulk_notes(problem, weights)
    return prediction_notes(problem, weights, method)
