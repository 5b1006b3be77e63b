"""The verb: singular values of the real network's features and weights (theory, section 5).

One draw: take the step, and find the spectrum of every variant, one after the other. On a cluster
the Gram matrix of the features is a sum over rows, which workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, over_grid, verb
from ...core.spiked import Border
from ...core.types import FloatArray
from ..backend import Array
from ..cluster import Arrays, Cluster, Range, connected
from ..network.by_rows import gradient_part, weights_after
from ..network.experiment import (
    SEEDS,
    Estimate,
    GroupTask,
    Runner,
    checked_progress,
    make_draws,
)
from ..network.plan import costed, make_resources
from ..network.run import TRAIN, Count, GroupRun, Weights, uncounted
from ..network.step import FeatureKey, Variant, residual_basis
from ..setting import Setting
from .krylov import krylov_spectrum
from .plan import KNOWN, OF_WEIGHTS, WEIGHTS, SpectrumPlan, make_plan
from .result import DEGREES, POWERS, SimulatedSpectrum
from .singular import (
    MatrixSpectrum,
    RowBlock,
    RowMatrix,
    VectorOverlaps,
    dense_spectrum,
    from_gram,
    gram_of,
)


@verb(KNOWN)
def simulated_spectrum(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    border: Border | Mapping[str, Border] | None = None,
    top: int = 10,
    method: str = "auto",
    max_memory: float | None = None,
    block_rows: int | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    streams: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    scheduler: Any = None,
) -> SimulatedSpectrum | GridResult:
    """Eigenvalues of FᵀF/n, the largest singular values, and what their vectors carry.

    For one problem, or at every point of a grid, where `progress` is told points.

    The step is exact, and a seed is the network that `simulate` trains with that seed.

    seeds
        How many draws, or their seeds.
    variants
        Any of the feature maps of `simulate`, and `weights` (W after the step) and
        `initial_weights` (W0), all on the same draw.
    setting
        Inputs, labels and steps outside the theory's assumptions.
    border
        Where the bulk ends and spikes begin, `spectrum(problem).border`: one for all features, or
        one for each variant by name. With it the result has `spikes`.
    top
        How many of the largest singular values get overlaps.
    method
        `dense`: every eigenvalue, from the Gram matrix on the smaller side. `krylov`: the largest
        and a density, without the Gram matrix. `auto`: dense where it fits the memory and either
        side is at most 6000 or it takes less work; else krylov.
    max_memory
        Bytes the run may take; what cannot fit is refused before anything is allocated.
    block_rows
        Rows of a sample in memory at a time (rounded up to 64); results do not depend on it.
    dtype, device, drawn
        As for `simulate`.
    streams
        Seeds that pin streams, as for `simulate`; `probes` are the Krylov route's.
    progress
        Called with the flops done and those of the whole run (at most, for krylov).
    scheduler
        As for `simulate`: workers share the seeds, or where seeds are fewer than workers, the
        rows of each seed's Gram matrix (method `dense`).
    """
    draws = make_draws(
        seeds=seeds, variants=variants, setting=setting, streams=streams, beside=OF_WEIGHTS
    )
    resources = make_resources(
        dtype=dtype, device=device, drawn=drawn, max_memory=max_memory, block_rows=block_rows
    )
    told = checked_progress(progress)

    def one(point: Problem, told: Progress | None = None) -> SimulatedSpectrum:
        plan = make_plan(point, draws, resources, border=border, top=top, method=method)
        return SpectrumRunner(plan, told).run(cluster)

    with connected(scheduler) as cluster:
        if isinstance(problem, Grid):
            return over_grid(SimulatedSpectrum, problem, one, told)
        return one(problem, told)


def estimate_spectrum(
    problem: Problem,
    *,
    seeds: int | Iterable[int] = SEEDS,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    top: int = 10,
    method: str = "auto",
    max_memory: float | None = None,
    block_rows: int | None = None,
    dtype: str = "float64",
    device: str = "cpu",
) -> Estimate:
    """Peak memory and flops of `simulated_spectrum` with the same arguments, before it runs.

    Both are upper bounds for the Krylov route, whose number of steps shows only on the way.
    """
    draws = make_draws(seeds=seeds, variants=variants, setting=setting, beside=OF_WEIGHTS)
    resources = make_resources(
        dtype=dtype, device=device, max_memory=max_memory, block_rows=block_rows
    )
    plan = partial(make_plan, problem, draws, border=None, top=top, method=method)
    return costed(plan, resources).estimate


Spectra = dict[str, MatrixSpectrum]  # by variant


class SpectrumRunner(Runner[SpectrumPlan, Spectra, SimulatedSpectrum]):
    """Finds the spectra of every seed."""

    def __init__(self, plan: SpectrumPlan, progress: Progress | None) -> None:
        super().__init__(plan, progress)
        self.found: dict[int, Spectra] = {}  # by the place of the seed

    @staticmethod
    def execute(plan: SpectrumPlan, task: GroupTask, count: Count) -> Spectra:
        """What is found for each variant on one seed."""
        return SpectrumRun(plan, task[1].start, count).spectra()

    def shares_rows(self, index: int) -> bool:
        return shares_rows(self.experiment)

    def execute_by_rows(self, cluster: Cluster, task: GroupTask) -> Spectra:
        return found_by_rows(cluster, self.experiment, task[1].start, self.count)

    def place(self, task: GroupTask, outcome: Spectra) -> None:
        self.found[task[1].start] = outcome

    def result(self, wall_time: float, where: Mapping[str, str]) -> SimulatedSpectrum:
        """All spectra, in the order of the seeds."""
        plan, routes = self.experiment, self.experiment.cost.routes.items()
        names = tuple(variant.name for variant in plan.draws.variants)
        method = "; ".join(f"{name}: {route}" for name, route in routes)
        return SimulatedSpectrum(
            problem=plan.problem,
            setting=plan.draws.setting,
            variants=names,
            seeds=plan.draws.seeds,
            top=plan.top,
            methods={name: route.method for name, route in routes},
            borders=plan.borders,
            found={
                name: tuple(self.found[place][name] for place in sorted(self.found))
                for name in names
            },
            wall_time=wall_time,
            flops=self.done,
            record={**plan.resources.record(), "method": method, **where},
        )


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


MakeSpectrumRun = Callable[[], SpectrumRun]  # what is sent to a worker: a run is made where it runs


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


def _whole(make: MakeSpectrumRun, variant: Variant, gradient: Arrays) -> MatrixSpectrum:
    run = make()
    return run.find(variant, weights_after(run, gradient))


def _gram_part(make: MakeSpectrumRun, variant: Variant, gradient: Arrays, rows: Range) -> Arrays:
    run = make()
    matrix = run.feature_matrix(run.plan.key(variant), weights_after(run, gradient), rows)
    overlaps = VectorOverlaps(run.backend, matrix)
    gram = gram_of(run.backend, matrix, overlaps)
    return [run.backend.get(gram), *overlaps.parts()]


def _from_sums(
    make: MakeSpectrumRun, variant: Variant, gradient: Arrays, sums: Arrays
) -> MatrixSpectrum:
    run = make()
    matrix = run.feature_matrix(run.plan.key(variant), weights_after(run, gradient))
    overlaps = VectorOverlaps(run.backend, matrix)
    gram, *rest = (np.array(part) for part in sums)
    overlaps.take(rest)
    return from_gram(run.backend, matrix, run.backend.solver.put(gram), overlaps, run.plan.top)
