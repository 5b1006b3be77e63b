"""One network's rows shared between machines: sums over ranges of rows, added as a tree.

The gradient, the normal equations and the test error are all sums over rows, and a row follows
from the seed. A worker draws its own rows; matrices travel, samples never do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from ..cluster import Arrays, Cluster, Range
from .experiment import Experiment, GroupTask
from .plan import solve_flops
from .readout import solve_primal
from .run import TRAIN, Count, GroupOutcome, GroupRun, Weights
from .step import FeatureKey, StepGradient, residual_basis

MakeRun = Callable[[], GroupRun]  # what is sent to a worker: a run is made where it runs


def shares_rows(experiment: Experiment, index: int) -> bool:
    """Whether a group's work is sums over rows: one step, and one sample size above the width."""
    cost, one_step = experiment.groups[index], experiment.groups[index].group.problem.steps == 1
    return one_step and not cost.held and len(cost.primal) == 1


def outcome_by_rows(
    cluster: Cluster, experiment: Experiment, task: GroupTask, count: Count
) -> GroupOutcome:
    """A group on one seed in three rounds over its rows: gradient, normal equations, test.

    `count` is told the flops as they end.
    """
    cost = experiment.groups[task[0]]
    group, p, gradient = cost.group, cost.group.problem, None
    N, d, n = p.width, p.d, cost.primal[0]
    make, summed = partial(experiment.run, *task), partial(cluster.summed, count)
    if group.steps_needed:
        products = 1 + residual_basis(group.levels)
        gradient = summed(p.n_step, 2 * products * N * d, gradient_part, make)
    project = 2 * group.projections * N * d
    solved = []
    for keys in cost.passes:
        each = project + len(keys) * N * (N + 4)
        sums = summed(n, each, _equations_part, make, gradient, keys)
        solved.append(cluster.submit(_solved, make, keys, sums))
    fits = sum(len(fits) for fits in group.fits.values())
    errors = summed(group.n_test, project + 2 * N * fits, _errors_part, make, gradient, solved)
    done = cluster.submit(_finished, make, gradient, solved, errors)
    out, flops = cluster.result(done)
    count(flops)
    return cast("GroupOutcome", out)


def weights_after(run: GroupRun, gradient: Arrays | None) -> Weights:
    """The trained weights from the sum of all gradients; copied, for the steps write into it."""
    if gradient is None:
        return run.weights()
    arrays, half = [run.backend.put(np.array(array)) for array in gradient], len(gradient) // 2
    return run.weights(StepGradient(tuple(arrays[:half]), tuple(arrays[half:])))


def gradient_part(make: MakeRun, rows: Range) -> Arrays:
    """G and β of some rows of the first step's sample."""
    run = make()
    W0, sample = run.draw.initial_weights(), run.draw.step_sample(0).within(rows)
    found = run.gradient(W0, sample, run.group.levels)
    return [run.backend.get(array) for array in (*found.G, *found.beta)]


def _equations_part(
    make: MakeRun, gradient: Arrays | None, keys: Sequence[FeatureKey], rows: Range
) -> Arrays:
    run = make()
    sums = {key: run.normal_equations() for key in keys}
    sample = run.draw.readout_sample(rows[1]).within(rows)
    for projected in run.blocks(weights_after(run, gradient), sample, TRAIN):
        for key in keys:
            sums[key].add(run.features(key, projected), projected.clean, projected.noise)
    return [array for key in keys for array in sums[key].parts()]


def _solved(make: MakeRun, keys: Sequence[FeatureKey], sums: Arrays) -> GroupOutcome:
    run, out = make(), GroupOutcome()
    n = run.cost.primal[0]
    for place, key in enumerate(keys):
        equations = run.normal_equations()
        equations.take([np.array(part) for part in sums[3 * place : 3 * place + 3]])
        out.solutions[key] = solve_primal(equations, run.group.by_size(key)[n], last=True)
    return out.with_readouts(run.backend.get)


def _joined(solved: Sequence[GroupOutcome]) -> GroupOutcome:
    """The solutions of all passes."""
    out = GroupOutcome()
    for each in solved:
        out.solutions.update(each.solutions)
    return out


def _errors_part(
    make: MakeRun, gradient: Arrays | None, solved: Sequence[GroupOutcome], rows: Range
) -> Arrays:
    run = make()
    joined = _joined(solved).with_readouts(run.backend.solver.put)
    sample = run.draw.test_sample().within(rows)
    sums = run.squared_errors(weights_after(run, gradient), sample, joined)
    return [sums[key] for key in joined.solutions]


def _finished(
    make: MakeRun, gradient: Arrays | None, solved: Sequence[GroupOutcome], errors: Arrays
) -> tuple[GroupOutcome, int]:
    """Everything but the readouts themselves, and the flops of the solves."""
    run, out = make(), _joined(solved)
    run.put_errors(dict(zip(out.solutions, errors, strict=True)), out)
    out.alignment = weights_after(run, gradient).alignment
    N, fits = run.group.problem.width, run.group.fits.values()
    return out.light(), sum(solve_flops(N, each, run.backend) for each in fits)
