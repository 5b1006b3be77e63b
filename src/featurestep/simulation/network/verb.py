"""The verb: run the real network, exactly, for every point of a grid and every seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ...core.grid import Grid
from ...core.problem import Problem
from ...core.results import Progress
from ..arguments import SEEDS, checked_progress, costed, make_draws, make_resources
from ..cluster import connected
from ..draws.setting import Setting
from .experiment import Estimate, make_experiment
from .result import Simulation
from .runner import Runner


def simulate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
    streams: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    scheduler: Any = None,
) -> Simulation:
    """Train and test the network of a problem, or of every point of a grid (theory, section 1).

    With another loss than the square the readout is fitted by Newton's method, to a gradient of
    1e-9 of that at 0, or, for the hinge, to a relative duality gap of 1e-8.

    seeds
        How many draws, or their seeds. Points of a grid see the same draws.
    n_test
        Test inputs; by default twice the largest n, between 4000 and 20,000.
    variants
        Feature maps, on the same draw: `trained`, `initial`, `spiked:ℓ`, `gaussian`,
        `gaussian+spiked:ℓ`, `srf`.
    setting
        Inputs, labels and steps outside the theory's assumptions.
    dtype
        `float64`; `float32` (for the square loss); or `mixed`: features in float32, Gram matrices,
        solves and tests in float64. What is not float64 says in `record["precision"]` how far its
        first draw is from the same draw in float64.
    device
        `cpu`, `cuda` (through torch) or `torch` (torch on the CPU).
    drawn
        Where random numbers are made: `host` (a seed is the same network on every device) or
        `device` (fast on a GPU; a seed is the same network on every torch device). By default
        `device` on cuda, else `host`.
    max_memory
        Bytes the run may take; what cannot fit is refused before anything is allocated.
    block_rows
        Rows of a sample in memory at a time (rounded up to 64); results do not depend on it.
    streams
        Seeds that pin streams (`data`, `initialisation`, `readout`, `noise`, `test`, `teacher`,
        `equivalent`, `flips`) while the others follow `seeds`.
    progress
        Called with the flops done and the flops of the whole run.
    scheduler
        Address of a Dask scheduler, the file it wrote, or a client: its workers share the draws,
        or where draws are fewer than workers, the rows of each.
    """
    draws = make_draws(seeds=seeds, variants=variants, setting=setting, streams=streams)
    resources = make_resources(
        dtype=dtype, device=device, drawn=drawn, max_memory=max_memory, block_rows=block_rows
    )
    experiment = make_experiment(problem, draws, resources, n_test=n_test)
    runner = Runner(experiment, checked_progress(progress))
    with connected(scheduler) as cluster:
        return runner.run(cluster)


def estimate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
) -> Estimate:
    """Peak memory and flops of `simulate` with the same arguments, before it runs."""
    draws = make_draws(seeds=seeds, variants=variants, setting=setting)
    resources = make_resources(
        dtype=dtype, device=device, drawn=drawn, max_memory=max_memory, block_rows=block_rows
    )
    make = partial(make_experiment, problem, draws, n_test=n_test)
    return costed(make, resources).estimate
