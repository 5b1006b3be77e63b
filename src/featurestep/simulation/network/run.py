"""One group of points on one draw: take the steps, fit the readouts, measure the test error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array
from ..draws.draw import Block, Draw, Sample
from ..draws.laws import NORMAL
from ..failures import NonFiniteFeatures
from .cost import GroupCost, keys_with, solve_flops
from .plan import Fit, Group, Move
from .readout import Labels, NormalEquations, Solution, solve_dual, solve_primal
from .variants import FeatureKey, FeatureMaps
from .weights import Alignment, Count, Trainer, Weights

TRAIN, TEST = 0, 1  # parts of the stream `equivalent`


@dataclass
class Outcome:
    """The numbers of a group on one draw, or arrays of them over several."""

    solutions: defaultdict[FeatureKey, list[Solution]] = field(
        default_factory=lambda: defaultdict(list)
    )
    test_error: dict[tuple[FeatureKey, Fit], FloatArray] = field(default_factory=dict)
    alignment: dict[Move, list[Alignment]] = field(default_factory=dict)

    def light(self) -> Outcome:
        """Its numbers alone, without the readouts: what is worth sending."""
        for key, found in self.solutions.items():
            self.solutions[key] = [replace(solution, a_hat=None) for solution in found]
        return self


def uncounted(flops: int) -> None:
    """For flops that are counted where the work was asked for."""


@dataclass(frozen=True)
class Projected:
    """Rows of a sample, projected on the weights."""

    arrays: list[Array]  # X·matrixᵀ, each (rows, N)
    kappa: dict[float, Array]  # Xβ by noise level, each (rows, 1)
    noise: Array | None  # Z of the Gaussian equivalent


class GroupRun:
    """Runs a group on a draw; `count` is told the flops as they are done."""

    def __init__(self, group: Group, draw: Draw, cost: GroupCost, count: Count) -> None:
        self.group = group
        self.draw = draw
        self.cost = cost
        self.lead = draw.lead
        draws = prod(self.lead)
        self.count: Count = lambda flops: count(draws * flops)
        self.backend = draw.backend
        self.maps = FeatureMaps(group.problem, draw.readout, draw.backend)
        self.equivalent = any(key.base == "gaussian" for key in group.fits)

    def execute(self) -> Outcome:
        """Steps, fits, test."""
        weights, buffers = self.prepare()
        outcome = Outcome(alignment=weights.alignment)
        self._fit_held(weights, outcome)
        for keys in self.cost.passes:
            self._fit_streamed(weights, keys, buffers, outcome)
        sample = self.draw.test_sample()
        self.put_errors(self.squared_errors(weights, sample, buffers, outcome), outcome)
        return outcome

    def prepare(self) -> tuple[Weights, list[Array]]:
        """The trained weights, and buffers for the rows of a block."""
        buffers = self.row_buffers()
        return self.trainer(buffers).weights(), buffers

    def trainer(self, buffers: list[Array]) -> Trainer:
        """What takes the steps."""
        return Trainer(self.group, self.draw, self.cost.rows, buffers, self.count)

    def row_buffers(self) -> list[Array]:
        """Room for the rows of a block."""
        return self._buffers(self.cost.rows)

    def _buffers(self, rows: int) -> list[Array]:
        N = self.group.problem.width
        return [self.backend.empty(*self.lead, rows, N) for _ in range(self.cost.buffers)]

    def blocks(
        self, weights: Weights, sample: Sample, part: int, buffers: list[Array]
    ) -> Iterator[tuple[Block, Projected]]:
        """Blocks of a sample with their projections, in the buffers' first rows."""
        for block in self.draw.blocks(sample, self.cost.rows):
            yield block, self._project(weights, block, part, _first(buffers, block.rows))

    def _project(self, weights: Weights, block: Block, part: int, out: list[Array]) -> Projected:
        p, rows = self.group.problem, block.rows
        for matrix, target in zip(weights.matrices, out, strict=False):
            self.backend.product(block.X, matrix, target)
            self.count(2 * rows * p.width * p.d)
        kappa = {
            noise: self.backend.product(block.X, beta, self.backend.empty(*self.lead, rows, 1))
            for noise, beta in weights.beta.items()
        }
        noise = None
        if self.equivalent:
            noise = out[-2]
            at = ("equivalent", part, block.start)
            noise[:] = self.draw.source.rows(*at, (rows, p.width), NORMAL, reuse=False)
        return Projected(out[: len(weights.matrices)], kappa, noise)

    def features(self, key: FeatureKey, weights: Weights, rows: Projected, out: Array) -> Array:
        """The features of a key on projected rows, into out."""
        if key.base == "trained":
            terms = weights.terms[key.eta, key.noise]
            return self.maps.trained([(rows.arrays[i], weight) for i, weight in terms], out)
        P0 = rows.arrays[0]  # XW0ᵀ whenever a key asks for it
        return self.maps.untrained(key, P0, rows.kappa.get(key.noise), rows.noise, out)

    def _fit_streamed(
        self, weights: Weights, keys: Sequence[FeatureKey], buffers: list[Array], out: Outcome
    ) -> None:
        """FᵀF accumulated over row blocks, for all keys of a pass at once: memory without n."""
        sizes = self.cost.streamed
        sums = {key: self.normal_equations() for key in keys}
        sample = self.draw.readout_sample(sizes[-1])
        for block, rows in self.blocks(weights, sample, TRAIN, buffers):
            for key in keys:
                F = self.features(key, weights, rows, *_first(buffers[-1:], block.rows))
                labels = (block.clean, block.noise)
                self._accumulate(sums[key], key, F, labels, block.start, sizes, out)

    def _fit_held(self, weights: Weights, out: Outcome) -> None:
        """The projections of the whole sample are held, and features made key by key."""
        sizes = self.cost.held
        if not sizes:
            return
        n = sizes[-1]
        whole = self._buffers(n)
        labels = self._labels(n)
        kappa = {noise: self.backend.empty(*self.lead, n, 1) for noise in weights.beta}
        for block in self.draw.blocks(self.draw.readout_sample(n), self.cost.rows):
            labels.put(block)
            at = slice(block.start, block.start + block.rows)
            rows = self._project(weights, block, TRAIN, [array[..., at, :] for array in whole])
            for noise, column in rows.kappa.items():
                kappa[noise][..., at, :] = column
        sample = Projected(whole, kappa, whole[-2])
        large = [size for size in sizes if size > self.group.problem.width]
        sums = self.normal_equations() if large else None
        for key in keys_with(self.group, sizes):
            F = self.features(key, weights, sample, whole[-1])
            self._fit_dual(key, F, labels, out)
            if sums is not None and key in keys_with(self.group, large):
                sums.clear()
                most = large[-1]
                pair = (labels.clean[..., :most], labels.noise[..., :most])
                self._accumulate(sums, key, F[..., :most, :], pair, 0, large, out)

    def _fit_dual(self, key: FeatureKey, F: Array, labels: Labels, out: Outcome) -> None:
        """Fits with n ≤ N, from FFᵀ of the largest of them."""
        N = self.group.problem.width
        sizes = sorted({fit.n for fit in self.group.fits[key] if fit.n <= N})
        if not sizes:
            return
        solver = self.backend.solver
        gram = solver.outer_gram(solver.cast(F[..., : sizes[-1], :]))
        self.count(sizes[-1] ** 2 * N)
        for size in sizes:
            fits = self.fits(key, size)
            out.solutions[key] += solve_dual(solver, gram, F, labels, fits)
            self.count(solve_flops(size, fits, self.backend) + 2 * size * N * len(fits))

    def normal_equations(self) -> NormalEquations:
        """Of this group's width, with no rows yet."""
        return NormalEquations(self.backend, self.group.problem.width, self.lead)

    def _labels(self, n: int) -> Labels:
        shape = (*self.lead, n)
        return Labels(self.backend.wide_empty(*shape), self.backend.wide_empty(*shape))

    def _accumulate(
        self,
        sums: NormalEquations,
        key: FeatureKey,
        F: Array,
        labels: tuple[Array, Array],
        start: int,
        sizes: Sequence[int],
        out: Outcome,
    ) -> None:
        """Rows start … of F into the normal equations, solved at every size on the way."""
        N = self.group.problem.width
        for low, high in _pieces(start, start + F.shape[-2], sizes):
            rows = slice(low - start, high - start)
            clean, noise = labels
            sums.add(F[..., rows, :], clean[..., rows], noise[..., rows])
            self.count((high - low) * N * (N + 4))
            fits = self.fits(key, high)
            if fits:
                last = not any(fit.n > high for fit in self.group.fits[key])
                out.solutions[key] += solve_primal(sums, fits, last=last)
                self.count(solve_flops(N, fits, self.backend))

    def fits(self, key: FeatureKey, n: int) -> list[Fit]:
        """The ridge regressions of a key on n samples."""
        return [fit for fit in self.group.fits[key] if fit.n == n]

    def squared_errors(
        self, weights: Weights, sample: Sample, buffers: list[Array], out: Outcome
    ) -> dict[FeatureKey, FloatArray]:
        """Sums over test rows of (σ⋆ − f)², for every readout."""
        N, solver = self.group.problem.width, self.backend.solver
        stacked = {key: self._stack(found) for key, found in out.solutions.items()}
        sums: dict[FeatureKey, Array] = dict.fromkeys(stacked, 0.0)
        for block, rows in self.blocks(weights, sample, TEST, buffers):
            for key, readouts in stacked.items():
                F = self.features(key, weights, rows, *_first(buffers[-1:], block.rows))
                fits = readouts.shape[-2]
                output = solver.empty(*self.lead, block.rows, fits)
                predicted = solver.wide(solver.product(solver.cast(F), readouts, output))
                sums[key] = sums[key] + ((block.clean[..., None] - predicted) ** 2).sum(-2)
                self.count(2 * block.rows * N * fits)
        return {key: self.backend.get(total) for key, total in sums.items()}  # each (fits,)

    def put_errors(self, sums: Mapping[FeatureKey, FloatArray], out: Outcome) -> None:
        """Test errors from the sums over all test rows.

        E(y − f)² = E(σ⋆ − f)² + noise_std²: the second term is exact, only the first sampled.
        """
        for key, found in out.solutions.items():
            for index, solution in enumerate(found):
                error = sums[key][..., index] / self.group.n_test + solution.fit.noise**2
                if not np.isfinite(error).all():
                    raise NonFiniteFeatures("a test prediction is not finite")
                out.test_error[key, solution.fit] = error

    def _stack(self, found: list[Solution]) -> Array:
        """The fitted readouts as rows."""
        stacked = self.backend.solver.empty(*self.lead, len(found), self.group.problem.width)
        for index, solution in enumerate(found):
            stacked[..., index, :] = solution.a_hat
        return stacked


def _first(arrays: Sequence[Array], rows: int) -> list[Array]:
    """Their first rows."""
    return [array[..., :rows, :] for array in arrays]


def _pieces(start: int, stop: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """start … stop cut at the sample sizes inside."""
    cuts = [start, *(n for n in sizes if start < n < stop), stop]
    yield from pairwise(cuts)
