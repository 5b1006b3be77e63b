"""Block Lanczos with full reorthogonalisation: the top of a spectrum, and a quadrature of it all.

Started from random probes, the projected matrix T = S Θ Sᵀ does two things at once. Its largest
Ritz values converge to the largest eigenvalues. And for each probe p, Σ_i w_i f(θ_i) with w_i the
squared components of p on the Ritz vectors is a Gauss quadrature of pᵀf(A)p, whose mean over
random unit probes is the mean of f over the spectrum of A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ...core.types import FloatArray
from ...functions.quadrature import gauss_from_measure
from ..arrays.backend import Array, Backend

Apply = Callable[[Array], Array]


@dataclass(frozen=True)
class Ritz:
    """Ritz values, descending, with what a projected matrix knows of them."""

    values: FloatArray  # (size,)
    residuals: FloatArray  # (size,): ‖Ay − θy‖
    weights: FloatArray  # (probes, size): squared components of the probes
    coordinates: FloatArray  # (size, size): Ritz vectors in the basis, as columns


class BlockLanczos:
    """Grows an orthonormal basis of the block Krylov space of a symmetric operator.

    Vectors are rows of a backend's float64 arrays, whatever the operator computes in; what is
    small is on the host. `precision` is the operator's rounding unit: directions that small are
    dropped, so that an exhausted space ends the growth.
    """

    def __init__(
        self,
        apply: Apply,
        probes: FloatArray,
        *,
        capacity: int,
        precision: float,
        backend: Backend,
    ) -> None:
        self.apply = apply
        self.precision = precision
        self.backend = backend
        self._linalg: Any = import_module("scipy.linalg")
        room = min(capacity, probes.shape[1])
        self.basis = self.backend.empty(room, probes.shape[1])
        self.T = np.zeros((room, room))
        self.norm = 0.0  # of A, from below
        self.start = self.size = self.steps = 0
        self._mix = self._append(self.backend.put(np.array(probes)), 1.0)  # mix · first block
        self._coupling = np.empty((0, 0))

    @property
    def exhausted(self) -> bool:
        """Whether the last step found no new direction: then the basis is invariant."""
        return self.start == self.size

    def step(self) -> None:
        """One application of A, and the next block."""
        here = slice(self.start, self.size)
        Z = self.apply(self.basis[here])
        self.norm = max(self.norm, float((Z**2).sum(-1).max()) ** 0.5)
        inside = self._remove_basis(Z)  # (block, size)
        self.T[here, : self.size] = inside
        self.T[: self.size, here] = inside.T
        own = self.T[here, here]
        self.T[here, here] = 0.5 * (own + own.T)
        end = self.size
        self._coupling = self._append(Z, self.norm)  # (block, new)
        self.T[here, end : self.size] = self._coupling
        self.T[end : self.size, here] = self._coupling.T
        self.start, self.steps = end, self.steps + 1

    def ritz(self) -> Ritz:
        """Of the blocks to which A has been applied."""
        size, last = self.start, len(self._coupling)
        values, S = self._linalg.eigh(self.T[:size, :size], driver="evr", check_finite=False)
        values, S = values[::-1], S[:, ::-1]
        residuals = np.sqrt(np.sum((self._coupling.T @ S[size - last :]) ** 2, axis=0))
        weights = (self._mix @ S[: self._mix.shape[1]]) ** 2
        return Ritz(values, residuals, weights, S)

    def vectors(self, ritz: Ritz, top: int) -> Array:
        """The first Ritz vectors, as rows."""
        coordinates = self.backend.put(np.ascontiguousarray(ritz.coordinates[:, :top]))
        return self.backend.product_across(coordinates, self.basis[: len(coordinates)])

    def _append(self, Z: Array, norm: float) -> FloatArray:
        """Orthonormal rows Q for what is new in Z, with Z = coefficients · Q."""
        rounding = 4.0 * self.precision * self.basis.shape[1] ** 0.5
        coefficients, rows = self._factor(Z, rounding * norm)
        self._remove_basis(rows)  # short rows of Z were orthogonal to few digits only
        inner, rows = self._factor(rows, 0.5)
        room = min(len(rows), len(self.basis) - self.size)
        self.basis[self.size : self.size + room] = rows[:room]
        self.size += room
        return np.asarray((coefficients @ inner)[:, :room])

    def _factor(self, Z: Array, least: float) -> tuple[FloatArray, Array]:
        """Z = coefficients · rows, from the singular vectors of singular values above a limit."""
        if not len(Z):
            return np.empty((0, 0)), Z
        L, Q = self.backend.orthonormal(Z)
        U, s, V = self._linalg.svd(L, full_matrices=False, check_finite=False)
        keep = s > least
        rows = self.backend.zeros(int(np.count_nonzero(keep)), Q.shape[1])
        if len(rows):
            self.backend.add_product(rows, self.backend.put(V[keep].T), Q)
        return (U * s)[:, keep], rows

    def _remove_basis(self, Z: Array) -> FloatArray:
        """Z ← Z − (ZQᵀ)Q, twice; the coefficients ZQᵀ."""
        Q = self.basis[: self.size]
        total = np.zeros((len(Z), self.size))
        if not (self.size and len(Z)):
            return total
        backend = self.backend
        for _ in range(2):
            inside = backend.get(backend.product(Z, Q))
            backend.add_product(Z, backend.put(-inside.T), Q)
            total += inside
        return total


def gauss_rule(nodes: FloatArray, weights: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes, ascending, and weights of the Gauss rule of a discrete measure, of count at most.

    The Ritz values of a block come in clusters, one value for each probe; a Gauss rule of one
    probe's measure has one node for each cluster, and its weights bound its own error.
    """
    total = float(np.sum(weights))
    if total <= 0.0 or not len(nodes):
        return np.empty(0), np.empty(0)
    # A coupling of 1e-10 of the largest node ends it.
    rule = gauss_from_measure(nodes, weights, count, breakdown=1e-10)
    return np.maximum(rule.nodes, 0.0), rule.weights
