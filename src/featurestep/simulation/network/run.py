"""One group of points on one draw: take the steps, fit the readouts, measure the test error.

The first layer after the steps is kept in as few matrices as the sharing of step sizes allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ...core.errors import NonFiniteFeatures
from ...core.types import FloatArray
from ..backend import Array
from ..draw import Block, Draw, SampleRange
from ..setting import NORMAL
from .convex import Features, along_ridges, convex_solution, fit_readout
from .losses import expected_over_labels
from .plan import GroupCost, ReadoutFit, convex_flops, solve_flops
from .readout import NormalEquations, solve_dual, solve_primal
from .step import FeatureKey, FeatureMaps, Move, StepGradient, combine, gradient, weights_in_basis

Count = Callable[[int], None]
Alignment = Mapping[str, Any]  # numbers by name, or arrays over several draws
MatrixTerm = tuple[int, float]  # which matrix, and its weight


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

    def of(self, terms: Sequence[MatrixTerm], start: FloatArray) -> Alignment:
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
    terms: dict[Move, tuple[MatrixTerm, ...]] = field(default_factory=dict)
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

    def weights(self, first: StepGradient | None = None) -> Weights:
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

    def _shared(self, W0: Array, first: StepGradient) -> Weights:
        """W = W0 + ηG: two products (three for several noise levels) serve every step size."""
        out = Weights([W0, *first.G])
        overlaps = Overlaps(out.matrices, self.draw)
        for sizes, noise in self.group.moves:
            basis = weights_in_basis(noise, self.group.levels)
            scaled = [(i + 1, sizes[0] * weight) for i, weight in enumerate(basis)]
            out.terms[sizes, noise] = terms = ((0, 1.0), *scaled)
            out.alignment[sizes, noise] = [overlaps.of(terms, overlaps.weighted[0])]
        return out

    def _separate(self, W0: Array, first: StepGradient) -> Weights:
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

    def gradient(self, W: Array, sample: SampleRange, levels: tuple[float, ...]) -> StepGradient:
        """Over the rows of a sample; those of its parts add up."""
        problem = self.group.problem
        blocks = self.draw.blocks(sample, self.cost.rows)
        pair = (self.buffers[0], self.buffers[1])
        out = gradient(self.backend, problem, W, self.draw.readout, blocks, levels, pair)
        products = 1 + len(out.G)
        self.count(2 * products * (sample.count - sample.start) * problem.width * problem.d)
        return out


TRAIN, TEST = 0, 1  # parts of the stream `equivalent`


@dataclass
class GroupOutcome:
    """The numbers of a group on one draw, or arrays of them over several."""

    solutions: defaultdict[FeatureKey, list[Any]] = field(  # Solution or ConvexSolution
        default_factory=lambda: defaultdict(list)
    )
    alignment: dict[Move, list[Alignment]] = field(default_factory=dict)

    def with_readouts(self, change: Callable[[Array], Array]) -> GroupOutcome:
        """The same with the fitted readouts somewhere else."""
        for key, found in self.solutions.items():  # lists may be another outcome's too
            self.solutions[key] = [replace(each, a_hat=change(each.a_hat)) for each in found]
        return self

    def light(self) -> GroupOutcome:
        """Its numbers alone, without the readouts: what is worth sending."""
        return self.with_readouts(lambda a_hat: None)


def uncounted(flops: int) -> None:
    """For flops that are counted where the work was asked for."""


@dataclass(frozen=True)
class ProjectedRows:
    """Rows of a sample, projected on the weights, with their labels in float64."""

    start: int
    weights: Weights
    buffers: list[Array]  # (rows, N): first X·matrixᵀ; Z of the Gaussian equivalent; room for F
    kappa: dict[float, Array]  # Xβ by noise level, each (rows, 1)
    clean: Array  # (rows,): y = clean + noise_std · noise
    noise: Array

    def labels(self, fit: ReadoutFit) -> Array:
        """y of the fit's own size and noise level."""
        return self.clean[..., : fit.n] + fit.noise * self.noise[..., : fit.n]


class GroupRun(Trainer):
    """Runs a group on a draw."""

    def __init__(self, cost: GroupCost, draw: Draw, count: Count) -> None:
        super().__init__(cost, draw, count)
        self.maps = FeatureMaps(self.group.problem, draw.readout, draw.backend)
        self.equivalent = any(key.base == "gaussian" for key in self.group.fits)

    def execute(self) -> GroupOutcome:
        """Steps, fits, test."""
        weights = self.weights()
        outcome = GroupOutcome(alignment=weights.alignment)
        held = [self._held(weights)] if self.cost.held else []
        if not self.group.has_square_loss:
            for key in self.group.fits:
                self._fit_convex(key, held[0], outcome)
            self._test_convex(weights, outcome)
            return outcome
        for rows in held:
            for key in self.group.keys(dual=True):
                self._fit_dual(key, rows, outcome)
        for keys in self.cost.passes:
            sample = self.draw.readout_sample(self.cost.primal[-1])
            streamed = self.blocks(weights, sample, TRAIN)
            self._fit_primal(keys, held if self.cost.hold else streamed, outcome)
        self.put_errors(self.squared_errors(weights, self.draw.test_sample(), outcome), outcome)
        return outcome

    def blocks(self, weights: Weights, sample: SampleRange, part: int) -> Iterator[ProjectedRows]:
        """A sample in blocks of rows, all in the same buffers."""
        for block in self.draw.blocks(sample, self.cost.rows):
            yield self._project(weights, block, part, _cut(self.buffers, 0, block.rows))

    def _project(
        self, weights: Weights, block: Block, part: int, out: list[Array]
    ) -> ProjectedRows:
        p, rows = self.group.problem, block.rows
        for matrix, target in zip(weights.matrices, out, strict=False):
            self.backend.product(block.X, matrix, target)
            self.count(2 * rows * p.width * p.d)
        kappa = {n: self.backend.product(block.X, beta) for n, beta in weights.beta.items()}
        if self.equivalent:
            at = ("equivalent", part, block.start)
            out[-2][:] = self.draw.source.rows(*at, (rows, p.width), NORMAL, reuse=False)
        return ProjectedRows(block.start, weights, out, kappa, block.clean, block.noise)

    def _held(self, weights: Weights) -> ProjectedRows:
        """The readout's sample with all its projections in memory."""
        n, join = self.cost.held, self.backend.join
        whole = self.room(n)
        parts = [
            self._project(weights, block, TRAIN, _cut(whole, block.start, block.rows))
            for block in self.draw.blocks(self.draw.readout_sample(n), self.cost.rows)
        ]
        kappa = {noise: join([each.kappa[noise] for each in parts], -2) for noise in weights.beta}
        clean, noise = (join([getattr(each, y) for each in parts], -1) for y in ("clean", "noise"))
        return ProjectedRows(0, weights, whole, kappa, clean, noise)

    def features(self, key: FeatureKey, rows: ProjectedRows) -> Array:
        """The features of a key, in the last of the rows' buffers."""
        *arrays, out = rows.buffers
        if key.base == "trained":
            terms = rows.weights.terms[key.move]
            return self.maps.trained([(arrays[i], weight) for i, weight in terms], out)
        P0, Z = arrays[0], arrays[-1]  # XW0ᵀ and normals, whenever a key asks for them
        return self.maps.untrained(key, P0, rows.kappa.get(key.noise), Z, out)

    def _fit_dual(self, key: FeatureKey, rows: ProjectedRows, out: GroupOutcome) -> None:
        """Fits with n ≤ N, from FFᵀ of the largest of them."""
        N, solver = self.group.problem.width, self.backend.solver
        sizes = {n: fits for n, fits in self.group.by_size(key).items() if n <= N}
        F = self.features(key, rows)
        gram = solver.outer_gram(solver.cast(F[..., : max(sizes), :]))
        self.count(max(sizes) ** 2 * N)
        for size, fits in sizes.items():
            out.solutions[key] += solve_dual(solver, gram, F, rows.labels, fits)
            self.count(solve_flops(size, fits, self.backend) + 2 * size * N * len(fits))

    def _fit_primal(
        self, keys: Sequence[FeatureKey], sample: Iterable[ProjectedRows], out: GroupOutcome
    ) -> None:
        """FᵀF accumulated over rows, for all keys of a pass at once: memory without n.

        It is solved at every sample size on the way.
        """
        N, sizes = self.group.problem.width, self.cost.primal
        sums = {key: self.normal_equations() for key in keys}
        by_size = {key: self.group.by_size(key) for key in keys}
        for rows in sample:
            for key in keys:
                F = self.features(key, rows)
                for low, high in _pieces(rows.start, rows.start + F.shape[-2], sizes):
                    at = slice(low - rows.start, high - rows.start)
                    sums[key].add(F[..., at, :], rows.clean[..., at], rows.noise[..., at])
                    self.count((high - low) * N * (N + 4))
                    if high in by_size[key]:
                        fits, last = by_size[key][high], high == max(by_size[key])
                        out.solutions[key] += solve_primal(sums[key], fits, last=last)
                        self.count(solve_flops(N, fits, self.backend))

    def _fit_convex(self, key: FeatureKey, rows: ProjectedRows, out: GroupOutcome) -> None:
        """Fits with other losses, from features that are held whole; progress as promised."""
        N, solver = self.group.problem.width, self.backend.solver
        F = solver.cast(self.features(key, rows))
        for (n, by_samples), fits in self.group.by_side(key).items():
            features = Features(solver, F[:n], by_samples=by_samples)
            self.count(n * n * N if by_samples else 0)
            for path in along_ridges(fits):
                y, found = solver.get(rows.labels(path[0])), None
                for fit in path:
                    found = fit_readout(
                        features, y, loss=fit.loss, ridge=fit.ridge, intercept=fit.intercept,
                        start=found,
                    )  # fmt: skip
                    out.solutions[key].append(convex_solution(fit, solver, found, y))
                    self.count(convex_flops(fit, N))

    def _test_convex(self, weights: Weights, out: GroupOutcome) -> None:
        """Expected loss and error over the labels of the test rows, for every readout."""
        p, solver = self.group.problem, self.backend.solver
        stacked = {
            key: solver.join([solution.a_hat[None, :] for solution in found], 0)
            for key, found in out.solutions.items()
        }
        sums = {key: np.zeros((2, len(found))) for key, found in out.solutions.items()}
        for rows in self.blocks(weights, self.draw.test_sample(), TEST):
            clean = self.backend.get(rows.clean)
            for key, readouts in stacked.items():
                F = solver.cast(self.features(key, rows))
                outputs = solver.get(solver.product(F, readouts))  # (rows, fits)
                self.count(2 * p.width * outputs.size)
                for i, solution in enumerate(out.solutions[key]):
                    fit, f = solution.fit, outputs[:, i] + solution.intercept
                    pair = expected_over_labels(fit.loss, clean, f, noise=fit.noise, flip=p.flip)
                    sums[key][:, i] += [part.sum() for part in pair]
        for key, found in out.solutions.items():
            means = sums[key] / self.group.n_test
            if not np.isfinite(means).all():
                raise NonFiniteFeatures("a test prediction is not finite")
            for i, solution in enumerate(found):
                solution.test_loss, solution.test_error = (float(mean) for mean in means[:, i])

    def normal_equations(self) -> NormalEquations:
        """Of this group's width, with no rows yet."""
        return NormalEquations(self.backend, self.group.problem.width, self.lead)

    def squared_errors(
        self, weights: Weights, sample: SampleRange, out: GroupOutcome
    ) -> dict[FeatureKey, FloatArray]:
        """Sums over test rows of (σ⋆ − f)², for every readout."""
        N, solver = self.group.problem.width, self.backend.solver
        stacked = {
            key: solver.join([solution.a_hat[..., None, :] for solution in found], -2)
            for key, found in out.solutions.items()
        }
        sums: dict[FeatureKey, Array] = dict.fromkeys(stacked, 0.0)
        for rows in self.blocks(weights, sample, TEST):
            for key, readouts in stacked.items():
                F = solver.cast(self.features(key, rows))
                predicted = solver.wide(solver.product(F, readouts))  # (rows, fits)
                sums[key] = sums[key] + ((rows.clean[..., None] - predicted) ** 2).sum(-2)
                self.count(2 * N * predicted.shape[-2] * predicted.shape[-1])
        return {key: self.backend.get(total) for key, total in sums.items()}  # each (fits,)

    def put_errors(self, sums: Mapping[FeatureKey, FloatArray], out: GroupOutcome) -> None:
        """Test errors from the sums over all test rows.

        E(y − f)² = E(σ⋆ − f)² + noise_std²: the second term is exact, only the first sampled.
        """
        for key, found in out.solutions.items():
            for index, solution in enumerate(found):
                error = sums[key][..., index] / self.group.n_test + solution.fit.noise**2
                if not np.isfinite(error).all():
                    raise NonFiniteFeatures("a test prediction is not finite")
                solution.test_error = error


def _cut(arrays: Sequence[Array], start: int, rows: int) -> list[Array]:
    """Some rows of each."""
    return [array[..., start : start + rows, :] for array in arrays]


def _pieces(start: int, stop: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """start … stop cut at the sample sizes inside."""
    cuts = [start, *(n for n in sizes if start < n < stop), stop]
    yield from pairwise(cuts)
