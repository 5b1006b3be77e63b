"""One network's Gram matrix summed over machines, for all eigenvalues of its features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from ..cluster import Arrays, Cluster, Range
from ..network.by_rows import gradient_part, weights_after
from ..network.step import residual_basis
from ..network.variants import Variant
from ..network.weights import Count
from .plan import OF_WEIGHTS, SpectrumPlan
from .run import SpectrumRun
from .singular import MatrixSpectrum, VectorOverlaps, from_gram, gram_of

Make = Callable[[], SpectrumRun]  # what is sent to a worker: a run is made where it runs


def shares_rows(plan: SpectrumPlan) -> bool:
    """Whether features are n ≥ N and their Gram matrix is formed, after one step."""
    p, routes = plan.problem, plan.cost.routes
    features = [v.name for v in plan.draws.variants if v.name not in OF_WEIGHTS]
    dense = all(routes[name].method == "dense" for name in features)
    one_step = plan.cost.group.steps_needed and p.steps == 1
    return bool(features) and dense and one_step and p.n >= p.width


def found_by_rows(
    cluster: Cluster, plan: SpectrumPlan, place: int, count: Count
) -> dict[str, MatrixSpectrum]:
    """What is found for each variant on one seed, its rows over all workers.

    `count` is told the flops as they end.
    """
    p, make, summed = (
        plan.problem,
        partial(SpectrumRun, plan, place),
        partial(cluster.summed, count),
    )
    each = 2 * (1 + residual_basis(plan.cost.group.levels)) * p.width * p.d
    gradient = summed(p.n_step, each, gradient_part, make)
    futures = {}
    for variant in plan.draws.variants:
        where = (make, variant, gradient)
        if variant.name in OF_WEIGHTS:
            futures[variant.name] = cluster.submit(_whole, *where)
            continue
        sums = summed(p.n, 2 * p.width * p.d, _gram_part, *where)
        futures[variant.name] = cluster.submit(_from_sums, *where, sums)
    out = {name: cast("MatrixSpectrum", cluster.result(future)) for name, future in futures.items()}
    count(sum(found.flops for found in out.values()))
    return out


def _whole(make: Make, variant: Variant, gradient: Arrays) -> MatrixSpectrum:
    run = make()
    return run.find(variant, weights_after(run, gradient))


def _gram_part(make: Make, variant: Variant, gradient: Arrays, rows: Range) -> Arrays:
    run = make()
    matrix = run.feature_matrix(run.plan.key(variant), weights_after(run, gradient), rows)
    overlaps = VectorOverlaps(run.backend, matrix)
    gram = gram_of(run.backend, matrix, overlaps)
    return [run.backend.get(gram), *overlaps.parts()]


def _from_sums(make: Make, variant: Variant, gradient: Arrays, sums: Arrays) -> MatrixSpectrum:
    run = make()
    matrix = run.feature_matrix(run.plan.key(variant), weights_after(run, gradient))
    overlaps = VectorOverlaps(run.backend, matrix)
    gram, *rest = (np.array(part) for part in sums)
    overlaps.take(rest)
    return from_gram(run.backend, matrix, run.backend.solver.put(gram), overlaps, run.plan.top)
