"""The verb: run the real network, exactly, for every point of a grid and every seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..errors import InvalidProblem
from ..grid import Grid
from ..problem import Problem
from ..quadrature import FloatArray
from .draw import Draw
from .experiment import Estimate, Experiment, make_experiment
from .plan import Group
from .result import QUANTITIES, Simulation
from .run import GroupRun, Outcome
from .setting import Setting
from .streams import Streams

Progress = Callable[[int, int], None]


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
    experiment = make_experiment(
        problem,
        seeds=seeds,
        n_test=n_test,
        variants=variants,
        setting=setting,
        dtype=dtype,
        device=device,
        max_memory=max_memory,
        block_rows=block_rows,
        streams=streams,
    )
    if progress is not None and not callable(progress):
        raise InvalidProblem("progress", "must be callable", progress)
    return _Runner(experiment, progress).run()


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
    return make_experiment(
        problem,
        seeds=seeds,
        n_test=n_test,
        variants=variants,
        setting=setting,
        dtype=dtype,
        device="cpu",
        max_memory=max_memory,
        block_rows=block_rows,
        streams=None,
    ).estimate


class _Runner:
    """Runs the groups of an experiment and puts their numbers in place."""

    def __init__(self, experiment: Experiment, progress: Progress | None) -> None:
        self.experiment = experiment
        self.progress = progress
        self.total = experiment.estimate.flops
        self.done = 0
        points, seeds = len(experiment.problems), len(experiment.seeds)
        steps = len(experiment.setting.multiples)
        shape = (len(experiment.variants), points, seeds)
        self.values: dict[str, FloatArray] = {name: np.empty(shape) for name in QUANTITIES}
        if any(variant.base == "trained" for variant in experiment.variants):
            for name in ("cosine", "energy"):
                self.values[name] = np.zeros((points, seeds, steps))

    def run(self) -> Simulation:
        started = time.perf_counter()
        for number, seed in enumerate(self.experiment.seeds):
            for index in range(len(self.experiment.groups)):
                self._run_group(index, number, Streams(seed, self.experiment.streams))
        return self._result(time.perf_counter() - started)

    def _run_group(self, index: int, number: int, streams: Streams) -> None:
        e = self.experiment
        group, cost = e.groups[index]
        draw = Draw(group.problem, e.setting, streams, e.backend, e.n_test)
        outcome = GroupRun(group, draw, e.setting, cost, self._count).execute()
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
        e = self.experiment
        shape = e.problem.shape if isinstance(e.problem, Grid) else ()
        variants, points, seeds = len(e.variants), len(e.problems), len(e.seeds)
        shaped = {}
        for name, array in self.values.items():
            lead, rest = ((variants,), (seeds,)) if name in QUANTITIES else ((), array.shape[1:])
            shaped[name] = array.reshape(*lead, *shape, *rest)
        assert points == np.prod(shape, dtype=int)
        record = {
            **e.backend.describe(),
            "dtype": e.backend.dtype,
            "device": e.backend.name,
            "n_test": str(e.n_test),
        }
        names = tuple(variant.name for variant in e.variants)
        return Simulation(
            e.problem, e.setting, names, e.seeds, shaped, wall_time, self.done, record
        )
