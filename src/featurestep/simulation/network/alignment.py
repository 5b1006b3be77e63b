"""How far the weights lean towards the target, after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array, Backend

SLICE = 256  # rows of a weight matrix multiplied at a time, to keep temporaries small

Terms = Sequence[tuple[Array, float]]  # a matrix Σ weight · term that is never formed


@dataclass(frozen=True)
class Alignment:
    """Two measures of alignment with the span of the target's directions B."""

    cosine: float  # |cos| of (W − W0)ᵀa with the span: |γ| of theory, eq. 2, after one step
    energy: float  # ‖WB‖²/‖W‖²: about directions/d before the first step


class Overlaps:
    """Alignments of many combinations of few matrices; what concerns one matrix is kept."""

    def __init__(
        self, W0: Array, readout: FloatArray, directions: FloatArray, backend: Backend
    ) -> None:
        self.backend = backend
        self.a = backend.put(readout[:, None])
        self.B = backend.put(directions)
        self.directions = directions
        self._along: dict[int, tuple[Array, FloatArray, FloatArray]] = {}
        self._inner: dict[tuple[int, int], float] = {}
        self.start = self._of(W0)[1]

    def of(self, terms: Terms) -> Alignment:
        """Alignment of W = Σ weight · term."""
        inside = sum(weight * self._of(matrix)[0] for matrix, weight in terms)
        learned = sum(weight * self._of(matrix)[1] for matrix, weight in terms) - self.start
        square = sum(v * w * self._product(M, K) for M, v in terms for K, w in terms)
        along = self.directions @ learned
        length = float(np.sqrt(learned @ learned))
        cosine = float(np.sqrt(along @ along)) / length if length > 0 else 0.0
        return Alignment(min(cosine, 1.0), float(np.sum(np.square(inside))) / float(square))

    def forget(self) -> None:
        """Let go of the matrices met so far, and of what was kept about them."""
        self._along.clear()
        self._inner.clear()

    def _of(self, matrix: Array) -> tuple[FloatArray, FloatArray]:
        """MB and Mᵀa."""
        if id(matrix) not in self._along:
            inside = self.backend.empty(len(matrix), len(self.directions))
            self.backend.product(matrix, self.B, inside)
            weighted = self.backend.zeros(1, matrix.shape[1])
            self.backend.add_product(weighted, self.a, matrix)
            # The matrix is kept with its numbers, so that its id is not taken by another.
            kept = (matrix, self.backend.get(inside), self.backend.get(weighted)[0])
            self._along[id(matrix)] = kept
        return self._along[id(matrix)][1:]

    def _product(self, left: Array, right: Array) -> float:
        """⟨M, K⟩."""
        key = (min(id(left), id(right)), max(id(left), id(right)))
        if key not in self._inner:
            pieces = range(0, len(left), SLICE)
            products = (left[i : i + SLICE] * right[i : i + SLICE] for i in pieces)
            self._inner[key] = sum(float(piece.sum()) for piece in products)
        return self._inner[key]
