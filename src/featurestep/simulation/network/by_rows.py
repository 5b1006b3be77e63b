"""One network's rows shared between machines: sums over ranges of rows, added as a tree.

The gradient, the normal equations and the test error are all sums over rows, and a row follows
from the seed. A worker draws its own rows; matrices travel, samples never do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Backend
from ..cluster import PARTS_A_WORKER, Cluster, Future, row_ranges
from ..draws.draw import Sample
from ..draws.streams import CHUNK, Streams
from .cost import solve_flops
from .experiment import Experiment
from .readout import solve_primal
from .run import TRAIN, GroupRun, Outcome
from .step import Gradient, residual_basis
from .variants import FeatureKey
from .weights import Weights

Range = tuple[int, int]
Arrays = list[FloatArray]


def shares_rows(experiment: Experiment, index: int) -> bool:
    """Whether a group's work is sums over rows: one step, and one sample size above the width."""
    group, cost = experiment.groups[index]
    one_step = len(experiment.draws.setting.multiples) == 1
    return one_step and not cost.held and len(cost.streamed) == 1 and bool(group.fits)


class RowShares:
    """One group on one seed, its rows over all workers; `count` is told the flops as they end."""

    def __init__(
        self,
        cluster: Cluster,
        experiment: Experiment,
        index: int,
        seed: int,
        count: Callable[[int], None],
    ) -> None:
        self.cluster = cluster
        self.where = (experiment, index, seed)
        self.group, self.cost = experiment.groups[index]
        self.count = count
        self.matrices = self.group.projections(experiment.draws.setting)

    def outcome(self) -> Outcome:
        """Three rounds over the rows: gradient, normal equations, test."""
        p, gradient = self.group.problem, None
        N, d, n = p.width, p.d, self.cost.streamed[0]
        if self.group.steps_needed:
            products = 1 + residual_basis(self.group.levels)
            gradient = self._summed(gradient_part, p.n_step, 2 * products * N * d)
        project = 2 * self.matrices * N * d
        solved = []
        for keys in self.cost.passes:
            each = project + len(keys) * N * (N + 4)
            sums = self._summed(_equations_part, n, each, gradient, keys)
            solved.append(self.cluster.submit(_solved, *self.where, keys, sums))
        fits = sum(len(fits) for fits in self.group.fits.values())
        errors = self._summed(
            _errors_part, self.group.n_test, project + 2 * N * fits, gradient, solved
        )
        done = self.cluster.submit(_finished, *self.where, gradient, solved, errors)
        out, flops = self.cluster.result(done)
        self.count(flops)
        return cast("Outcome", out)

    def _summed(self, work: Callable[..., Any], rows: int, flops: int, *arguments: Any) -> Future:
        """The sum over all rows, each of so many flops."""
        ranges = row_ranges(rows, PARTS_A_WORKER * self.cluster.workers, CHUNK)
        return self.cluster.total(
            [self.cluster.submit(work, *self.where, each, *arguments) for each in ranges],
            added,
            lambda place: self.count(flops * (ranges[place][1] - ranges[place][0])),
        )


def added(left: Arrays, right: Arrays) -> Arrays:
    """Not in place: a task's arguments may be asked for again."""
    return [a + b for a, b in zip(left, right, strict=True)]


class _Part:
    """A group on a seed, on a worker."""

    def __init__(self, experiment: Experiment, index: int, seed: int) -> None:
        draws, resources = experiment.draws, experiment.resources
        self.group, cost = experiment.groups[index]
        streams = Streams(draws.seeds[seed], draws.streams)
        self.draw = resources.draw(self.group.problem, draws.setting, streams, experiment.n_test)
        self.run = GroupRun(self.group, self.draw, draws.setting, cost, uncounted)
        self.buffers = self.run.row_buffers()

    def weights(self, gradient: Arrays | None) -> Weights:
        """The trained weights from the sum of all gradients."""
        W0 = self.draw.initial_weights()
        if gradient is None:
            return Weights([W0])
        return self.run.trainer(self.buffers).stepped(W0, first_of(self.run.backend, gradient))

    def part(self, sample: Sample, rows: Range) -> Sample:
        """Some rows of a sample."""
        return replace(sample, start=rows[0], count=rows[1])


def first_of(backend: Backend, gradient: Arrays) -> Gradient:
    """The first step's gradient from the sum of its parts; a copy, for the steps write into it."""
    arrays, half = [backend.put(np.array(array)) for array in gradient], len(gradient) // 2
    return Gradient(tuple(arrays[:half]), tuple(arrays[half:]))


def uncounted(flops: int) -> None:
    """Flops are counted where the work was asked for."""


def gradient_part(experiment: Experiment, index: int, seed: int, rows: Range) -> Arrays:
    """G and β of some rows of the first step's sample."""
    one = _Part(experiment, index, seed)
    sample = one.part(one.draw.step_sample(0), rows)
    found = one.run.trainer(one.buffers).first_gradient(one.draw.initial_weights(), sample)
    return [one.run.backend.get(array) for array in (*found.G, *found.beta)]


def _equations_part(
    experiment: Experiment,
    index: int,
    seed: int,
    rows: Range,
    gradient: Arrays | None,
    keys: Sequence[FeatureKey],
) -> Arrays:
    one = _Part(experiment, index, seed)
    weights = one.weights(gradient)
    sums = {key: one.run.normal_equations() for key in keys}
    sample = one.part(one.draw.readout_sample(rows[1]), rows)
    for block, projected in one.run.blocks(weights, sample, TRAIN, one.buffers):
        for key in keys:
            F = one.run.features(key, weights, projected, one.buffers[-1][: block.rows])
            sums[key].add(F, block.clean, block.noise)
    return [array for key in keys for array in sums[key].parts()]


def _solved(
    experiment: Experiment, index: int, seed: int, keys: Sequence[FeatureKey], sums: Arrays
) -> Outcome:
    one, out = _Part(experiment, index, seed), Outcome()
    n = experiment.groups[index][1].streamed[0]
    for place, key in enumerate(keys):
        equations = one.run.normal_equations()
        equations.take([np.array(part) for part in sums[3 * place : 3 * place + 3]])
        for solution in solve_primal(equations, one.run.fits(key, n), last=True):
            on_host = one.run.backend.get(solution.a_hat)
            out.solutions[key].append(replace(solution, a_hat=on_host))
    return out


def _joined(solved: Sequence[Outcome]) -> Outcome:
    """The solutions of all passes."""
    out = Outcome()
    for each in solved:
        out.solutions.update(each.solutions)
    return out


def _errors_part(
    experiment: Experiment,
    index: int,
    seed: int,
    rows: Range,
    gradient: Arrays | None,
    solved: Sequence[Outcome],
) -> Arrays:
    one = _Part(experiment, index, seed)
    joined, solver = _joined(solved), one.run.backend.solver
    for key, found in joined.solutions.items():
        joined.solutions[key] = [replace(s, a_hat=solver.put(s.a_hat)) for s in found]
    sample = one.part(one.draw.test_sample(), rows)
    sums = one.run.squared_errors(one.weights(gradient), sample, one.buffers, joined)
    return [sums[key] for key in joined.solutions]


def _finished(
    experiment: Experiment,
    index: int,
    seed: int,
    gradient: Arrays | None,
    solved: Sequence[Outcome],
    errors: Arrays,
) -> tuple[Outcome, int]:
    """Everything but the readouts themselves, and the flops of the solves."""
    one, out = _Part(experiment, index, seed), _joined(solved)
    one.run.put_errors(dict(zip(out.solutions, errors, strict=True)), out)
    out.alignment = one.weights(gradient).alignment
    N, solver = one.group.problem.width, one.run.backend.solver
    fits = one.group.fits.values()
    return out.light(), sum(solve_flops(N, list(each), solver.eigen_flops) for each in fits)
