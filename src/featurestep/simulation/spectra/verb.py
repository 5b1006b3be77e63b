"""The verb: singular values of the real network's features and weights (theory, section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ...core.borders import Border
from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, over_grid, verb
from ..arguments import SEEDS, checked_progress, costed, make_draws, make_resources
from ..cluster import Cluster, connected
from ..draws.setting import Setting
from ..network.experiment import Estimate, Runner, Task
from ..network.run import Count
from .plan import KNOWN, OF_WEIGHTS, SpectrumPlan, make_plan
from .result import SimulatedSpectrum
from .run import SpectrumRun, found_by_rows, shares_rows
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
    def execute(plan: SpectrumPlan, task: Task, count: Count) -> Spectra:
        """What is found for each variant on one seed."""
        return SpectrumRun(plan, task[1].start, count).spectra()

    def shares_rows(self, index: int) -> bool:
        return shares_rows(self.experiment)

    def execute_by_rows(self, cluster: Cluster, task: Task) -> Spectra:
        return found_by_rows(cluster, self.experiment, task[1].start, self.count)

    def place(self, task: Task, outcome: Spectra) -> None:
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
