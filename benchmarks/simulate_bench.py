"""Simulation against the plain NumPy script, against the machine's own rate, and as n grows.

The sizes are those of the papers' figures: n = 3000, d = 1500, width = 2250, n_test = 6000.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from featurestep.core.problem import Problem
from featurestep.simulation import estimate, simulate

from .plain_numpy import point

N_TEST = 6000
BASE = Problem(n=3000, d=1500, width=2250, ridge=0.01, noise_std=0.1, step_size=3.0)
STEP_SIZES = [float(v) for v in np.geomspace(0.5, 40.0, 12)]
RIDGES = [float(v) for v in np.geomspace(1e-3, 1.0, 8)]
PLAIN_POINTS = 5  # of the grid's 96, all of one cost: the rest of the script's time is their mean


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def product_rate() -> float:
    """Flops per second of a float64 product of the benchmark's own shape: median of seven."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((BASE.n, BASE.d)), rng.standard_normal((BASE.width, BASE.d))
    flops = 2 * BASE.n * BASE.d * BASE.width
    return flops / statistics.median(seconds(lambda: X @ W.T) for _ in range(7))


def plain(eta: float, ridge: float) -> float:
    return seconds(
        lambda: point(
            n=BASE.n,
            d=BASE.d,
            width=BASE.width,
            n_test=N_TEST,
            eta=eta,
            ridge=ridge,
            noise=BASE.noise_std,
            seed=0,
        )
    )


def single_point(rounds: int = 5) -> None:
    """Alternating runs, so that a busy moment of the machine meets both."""
    simulate(BASE, seeds=1, n_test=N_TEST)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(simulate(BASE, seeds=1, n_test=N_TEST).wall_time)
        theirs.append(plain(BASE.step_size, BASE.ridge))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"single point      {a:8.2f} s   plain {b:8.2f} s   ratio {b / a:6.2f}   (goal 1.3)")


def grid(rounds: int = 3) -> None:
    """The fastest of a few runs, against the median of product rates measured around them."""
    rates, runs = [product_rate()], []
    for _ in range(rounds):
        runs.append(simulate(BASE.vary(step_size=STEP_SIZES, ridge=RIDGES), seeds=1, n_test=N_TEST))
        rates.append(product_rate())
    found, rate = min(runs, key=lambda run: run.wall_time), statistics.median(rates)
    etas = STEP_SIZES[:: len(STEP_SIZES) // PLAIN_POINTS][:PLAIN_POINTS]
    each = statistics.mean(plain(eta, BASE.ridge) for eta in etas)
    points = len(STEP_SIZES) * len(RIDGES)
    whole = each * points
    print(
        f"grid 12 × 8       {found.wall_time:8.2f} s   plain {whole:8.2f} s   "
        f"ratio {whole / found.wall_time:6.2f}   (goal 15; plain: mean of {len(etas)} points)"
    )
    print(
        f"  counted flops {found.flops:.3g}, {found.rate / 1e9:.1f} Gflop/s against products at "
        f"{rate / 1e9:.1f}: {found.rate / rate:.0%}   (goal 60 %)"
    )


def resident(field: str) -> int:
    """Bytes of VmRSS (now) or VmHWM (peak) of this process; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def peak_of(run: Callable[[], object]) -> int:
    """Bytes that a run adds to this process at its peak."""
    Path("/proc/self/clear_refs").write_text("5")  # forget earlier peaks
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def cost(n: int) -> tuple[float, int, int]:
    """Seconds, measured bytes and estimated bytes of one point at d = n/2, width = 3n/4."""
    simulate(BASE.replace(n=600, d=300, width=300), seeds=1, n_test=600)  # libraries, thread pools
    p = BASE.replace(n=n, d=n // 2, width=3 * n // 4)
    taken: list[float] = []
    memory = peak_of(lambda: taken.append(simulate(p, seeds=1, n_test=2 * n).wall_time))
    return taken[0], memory, estimate(p, seeds=1, n_test=2 * n).memory


def growth() -> None:
    """Time and measured memory as n doubles, each size in a process of its own."""
    sizes = [500, 1000, 2000, 4000, 8000]
    rows = []
    context = multiprocessing.get_context("spawn")
    for n in sizes:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            taken, memory, promised = pool.submit(cost, n).result()
        rows.append((taken, memory))
        print(
            f"n = {n:5d}         {taken:8.2f} s   {memory / 2**20:8.0f} MiB   "
            f"(estimate {promised / 2**20:.0f})"
        )
    times, memories = np.array(rows).T
    for name, values in (("time", times), ("memory", memories)):
        exponent = np.polyfit(np.log(sizes[2:]), np.log(values[2:]), 1)[0]
        print(f"  {name} grows like n^{exponent:.2f} (n = {sizes[2]} … {sizes[-1]})")


def main() -> None:
    print("simulate (float64): n = 3000, d = 1500, width = 2250, n_test = 6000")
    single_point()
    grid()
    growth()


if __name__ == "__main__":
    main()
