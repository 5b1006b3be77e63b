"""The verb: run the real network, exactly, for every point of a grid and every seed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import numpy as np

from ...grid import Grid
from ...problem import Problem
from ...types import FloatArray
from ..arguments import Progress, checked_progress, make_draws, make_resources
from ..draws.draw import Draw
from ..draws.setting import Setting
from ..draws.streams import Streams
from .experiment import Estimate, Experiment, make_experiment
from .plan import Group
from .result import QUANTITIES, Simulation
from .run import GroupRun, Outcome


def simulate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = 8,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    max_memory: float | None = None,
    block_rows: int | None = None,
    streams: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Train and test the network of a problem, or of every point of a grid (theory, section 1).

    seeds
        How many draws, or their seeds. Points of a grid see the same draws.
    n_test
        Test inputs; by default twice the largest n, between 4000 and 20,000.
    variants
        Feature maps, on the same draw: `trained`, `initial`, `spiked:ℓ`, `gaussian`,
        `gaussian+spiked:ℓ`, `srf`.
    setting
        Inputs, labels and steps outside the theory's assumptions.
    device
        `cpu`, `cuda` (through torch) or `torch` (torch on the CPU).
    max_memory
        Bytes the run may take; what cannot fit is refused before anything is allocated.
    block_rows
        Rows of a sample in memory at a time (rounded up to 64); results do not depend on it.
    streams
        Seeds that pin streams (`data`, `initialisation`, `readout`, `noise`, `test`, `teacher`,
        `equivalent`) while the others follow `seeds`.
    progress
        Called with the flops done and the flops of the whole run.
    """
    draws = make_draws(seeds=seeds, variants=variants, setting=setting, streams=streams)
    resources = make_resources(
        dtype=dtype, device=device, max_memory=max_memory, block_rows=block_rows
    )
    experiment = make_experiment(problem, draws, resources, n_test=n_test)
    return _Runner(experiment, checked_progress(progress)).run()


def estimate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = 8,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    max_memory: float | None = None,
    block_rows: int | None = None,
) -> Estimate:
    """Peak memory and flops of `simulate` with the same arguments, before it runs."""
    draws = make_draws(seeds=seeds, variants=variants, setting=setting)
    resources = make_resources(dtype=dtype, max_memory=max_memory, block_rows=block_rows)
    return make_experiment(problem, draws, resources, n_test=n_test).estimate


class _Runner:
    """Runs the groups of an experiment and puts their numbers in place."""

    def __init__(self, experiment: Experiment, progress: Progress | None) -> None:
        self.experiment = experiment
        self.progress = progress
        self.total = experiment.estimate.flops
        self.done = 0
        draws = experiment.draws
        points, seeds = len(experiment.problems), len(draws.seeds)
        steps = len(draws.setting.multiples)
        shape = (len(draws.variants), points, seeds)
        self.values: dict[str, FloatArray] = {name: np.empty(shape) for name in QUANTITIES}
        if any(variant.base == "trained" for variant in draws.variants):
            for name in ("cosine", "energy"):
                self.values[name] = np.zeros((points, seeds, steps))

    def run(self) -> Simulation:
        started = time.perf_counter()
        draws = self.experiment.draws
        for number, seed in enumerate(draws.seeds):
            for index in range(len(self.experiment.groups)):
                self._run_group(index, number, Streams(seed, draws.streams))
        return self._result(time.perf_counter() - started)

    def _run_group(self, index: int, number: int, streams: Streams) -> None:
        e, setting = self.experiment, self.experiment.draws.setting
        group, cost = e.groups[index]
        draw = Draw(group.problem, setting, streams, e.resources.backend, e.n_test)
        outcome = GroupRun(group, draw, setting, cost, self._count).execute()
        self._place(group, outcome, number)

    def _count(self, flops: int) -> None:
        self.done += flops
        if self.progress is not None:
            self.progress(self.done, self.total)

    def _place(self, group: Group, outcome: Outcome, seed: int) -> None:
        for key, found in outcome.solutions.items():
            for solution in found:
                numbers = {name: getattr(solution, name) for name in QUANTITIES[1:]}
                numbers["test_error"] = outcome.test_error[key, solution.fit]
                for variant, point in group.fits[key][solution.fit]:
                    for name, number in numbers.items():
                        self.values[name][variant, point, seed] = number
                    moved = outcome.alignment.get((key.eta, key.noise))
                    if key.base == "trained" and moved is not None:
                        self.values["cosine"][point, seed] = [step.cosine for step in moved]
                        self.values["energy"][point, seed] = [step.energy for step in moved]

    def _result(self, wall_time: float) -> Simulation:
        e, draws = self.experiment, self.experiment.draws
        shape = e.problem.shape if isinstance(e.problem, Grid) else ()
        variants, points, seeds = len(draws.variants), len(e.problems), len(draws.seeds)
        shaped = {}
        for name, array in self.values.items():
            lead, rest = ((variants,), (seeds,)) if name in QUANTITIES else ((), array.shape[1:])
            shaped[name] = array.reshape(*lead, *shape, *rest)
        assert points == np.prod(shape, dtype=int)
        return Simulation(
            problem=e.problem,
            setting=draws.setting,
            variants=tuple(variant.name for variant in draws.variants),
            seeds=draws.seeds,
            values=shaped,
            wall_time=wall_time,
            flops=self.done,
            record={**e.resources.record(), "n_test": str(e.n_test)},
        )
