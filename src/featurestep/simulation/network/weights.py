"""The first layer after the steps, and how far it leans towards the target after each.

It is kept in as few matrices as the sharing of step sizes allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...core.types import FloatArray
from ..arrays.backend import Array
from ..draws.draw import Draw, Sample
from .cost import GroupCost
from .step import Gradient, combine, gradient, weights_in_basis
from .variants import Move

Count = Callable[[int], None]
Alignment = Mapping[str, Any]  # numbers by name, or arrays over several draws
Term = tuple[int, float]  # which matrix, and its weight


class Overlaps:
    """What a few matrices M have to do with the target, the readout and each other.

    It gives the alignment of all their combinations.
    """

    def __init__(self, matrices: Sequence[Array], draw: Draw) -> None:
        backend, self.directions = draw.backend, draw.directions
        B, a = backend.put(draw.directions), backend.put(draw.readout[..., None])
        self.inside: list[FloatArray] = []  # MB
        self.weighted: list[FloatArray] = []  # Mᵀa
        matrices = [draw.whitened(matrix) for matrix in matrices]
        for matrix in matrices:
            self.inside.append(backend.get(backend.product(matrix, B)))
            self.weighted.append(backend.get(backend.product_across(a, matrix))[..., 0, :])
        self.products = [[backend.get(backend.inner(M, K)) for K in matrices] for M in matrices]

    def of(self, terms: Sequence[Term], start: FloatArray) -> Alignment:
        """Alignment of W = Σ weight · M with the target's directions B, where W0ᵀa was the start.

        cosine
            |cos| of (W − W0)ᵀa with their span: |γ| of theory, eq. 2, after one step. With a
            covariance W stands for WΣ^½ and B for the directions of inputs of covariance 1.
        energy, energy_1, …
            ‖WB‖²/‖W‖², about directions/d before the first step; and the part of each direction.
        """
        inside = sum(weight * self.inside[i] for i, weight in terms)
        learned = sum(weight * self.weighted[i] for i, weight in terms) - start
        square = sum(v * w * self.products[i][j] for i, v in terms for j, w in terms)
        along = np.einsum("...kd,...d->...k", self.directions, learned)
        length = np.sqrt(np.sum(np.square(learned), axis=-1))
        inner = np.sqrt(np.sum(np.square(along), axis=-1))
        cosine = np.where(length > 0, inner / np.where(length > 0, length, 1.0), 0.0)
        energies = np.sum(np.square(inside), axis=-2) / np.asarray(square)[..., None]
        each = {f"energy_{i + 1}": energies[..., i] for i in range(energies.shape[-1])}
        return {"cosine": np.minimum(cosine, 1.0), "energy": np.sum(energies, axis=-1), **each}


@dataclass
class Weights:
    """The matrices every sample is projected on, and each trained W in terms of them."""

    matrices: list[Array]  # each (N, d)
    terms: dict[Move, tuple[Term, ...]] = field(default_factory=dict)
    beta: dict[float, Array] = field(default_factory=dict)  # by noise level, each (1, d)
    alignment: dict[Move, list[Alignment]] = field(default_factory=dict)


class Trainer:
    """Takes the steps of a group on one draw; `count` is told the flops as they are done."""

    def __init__(self, cost: GroupCost, draw: Draw, count: Count) -> None:
        self.cost = cost
        self.group = cost.group
        self.draw = draw
        self.backend = draw.backend
        self.lead = draw.lead
        draws = prod(self.lead)
        self.count: Count = lambda flops: count(draws * flops)

    @cached_property
    def buffers(self) -> list[Array]:
        """Room for the rows of a block."""
        return self.room(self.cost.rows)

    def room(self, rows: int) -> list[Array]:
        """Buffers for so many rows, each (rows, N)."""
        N = self.group.problem.width
        return [self.backend.empty(*self.lead, rows, N) for _ in range(self.cost.buffers)]

    def weights(self, first: Gradient | None = None) -> Weights:
        """W0 and what the steps made of it; the first gradient may be known, and is used up."""
        W0, levels = self.draw.initial_weights(), self.group.levels
        if not self.group.steps_needed:
            return Weights([W0])
        first = first or self.gradient(W0, self.draw.step_sample(0), levels)
        out = (self._separate if self.group.separate else self._shared)(W0, first)
        for noise in levels:
            basis = weights_in_basis(noise, levels)
            pairs = zip(first.beta, basis, strict=True)
            row = self.backend.empty(*self.lead, 1, self.group.problem.d)
            out.beta[noise] = combine(self.backend, pairs, row)
        return out

    def _shared(self, W0: Array, first: Gradient) -> Weights:
        """W = W0 + ηG: two products (three for several noise levels) serve every step size."""
        out = Weights([W0, *first.G])
        overlaps = Overlaps(out.matrices, self.draw)
        for sizes, noise in self.group.moves:
            basis = weights_in_basis(noise, self.group.levels)
            scaled = [(i + 1, sizes[0] * weight) for i, weight in enumerate(basis)]
            out.terms[sizes, noise] = terms = ((0, 1.0), *scaled)
            out.alignment[sizes, noise] = [overlaps.of(terms, overlaps.weighted[0])]
        return out

    def _separate(self, W0: Array, first: Gradient) -> Weights:
        """Each W on its own, after all its steps."""
        out = Weights([W0] if self.group.initial_needed else [])
        (start,) = Overlaps([W0], self.draw).weighted
        for sizes, noise in self.group.moves:
            last = (sizes, noise) == self.group.moves[-1]
            basis = weights_in_basis(noise, self.group.levels)
            step = [(G, sizes[0] * weight) for G, weight in zip(first.G, basis, strict=True)]
            W = first.G[0] if last else self.backend.empty(*W0.shape)  # G is done with at the last
            combine(self.backend, [(W0, 1.0), *step], W)
            path = [Overlaps([W], self.draw).of([(0, 1.0)], start)]
            for number, size in enumerate(sizes[1:], start=1):
                G = self.gradient(W, self.draw.step_sample(number), (noise,)).G[0]
                combine(self.backend, [(W, 1.0), (G, size)], W)
                path.append(Overlaps([W], self.draw).of([(0, 1.0)], start))
            out.terms[sizes, noise] = ((len(out.matrices), 1.0),)
            out.matrices.append(W)
            out.alignment[sizes, noise] = path
        return out

    def gradient(self, W: Array, sample: Sample, levels: tuple[float, ...]) -> Gradient:
        """Over the rows of a sample; those of its parts add up."""
        problem = self.group.problem
        blocks = self.draw.blocks(sample, self.cost.rows)
        pair = (self.buffers[0], self.buffers[1])
        out = gradient(self.backend, problem, W, self.draw.readout, blocks, levels, pair)
        products = 1 + len(out.G)
        self.count(2 * products * (sample.count - sample.start) * problem.width * problem.d)
        return out
