"""One network's Gram matrix summed over machines, for all eigenvalues of its features."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from ..cluster import PARTS_A_WORKER, Cluster, row_ranges
from ..draws.streams import CHUNK
from ..network.by_rows import Arrays, Range, added, first_of, gradient_part, uncounted
from ..network.experiment import Experiment
from ..network.step import residual_basis
from ..network.variants import Variant
from ..network.weights import Weights
from .plan import OF_WEIGHTS, SpectrumPlan
from .row_matrix import VectorOverlaps
from .run import SpectrumRun
from .singular import Found, from_gram, gram_of


def shares_rows(plan: SpectrumPlan) -> bool:
    """Whether features are n ≥ N and their Gram matrix is formed, after one step."""
    p, routes = plan.problem, plan.cost.routes
    features = [v.name for v in plan.draws.variants if v.name not in OF_WEIGHTS]
    dense = all(routes[name].method == "dense" for name in features)
    one_step = plan.group.steps_needed and len(plan.draws.setting.multiples) == 1
    return bool(features) and dense and one_step and p.n >= p.width


class SpectrumShares:
    """One seed, its rows over all workers; `count` is told the flops as they end."""

    def __init__(
        self, cluster: Cluster, plan: SpectrumPlan, seed: int, count: Callable[[int], None]
    ) -> None:
        self.cluster, self.plan, self.seed, self.count = cluster, plan, seed, count

    def found(self) -> dict[str, Found]:
        """What is found for each variant."""
        plan, p, place = self.plan, self.plan.problem, self.plan.draws.seeds.index(self.seed)
        products = 1 + residual_basis(plan.group.levels)
        experiment = _experiment(plan)
        ranges = self._ranges(p.n_step)
        gradient = self.cluster.total(
            [self.cluster.submit(gradient_part, experiment, 0, place, r) for r in ranges],
            added,
            lambda i: self.count(2 * products * p.width * p.d * _length(ranges[i])),
        )
        futures = {}
        for variant in plan.draws.variants:
            where = (plan, self.seed, variant, gradient)
            if variant.name in OF_WEIGHTS:
                futures[variant.name] = self.cluster.submit(_whole, *where)
                continue
            rows = self._ranges(p.n)
            sums = self.cluster.total(
                [self.cluster.submit(_gram_part, *where, r) for r in rows],
                added,
                lambda i, rows=rows: self.count(2 * p.width * p.d * _length(rows[i])),  # type: ignore[misc]
            )
            futures[variant.name] = self.cluster.submit(_from_sums, *where, sums)
        out = {name: cast("Found", self.cluster.result(f)) for name, f in futures.items()}
        self.count(sum(found.flops for found in out.values()))
        return out

    def _ranges(self, rows: int) -> list[Range]:
        return row_ranges(rows, PARTS_A_WORKER * self.cluster.workers, CHUNK)


def _length(rows: Range) -> int:
    return rows[1] - rows[0]


def _experiment(plan: SpectrumPlan) -> Experiment:
    """The step of a plan, as the network's own modules know it."""
    cost = SpectrumRun(plan, plan.draws.seeds[0], uncounted).run.cost
    groups = ((plan.group, cost),)
    return Experiment(plan.problem, (plan.problem,), plan.draws, plan.resources, 1, groups)


def _prepared(plan: SpectrumPlan, seed: int, gradient: Arrays) -> tuple[SpectrumRun, Weights]:
    one = SpectrumRun(plan, seed, uncounted)
    trainer = one.run.trainer(one.run.row_buffers())
    return one, trainer.stepped(one.draw.initial_weights(), first_of(one.backend, gradient))


def _whole(plan: SpectrumPlan, seed: int, variant: Variant, gradient: Arrays) -> Found:
    one, weights = _prepared(plan, seed, gradient)
    return one.find(variant, weights, one.run.row_buffers())


def _gram_part(
    plan: SpectrumPlan, seed: int, variant: Variant, gradient: Arrays, rows: Range
) -> Arrays:
    one, weights = _prepared(plan, seed, gradient)
    matrix = one.feature_matrix(plan.key(variant), weights, one.run.row_buffers(), rows)
    overlaps = VectorOverlaps(one.backend, matrix)
    gram = gram_of(one.backend, matrix, overlaps)
    return [one.backend.get(gram), *overlaps.parts()]


def _from_sums(
    plan: SpectrumPlan, seed: int, variant: Variant, gradient: Arrays, sums: Arrays
) -> Found:
    one, weights = _prepared(plan, seed, gradient)
    matrix = one.feature_matrix(plan.key(variant), weights, [])
    overlaps = VectorOverlaps(one.backend, matrix)
    gram, *rest = (np.array(part) for part in sums)
    overlaps.take(rest)
    return from_gram(one.backend, matrix, one.backend.solver.put(gram), overlaps, plan.top)
