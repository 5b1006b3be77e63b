"""Sweeps: overhead of a unit, two workers against one, and a large sweep of predictions."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from featurestep.core.problem import Problem
from featurestep.sweeps import TASKS, sweep

from .idle_task import Idle

UNITS = 1000
BASE = Problem(n=600, d=300, width=400, ridge=0.01, noise_std=0.1, step_exponent=0.3)
SEEDS = 128
POINTS = (100, 1000)  # ridges, step exponents


def timed(source: object, **arguments: object) -> float:
    """Seconds of a sweep into a new store on disk: plan, workers' start and dataset included."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = sweep(source, store=Path(folder, "s.sqlite"), **arguments)  # type: ignore[arg-type]
        taken = time.perf_counter() - started
    for name in found.data_vars:
        if str(name).endswith("_status"):
            assert set(found[name].values.flat) == {"ok"}
    return taken


def overhead() -> None:
    """Units that do nothing, each a job and a transaction of its own."""
    grid = BASE.vary(ridge=[float(v) for v in np.geomspace(1e-3, 1.0, UNITS)])
    timed(BASE, tasks=["idle"], engine="serial")  # loads xarray
    for engine, workers in (("serial", None), ("processes", 2)):
        taken = timed(grid, tasks=["idle"], engine=engine, workers=workers)
        each = 1e3 * taken / UNITS
        print(f"{UNITS} idle units, {engine:9s} {taken:8.2f} s   {each:6.2f} ms a unit   (goal 2)")


def two_workers(rounds: int = 3) -> None:
    """Alternating runs, so that a busy moment of the machine meets both; the median ratio."""
    tasks = {"simulate": {"seeds": SEEDS}}
    ratios, times = [], []
    for _ in range(rounds):
        one, two = (timed(BASE, tasks=tasks, engine="processes", workers=k) for k in (1, 2))
        ratios.append(one / two)
        times.append((one, two))
    one, two = np.median(times, axis=0)
    print(
        f"{SEEDS} simulations     one worker {one:6.2f} s   two {two:6.2f} s   "
        f"ratio {statistics.median(ratios):5.2f}   (goal 1.8; best {max(ratios):.2f})"
    )


def many_predictions() -> None:
    """The readout law is constant: one group of neurons."""
    ridges, exponents = POINTS
    grid = BASE.replace(n=2000, d=1000, width=1500, readout="constant").vary(
        ridge=[float(v) for v in np.geomspace(1e-4, 10.0, ridges)],
        step_exponent=[float(v) for v in np.linspace(0.0, 0.5, exponents)],
    )
    taken = timed(grid, tasks=["predict"], engine="processes", workers=2)
    rate = len(grid) / taken
    print(f"{len(grid)} predictions {taken:6.2f} s   {rate:.0f} points a second   (goal 30 s)")


def main() -> None:
    TASKS["idle"] = Idle
    print("sweep: store on disk, workers' start included")
    overhead()
    two_workers()
    many_predictions()


if __name__ == "__main__":
    main()
