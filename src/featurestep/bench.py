"""How fast the simulation runs here: a table of cases against the machine's own product rate."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .core.grid import Grid
from .core.problem import Problem
from .simulation import Backend, make_backend, simulate, simulated_spectrum

STEP_SIZES = tuple(float(v) for v in np.geomspace(0.5, 20.0, 6))
RIDGES = tuple(float(v) for v in np.geomspace(1e-3, 1.0, 6))
N_TEST = 20_000
PRODUCT_SIDE = {"cuda": 8192, "cpu": 1024, "torch": 1024}  # of the matrices whose product is timed


def proportional(n: int, **changes: Any) -> Problem:
    """d = n/2 inputs and 3n/4 neurons."""
    sizes = {"n": n, "d": n // 2, "width": 3 * n // 4}
    return Problem(**{**sizes, "ridge": 0.01, "noise_std": 0.1, "step_size": 3.0, **changes})


def grid_of(n: int) -> Grid:
    """Six steps by six ridges."""
    return proportional(n).vary(step_size=list(STEP_SIZES), ridge=list(RIDGES))


@dataclass(frozen=True)
class TimedCase:
    """Something to time."""

    name: str
    problem: Problem | Grid
    seeds: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    spectrum: bool = False


def cases(device: str) -> Iterator[TimedCase]:
    """What is timed on a device, from small to large."""
    small = device != "cuda"
    sizes = (500, 1000, 2000) if small else (4000, 8000, 16_000, 40_000)
    for n in sizes:
        yield TimedCase(f"6 × 6 grid, n = {n}", grid_of(n))
    for dtype in ("float32", "mixed"):
        n = 1000 if small else 16_000
        yield TimedCase(f"6 × 6 grid, n = {n}, {dtype}", grid_of(n), options={"dtype": dtype})
    draws, n = (20, 200) if small else (1000, 1000)
    yield TimedCase(
        f"{draws} draws, n = {n}", proportional(n), seeds=draws, options={"n_test": 4000}
    )
    long = (20_000, 200, 300) if small else (400_000, 10_000, 20_000)
    n, d, width = long
    yield TimedCase(f"n = {n}, width = {width}, in blocks", proportional(n, d=d, width=width))
    n = 1000 if small else 16_000
    options = {"method": "krylov"}
    yield TimedCase(f"spectrum, n = {n}, krylov", proportional(n), options=options, spectrum=True)


def bench(device: str, *, show: Callable[[str], None]) -> None:
    """Run the cases, telling each line as it is known."""
    rate = product_rate(make_backend(device, "float64"))
    show(f"machine: {machine(device)}")
    show(f"products {rate / 1e12:.3g} Tflop/s")
    for seeds in (1, 2):  # libraries and kernels are loaded
        simulate(grid_of(200), seeds=seeds, n_test=100, device=device)
    for case in cases(device):
        try:
            show(f"{case.name:36s} {_timed(case, device, rate)}".rstrip())
        except MemoryError as error:
            show(f"{case.name:36s} {error}")


def _timed(case: TimedCase, device: str, product_rate: float) -> str:
    """Seconds, flops a second and their share of the machine's product rate, in words."""
    options = dict(case.options)
    if case.spectrum:
        found: Any = simulated_spectrum(case.problem, seeds=case.seeds, device=device, **options)
    else:
        options.setdefault("n_test", N_TEST if device == "cuda" else 2000)
        found = simulate(case.problem, seeds=case.seeds, device=device, **options)
    each = f"{found.wall_time / case.seeds:9.3f} s a draw"
    rate = f"{found.rate / 1e12:8.3f} Tflop/s  {found.rate / product_rate:4.0%}"
    return f"{found.wall_time:9.2f} s {each} {rate}  {found.record.get('precision', '')}"


def product_rate(backend: Backend) -> float:
    """Flops a second of a matrix product, the median of a few after one that warms up."""
    m = PRODUCT_SIDE[backend.name]
    X = backend.put(np.random.default_rng(0).standard_normal((m, m)))
    out, times = backend.empty(m, m), []
    for _ in range(4):
        backend.synchronise()
        started = time.perf_counter()
        backend.product(X, X, out)
        backend.synchronise()
        times.append(time.perf_counter() - started)
    return 2 * m**3 / statistics.median(times[1:])


def machine(device: str) -> str:
    """Device, processor and versions, in one line."""
    backend = make_backend(device, "float64")
    words = [f"{name} {version}" for name, version in backend.describe().items()]
    return f"{platform.machine()}, {os.cpu_count()} cores; " + ", ".join(words)
