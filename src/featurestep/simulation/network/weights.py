"""The first layer after the steps, and how far it leans towards the target after each.

It is kept in as few matrices as the sharing of step sizes allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array, Backend
from ..draws.draw import Draw, Sample
from .plan import Group, Move
from .step import Gradient, combine, gradient, weights_in_basis
from .variants import Terms

Count = Callable[[int], None]


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


@dataclass
class Weights:
    """The matrices every sample is projected on, and each trained W in terms of them."""

    matrices: list[Array]  # each (N, d)
    terms: dict[Move, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    beta: dict[float, Array] = field(default_factory=dict)  # by noise level, each (1, d)
    alignment: dict[Move, list[Alignment]] = field(default_factory=dict)


class Trainer:
    """Takes the steps of a group on one draw."""

    def __init__(
        self, group: Group, draw: Draw, rows: int, buffers: list[Array], count: Count
    ) -> None:
        self.group = group
        self.draw = draw
        self.setting = draw.setting
        self.rows = rows
        self.buffers = buffers
        self.count = count
        self.backend: Backend = draw.backend

    def weights(self) -> Weights:
        """W0 and what the steps made of it."""
        W0 = self.draw.initial_weights()
        if not self.group.steps_needed:
            return Weights([W0])
        first = self.gradient(W0, self.draw.step_sample(0), self.group.levels)
        return self.stepped(W0, first)

    def stepped(self, W0: Array, first: Gradient) -> Weights:
        """What the first gradient, and further steps, make of W0."""
        overlaps = Overlaps(W0, self.draw.readout, self.draw.directions, self.backend)
        levels = self.group.levels
        if self.group.separate(self.setting):
            out = self._separate(W0, first, overlaps)
        else:
            out = self._shared(W0, first, overlaps)
        for noise in levels:
            basis = weights_in_basis(noise, levels)
            pairs = zip(first.beta, basis, strict=True)
            row = self.backend.empty(*self.draw.lead, 1, self.group.problem.d)
            out.beta[noise] = combine(self.backend, pairs, row)
        return out

    def _shared(self, W0: Array, first: Gradient, overlaps: Overlaps) -> Weights:
        """W = W0 + ηG: two products (three for several noise levels) serve every step size."""
        out = Weights([W0, *first.G])
        for eta, noise in self.group.moves:
            basis = weights_in_basis(noise, self.group.levels)
            scaled = [(i + 1, eta * weight) for i, weight in enumerate(basis)]
            out.terms[eta, noise] = ((0, 1.0), *scaled)
            terms = [(out.matrices[i], weight) for i, weight in out.terms[eta, noise]]
            out.alignment[eta, noise] = [overlaps.of(terms)]
        return out

    def _separate(self, W0: Array, first: Gradient, overlaps: Overlaps) -> Weights:
        """Each W on its own, after all its steps."""
        out = Weights([W0] if self.group.initial_needed else [])
        for eta, noise in self.group.moves:
            last = (eta, noise) == self.group.moves[-1]
            several = len(self.setting.multiples) > 1
            sizes = [eta * m for m in self.setting.multiples] if several else [eta]
            basis = weights_in_basis(noise, self.group.levels)
            step = [(G, sizes[0] * weight) for G, weight in zip(first.G, basis, strict=True)]
            W = first.G[0] if last else self.backend.empty(*W0.shape)  # G is done with at the last
            combine(self.backend, [(W0, 1.0), *step], W)
            path = [self._once(overlaps, W)]
            for number, size in enumerate(sizes[1:], start=1):
                G = self.gradient(W, self.draw.step_sample(number), (noise,)).G[0]
                combine(self.backend, [(W, 1.0), (G, size)], W)
                path.append(self._once(overlaps, W))
            out.terms[eta, noise] = ((len(out.matrices), 1.0),)
            out.matrices.append(W)
            out.alignment[eta, noise] = path
        return out

    @staticmethod
    def _once(overlaps: Overlaps, W: Array) -> Alignment:
        """Alignment of a matrix that is about to be replaced."""
        found = overlaps.of([(W, 1.0)])
        overlaps.forget()
        return found

    def gradient(self, W: Array, sample: Sample, levels: tuple[float, ...]) -> Gradient:
        """Over the rows of a sample; those of its parts add up."""
        problem = self.group.problem
        blocks = self.draw.blocks(sample, self.rows)
        pair = (self.buffers[0], self.buffers[1])
        out = gradient(self.backend, problem, W, self.draw.readout, blocks, levels, pair)
        products = 1 + len(out.G)
        self.count(2 * products * (sample.count - sample.start) * problem.width * problem.d)
        return out
