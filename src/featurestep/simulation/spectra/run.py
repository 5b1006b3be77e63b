"""One draw: take the step, and find the spectrum of every variant, one after the other.

On a cluster the Gram matrix of the features is a sum over rows, which workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import numpy as np

from ...core.types import FloatArray
from ..arrays.backend import Array
from ..cluster import Arrays, Cluster, Range
from ..network.by_rows import gradient_part, weights_after
from ..network.run import TRAIN, Count, GroupRun, Weights, uncounted
from ..network.step import FeatureKey, Variant, residual_basis
from .krylov import krylov_spectrum
from .plan import OF_WEIGHTS, WEIGHTS, SpectrumPlan
from .singular import (
    MatrixSpectrum,
    RowBlock,
    RowMatrix,
    VectorOverlaps,
    dense_spectrum,
    from_gram,
    gram_of,
)

DEGREES = tuple(range(7))  # H_0(κ) … H_6(κ)
POWERS = tuple(range(1, 7))  # κ … κ⁶


class SpectrumRun(GroupRun):
    """Runs a plan on one of its seeds; `count` is told the flops as they are done."""

    def __init__(self, plan: SpectrumPlan, place: int, count: Count = uncounted) -> None:
        super().__init__(plan.cost, plan.draw(0, slice(place, place + 1)), count)
        self.plan = plan

    def spectra(self) -> dict[str, MatrixSpectrum]:
        """What is found for each variant."""
        weights = self.weights()
        return {v.name: self.find(v, weights) for v in self.plan.draws.variants}

    def _direction(self, weights: Weights) -> FloatArray:
        """β/‖β‖, with β = X0ᵀr/n0 of this draw (theory, section 2), also when η is 0."""
        noise = self.plan.problem.noise_std
        if noise not in weights.beta:
            step = self.gradient(weights.matrices[0], self.draw.step_sample(0), (noise,))
            weights.beta[noise] = step.beta[0]
        beta = self.backend.get(weights.beta[noise])[0]
        return np.asarray(beta / np.sqrt(beta @ beta))

    def find(self, variant: Variant, weights: Weights) -> MatrixSpectrum:
        """What is found for one variant, from weights that took their step here or elsewhere."""
        beta, route = self._direction(weights), self.plan.cost.routes[variant.name]
        if variant.name in OF_WEIGHTS:
            matrix = self._weight_matrix(variant, weights, beta)
        else:
            matrix = self.feature_matrix(self.plan.key(variant), weights)
        if route.method == "dense":
            found = dense_spectrum(self.backend, matrix, self.plan.top)
        else:
            streams = self.draw.streams
            found = krylov_spectrum(self.backend, matrix, self.plan.top, streams, keep=route.keep)
        self.count(found.flops)
        return found

    def _weight_matrix(self, variant: Variant, weights: Weights, beta: FloatArray) -> RowMatrix:
        """W (N × d): left vectors beside a, right vectors beside β and the target's directions."""
        W = self._weights(variant, weights)
        step = self.cost.rows
        a = self.draw.readout[:, None]

        def blocks() -> Iterator[RowBlock]:
            for start in range(0, len(W), step):
                yield RowBlock(start, W[start : start + step], a[start : start + step])

        directions = np.concatenate([beta[None, :], self.draw.unit_directions])
        return RowMatrix(len(W), W.shape[1], 1.0, 1, directions, blocks, whole=W)

    def _weights(self, variant: Variant, weights: Weights) -> Array:
        key = self.plan.key(variant)
        if variant.name == WEIGHTS and key.base == "trained":
            return _only(weights, key).matrices[0]
        if self.group.moves and not self.group.initial_needed:
            return self.draw.initial_weights()
        return weights.matrices[0]

    def feature_matrix(
        self, key: FeatureKey, weights: Weights, rows: tuple[int, int] | None = None
    ) -> RowMatrix:
        """F (n × N), or some of its rows: left vectors beside H_k(κ) and κ^k, κ = x·β/‖β‖."""
        problem = self.plan.problem
        alone = _only(weights, key)
        length = float(np.linalg.norm(self.backend.get(weights.beta[problem.noise_std])))

        def blocks() -> Iterator[RowBlock]:
            sample = self.draw.readout_sample(problem.n)
            if rows is not None:
                sample = sample.within(rows)
            for projected in self.blocks(alone, sample, TRAIN):
                F = self.features(key, projected)
                kappa = self.backend.get(projected.kappa[problem.noise_std])[:, 0] / length
                yield RowBlock(projected.start, F, functions_of(kappa))

        none = np.empty((0, problem.width))
        count = len(DEGREES) + len(POWERS)
        return RowMatrix(problem.n, problem.width, float(problem.n), count, none, blocks)


def functions_of(kappa: FloatArray) -> FloatArray:
    """Columns H_0(κ) … H_6(κ) (probabilists'), κ … κ⁶; none is centred."""
    hermite = np.polynomial.hermite_e.hermevander(kappa, DEGREES[-1])
    return np.concatenate([hermite, kappa[:, None] ** np.array(POWERS)], axis=1)


def _only(weights: Weights, key: FeatureKey) -> Weights:
    """What these features need of the weights: one matrix, W or W0, and β."""
    if key.base != "trained":
        return Weights([weights.matrices[0]], beta=weights.beta)
    ((index, _),) = weights.terms[key.move]  # one step size: W is a matrix of its own
    return Weights([weights.matrices[index]], {key.move: ((0, 1.0),)}, weights.beta)


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
