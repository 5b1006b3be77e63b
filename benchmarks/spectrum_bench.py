"""Predicted spectra, and simulated ones by the Krylov route beside the dense one."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from featurestep.core.problem import Problem
from featurestep.simulation import SimulatedSpectrum, estimate_spectrum, simulated_spectrum
from featurestep.theory import spectrum

from .simulate_bench import peak_of

SIZE = 12_000
LARGE = Problem(
    n=SIZE, d=SIZE // 2, width=SIZE, ridge=0.01, noise_std=0.1, step_exponent=0.4, target="tanh"
)
SMALL = LARGE.replace(n=600, d=300, width=600)
POINTS = np.linspace(0.05, 6.0, 100)


PREDICTED = Problem(
    activation="relu", centre=True, target="H1 + H2/sqrt(2)", n=2000, d=1000, width=1500,
    step_exponent=0.38, ridge=0.1,
)  # fmt: skip


def predicted() -> None:
    """A density curve of 400 points with its spikes, after one call that loads libraries."""
    print("predicted spectrum: density at 400 points and spikes, fastest of 5")
    for law in ("constant", "rademacher", "uniform", "gaussian"):
        problem = PREDICTED.replace(readout=law)
        spectrum(problem)
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            found = spectrum(problem)
            found.curve(400)
            seconds.append(time.perf_counter() - start)
        print(f"{law:12s} {min(seconds):6.3f} s, {len(found.spikes)} spike(s)", flush=True)


class Run(NamedTuple):
    route: str
    seconds: float
    memory: int
    top: np.ndarray
    share: np.ndarray  # cumulative
    error: np.ndarray  # as stated


def measure(method: str, max_memory: float | None) -> Run:
    simulated_spectrum(SMALL, seeds=1, method=method)  # libraries, thread pools
    found: list[SimulatedSpectrum] = []
    options = {"seeds": 1, "method": method, "max_memory": max_memory}
    memory = peak_of(lambda: found.append(simulated_spectrum(LARGE, **options)))
    curve = found[0].cumulative(POINTS)
    return Run(
        found[0].record["method"].removeprefix("trained: "),
        found[0].wall_time,
        memory,
        found[0].singular_values()[0],
        curve.mean,
        4.0 * curve.standard_error + curve.resolution,
    )


def alone(method: str, max_memory: float | None) -> Run:
    """In a process of its own, so that the peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measure, method, max_memory).result()


def simulated() -> None:
    """Top ten singular values and the distribution at n = width = 12,000, d = 6000."""
    print(f"simulated spectrum (float64): n = width = {SIZE}, d = {SIZE // 2}, one draw, top 10")
    roomy = estimate_spectrum(LARGE, seeds=1, method="krylov").memory
    single = roomy - 3 * SIZE * SIZE  # too little to keep the features in float64
    dense = alone("dense", None)
    for method, limit in (("dense", None), ("krylov", None), ("krylov", single)):
        run = dense if method == "dense" else alone(method, limit)
        print(
            f"{run.route:34s} {run.seconds:7.1f} s {run.memory / 2**30:6.2f} GiB   dense/this: "
            f"time {dense.seconds / run.seconds:5.2f}, memory {dense.memory / run.memory:5.2f}",
            flush=True,
        )
        if run is not dense:
            gap, miss = np.abs(run.top / dense.top - 1.0), np.abs(run.share - dense.share)
            print(
                f"  top 10 differ by {np.max(gap):.1e}, the distribution by "
                f"{np.max(miss):.1e} at most, {np.max(miss / run.error):.2f} of its stated error"
            )


def main() -> None:
    predicted()
    print()
    simulated()


if __name__ == "__main__":
    main()
