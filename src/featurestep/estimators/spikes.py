"""Singular values of the features that stand out, and what they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..borders import border_of
from ..simulation import find_spikes
from ..simulation.arrays.backend import Array
from ..simulation.network.given import Network
from ..simulation.network.readout import smaller_gram
from ..types import FloatArray
from .directions import Along, orthonormal_polynomials

TOP = 12  # at most so many vectors are looked at


@dataclass(frozen=True)
class FeatureSpikes:
    """Singular values of F/√n beyond the edge, on the readout's rows.

    The edge is the largest one of the untrained network on inputs whose columns were shuffled
    each on its own, plus the margin of `border_of`: what chance could explain. Real
    inputs have spikes of their own, without any step: those of `untrained`. The overlaps tell
    the two kinds apart.
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
    network: Network, W: Array, X: Any, places: list[Along], seed: int
) -> FeatureSpikes:
    """Of the trained and the untrained network on the same rows."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=network.backend.dtype)
    shuffled = np.ascontiguousarray(rng.permuted(X, axis=0))
    n, N = len(X), network.problem.width
    edge = float(_spectrum(network, network.features_of(shuffled, network.W0))[0][0])
    before = _spectrum(network, network.features_of(X, network.W0))[0]
    F = network.features_of(X, W)
    values, left = _spectrum(network, F)
    border = border_of(max(edge, np.finfo(float).tiny), edge * _scale(n, N))
    found = [find_spikes(each, border) for each in (values, before)]
    overlaps = np.zeros((found[0].count, len(places), 5))
    for index, place in enumerate(places):
        basis = orthonormal_polynomials(place(X))  # (n, degrees)
        shown = min(found[0].count, len(left))
        overlaps[:shown, index] = (left[:shown] @ basis) ** 2
        overlaps[shown:, index] = np.nan
    return FeatureSpikes(
        found[0].singular_values,
        found[1].singular_values,
        float(np.sqrt(border.place)),
        overlaps,
        np.sqrt(values),
    )


def _scale(n: int, N: int) -> float:
    """Tracy–Widom scale of the largest eigenvalue over the edge, for independent entries."""
    return float((n**0.5 + N**0.5) ** (-2 / 3) * float(n * N) ** (-1 / 6))


def _spectrum(network: Network, F: Array) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of FᵀF/n, descending, and the first left vectors as rows."""
    backend, (n, N) = network.backend, F.shape
    top = min(TOP, n, N)
    values, vectors = backend.eigen(smaller_gram(backend, F), top)
    values = np.maximum(values, 0.0)
    if n > N:
        out = backend.empty(n, top)
        left = backend.get(backend.product(F, backend.put(vectors), out)).T  # Fv = s·u
        lengths = np.linalg.norm(left, axis=1, keepdims=True)
        vectors = left / np.where(lengths > 0, lengths, 1.0)
    return values / n, np.asarray(vectors)
