"""Singular values of the features that stand out, and what they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.borders import Border, border_of
from ..core.types import FloatArray
from ..simulation import (
    Array,
    MatrixSpectrum,
    NetworkOnRows,
    RowBlock,
    RowMatrix,
    dense_spectrum,
    find_spikes,
)
from .directions import Along, orthonormal_polynomials

TOP = 12  # at most so many vectors are looked at


@dataclass(frozen=True)
class FeatureSpikes:
    """Singular values of F/√n beyond the edge, on the readout's rows.

    The edge is the largest one that chance could explain: that of a network without common
    directions, on inputs whose columns were shuffled each on its own, plus the margin of
    `border_of`. Its neurons have random directions and the norms that the step left them
    beside β, ρ_j of eq. 4. Real inputs have spikes of their own, without any step: those of
    `untrained`. The overlaps tell the two kinds apart.
    """

    values: FloatArray  # (spikes,)
    untrained: FloatArray  # those of the untrained network
    edge: float
    overlaps: FloatArray  # (spikes, outputs, degrees 0 …): squared, of the left vector
    bulk: FloatArray  # all singular values, descending

    @property
    def count(self) -> int:
        """How many."""
        return len(self.values)


def feature_spikes(
    network: NetworkOnRows, W: Array, X: Any, places: list[Along], seed: int
) -> FeatureSpikes:
    """Of the trained and the untrained network on the same rows."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=network.backend.dtype)
    shuffled = np.ascontiguousarray(rng.permuted(X, axis=0))
    basis = np.concatenate([orthonormal_polynomials(place(X)) for place in places], axis=1)
    trained, before = (_spectrum(network, X, weights, basis) for weights in (W, network.W0))
    values = trained.distribution.atoms
    rho = network.backend.put(_norms_beside(network.backend.get(W), places)[:, None])
    borders = [_border(network, shuffled, weights) for weights in (rho * network.W0, network.W0)]
    spikes = find_spikes(values, borders[0])
    overlaps = np.full((spikes.count, len(places), basis.shape[1] // len(places)), np.nan)
    shown = min(spikes.count, len(trained.left))
    overlaps[:shown] = trained.left[:shown].reshape(shown, *overlaps.shape[1:])
    return FeatureSpikes(
        spikes.singular_values,
        find_spikes(before.distribution.atoms, borders[1]).singular_values,
        float(np.sqrt(borders[0].place)),
        overlaps,
        np.sqrt(values),
    )


def _norms_beside(W: FloatArray, places: list[Along]) -> FloatArray:
    """Norms of the neurons' weights without their part along the learned directions."""
    span = np.linalg.qr(np.stack([place.beta for place in places], axis=1))[0]  # (d, outputs)
    return np.asarray(np.linalg.norm(W - (W @ span) @ span.T, axis=1))


def _border(network: NetworkOnRows, shuffled: Any, W: Array) -> Border:
    """Of the bulk that these weights have on inputs without dependence."""
    edge = float(_spectrum(network, shuffled, W, np.ones((len(shuffled), 1))).top[0])
    scale = _scale(len(shuffled), network.problem.width)
    return border_of(max(edge, np.finfo(float).tiny), edge * scale)


def _scale(n: int, N: int) -> float:
    """Tracy–Widom scale of the largest eigenvalue over the edge, for independent entries."""
    return float((n**0.5 + N**0.5) ** (-2 / 3) * float(n * N) ** (-1 / 6))


def _spectrum(network: NetworkOnRows, X: Any, W: Array, functions: FloatArray) -> MatrixSpectrum:
    """Of FᵀF/n, and what the first left vectors have of functions (n, …) of the rows."""
    F = network.features_of(X, W)
    n, N = F.shape
    block = RowBlock(0, F, functions)
    none = np.empty((0, N))
    matrix = RowMatrix(n, N, float(n), functions.shape[1], none, lambda: iter([block]), whole=F)
    return dense_spectrum(network.backend, matrix, min(TOP, n, N))
