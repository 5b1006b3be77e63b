"""How far the weights lean towards the target, after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array, Backend

Terms = Sequence[tuple[Array, float]]  # a matrix Σ weight · term that is never formed


@dataclass(frozen=True)
class Alignment:
    """Measures of alignment with the span of the target's directions B, and with each of them.

    Numbers, or arrays over several draws.
    """

    cosine: Any  # |cos| of (W − W0)ᵀa with the span: |γ| of theory, eq. 2, after one step
    energy: Any  # ‖WB‖²/‖W‖²: about directions/d before the first step
    energies: Any  # the same for each direction, along the last axis


class Overlaps:
    """Alignments of many combinations of few matrices; what concerns one matrix is kept."""

    def __init__(
        self, W0: Array, readout: FloatArray, directions: FloatArray, backend: Backend
    ) -> None:
        self.backend = backend
        self.a = backend.put(readout[..., None])
        self.B = backend.put(directions)
        self.directions = directions
        self._along: dict[int, tuple[Array, FloatArray, FloatArray]] = {}
        self._inner: dict[tuple[int, int], FloatArray] = {}
        self.start = self._of(W0)[1]

    def of(self, terms: Terms) -> Alignment:
        """Alignment of W = Σ weight · term."""
        inside = sum(weight * self._of(matrix)[0] for matrix, weight in terms)
        learned = sum(weight * self._of(matrix)[1] for matrix, weight in terms) - self.start
        square = sum(v * w * self._product(M, K) for M, v in terms for K, w in terms)
        along = np.einsum("...kd,...d->...k", self.directions, learned)
        length = np.sqrt(np.sum(np.square(learned), axis=-1))
        inner = np.sqrt(np.sum(np.square(along), axis=-1))
        cosine = np.where(length > 0, inner / np.where(length > 0, length, 1.0), 0.0)
        energies = np.sum(np.square(inside), axis=-2) / np.asarray(square)[..., None]
        return Alignment(np.minimum(cosine, 1.0), np.sum(energies, axis=-1), energies)

    def forget(self) -> None:
        """Let go of the matrices met so far, and of what was kept about them."""
        self._along.clear()
        self._inner.clear()

    def _of(self, matrix: Array) -> tuple[FloatArray, FloatArray]:
        """MB and Mᵀa."""
        if id(matrix) not in self._along:
            *lead, N, d = matrix.shape
            inside = self.backend.empty(*lead, N, self.directions.shape[-2])
            self.backend.product(matrix, self.B, inside)
            weighted = self.backend.zeros(*lead, 1, d)
            self.backend.add_product(weighted, self.a, matrix)
            # The matrix is kept with its numbers, so that its id is not taken by another.
            kept = (matrix, self.backend.get(inside), self.backend.get(weighted)[..., 0, :])
            self._along[id(matrix)] = kept
        return self._along[id(matrix)][1:]

    def _product(self, left: Array, right: Array) -> FloatArray:
        """⟨M, K⟩."""
        key = (min(id(left), id(right)), max(id(left), id(right)))
        if key not in self._inner:
            self._inner[key] = self.backend.get(self.backend.inner(left, right))
        return self._inner[key]
