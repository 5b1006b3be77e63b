"""The verb: singular values of the real network's features and weights (theory, section 5)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ...core.borders import Border
from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, over_grid, verb
from ..arguments import SEEDS, checked_progress, costed, make_draws, make_resources
from ..cluster import Cluster, connected
from ..draws.setting import Setting
from ..network.experiment import Estimate
from .by_rows import found_by_rows, shares_rows
from .plan import KNOWN, OF_WEIGHTS, SpectrumPlan, make_plan
from .result import SimulatedSpectrum
from .run import SpectrumRun
from .singular import MatrixSpectrum


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
        return _Runner(plan, told).run(cluster)

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


class _Runner:
    """Runs every seed of a plan."""

    def __init__(self, plan: SpectrumPlan, progress: Progress | None) -> None:
        self.plan = plan
        self.progress = progress
        self.total = plan.estimate.flops
        self.done = 0
        self.saved = 0  # promised, and not needed
        self.seeds = 0
        self.found: dict[str, list[MatrixSpectrum]] = {
            variant.name: [] for variant in plan.draws.variants
        }

    def run(self, cluster: Cluster | None) -> SimulatedSpectrum:
        """One seed after the other, or on a cluster."""
        started, where = time.perf_counter(), dict[str, str]()
        if cluster is not None:
            where = self._share(cluster)
        else:
            for place in range(len(self.plan.draws.seeds)):
                self._put(SpectrumRun(self.plan, place, self._count).spectra())
        return self._result(time.perf_counter() - started, where)

    def _share(self, cluster: Cluster) -> dict[str, str]:
        """Seeds to workers, or one seed's rows where seeds are few; the record of it."""
        plan, places = self.plan, range(len(self.plan.draws.seeds))
        by_rows = len(places) < cluster.workers and shares_rows(plan)
        if by_rows:
            for place in places:
                self._put(found_by_rows(cluster, plan, place, self._count))
        else:
            futures = [cluster.submit(_one_seed, plan, place) for place in places]
            for future in cluster.ended(futures):
                self._count(cluster.result(future)[1])
            for future in futures:
                self._put(cluster.result(future)[0])
        return cluster.record("rows" if by_rows else "draws")

    def _put(self, found: Mapping[str, MatrixSpectrum]) -> None:
        """What one more seed gave."""
        for name, one in found.items():
            self.found[name].append(one)
        self.seeds += 1
        self.saved = max(0, self.seeds * self.plan.cost.flops - self.done)
        self._count(0)

    def _result(self, wall_time: float, where: Mapping[str, str]) -> SimulatedSpectrum:
        plan, routes = self.plan, self.plan.cost.routes.items()
        method = "; ".join(f"{name}: {route}" for name, route in routes)
        return SimulatedSpectrum(
            problem=plan.problem,
            setting=plan.draws.setting,
            variants=tuple(self.found),
            seeds=plan.draws.seeds,
            top=plan.top,
            methods={name: route.method for name, route in routes},
            borders=plan.borders,
            found={name: tuple(each) for name, each in self.found.items()},
            wall_time=wall_time,
            flops=self.done,
            record={**plan.resources.record(), "method": method, **where},
        )

    def _count(self, flops: int) -> None:
        self.done += flops
        if self.progress is not None:
            self.progress(self.done + self.saved, self.total)


def _one_seed(plan: SpectrumPlan, place: int) -> tuple[dict[str, MatrixSpectrum], int]:
    """What a seed gives on a worker, and the flops it took."""
    done: list[int] = []
    return SpectrumRun(plan, place, done.append).spectra(), sum(done)
