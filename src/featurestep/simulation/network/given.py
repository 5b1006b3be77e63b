"""The network on given rows and labels: its draws, its gradient step, its features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.problem import Problem
from ...core.types import FloatArray
from ..arrays.backend import Array, Backend
from ..draws.draw import Draw
from ..draws.setting import Setting
from ..draws.streams import Source, Streams
from .step import FeatureMaps, Terms, combine, refuse_infinite, scale, slopes

BLOCK_ROWS = 1024  # of a sample in memory at a time


@dataclass(frozen=True)
class GradientStep:
    """The sum of the outputs' gradients, and β of each."""

    G: Array  # (N, d)
    beta: FloatArray  # (outputs, d)


class NetworkOnRows:
    """f(x) = Aσ(Wx), A of shape (outputs, N): one initial readout for each output."""

    def __init__(self, problem: Problem, backend: Backend, *, seed: int, outputs: int) -> None:
        self.problem = problem
        self.backend = backend
        self.outputs = outputs
        self._draw = Draw(problem, Setting(), Source([Streams(seed)], backend), 1)
        self._maps = FeatureMaps(problem, self._draw.readout, backend)

    @cached_property
    def W0(self) -> Array:  # noqa: N802
        """The first layer at the start, that of `simulate` for the same seed."""
        return self._draw.initial_weights()

    @cached_property
    def initial_readouts(self) -> FloatArray:
        """(outputs, N): the first is that of `simulate`, the others are drawn like it."""
        N, streams = self.problem.width, self._draw.streams
        draws = (
            self.problem.law.sample(streams.generator("readout", k), N) / N**0.5
            for k in range(1, self.outputs)
        )
        return np.stack([self._draw.readout, *draws])

    def step(self, W: Array, X: Any, R: FloatArray) -> GradientStep:
        """Σ_k (1/n0)[(a_k r_kᵀ) ∘ σ′(WXᵀ)]X over the outputs k (theory, section 1).

        The sum over k is taken inside, [(ARᵀ) ∘ σ′(WXᵀ)]X with A (N, outputs), so that outputs cost
        one product together. The labels R (rows, outputs) are the residual.
        """
        backend, n0 = self.backend, len(X)
        A = backend.put(self.initial_readouts.T / n0)  # (N, outputs)
        G, beta = backend.zeros(*W.shape), backend.zeros(A.shape[1], W.shape[1])
        for start in range(0, n0, BLOCK_ROWS):
            x, r = (backend.put(array[start : start + BLOCK_ROWS]) for array in (X, R))
            P = backend.product(x, W)
            slopes(backend, self.problem, P)
            backend.each(scale, [P, backend.product(r, A)], True)
            backend.add_product(G, P, x)
            backend.add_product(beta, r, x)
        refuse_infinite(G)
        return GradientStep(G, backend.get(beta) / n0)

    def stepped(self, first: GradientStep, X: Any, R: FloatArray, eta: float, steps: int) -> Array:
        """W after so many steps of size η on the same rows, the first of which is known."""
        W = combine(
            self.backend, [(self.W0, 1.0), (first.G, eta)], self.backend.empty(*self.W0.shape)
        )
        for _ in range(steps - 1):
            G = self.step(W, X, R).G
            combine(self.backend, [(W, 1.0), (G, eta)], W)
        return W

    def project(self, X: Any, W: Array) -> Array:
        """XWᵀ, (n, N)."""
        return self.backend.product(self.backend.put(X), W)

    def features(self, terms: Terms, out: Array) -> Array:
        """σ(Σ weight · projection), into out."""
        return self._maps.trained(terms, out)

    def features_of(self, X: Any, W: Array) -> Array:
        """σ(XWᵀ)."""
        P = self.project(X, W)
        return self.features(((P, 1.0),), P)


def sum_of_squares(values: Array) -> float:
    """Of all entries, in pieces so that no second copy is made."""
    pieces = (values[i : i + BLOCK_ROWS] for i in range(0, len(values), BLOCK_ROWS))
    return sum(float((piece * piece).sum()) for piece in pieces)
