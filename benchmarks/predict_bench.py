"""Speed of the theory: batches of distinct problems on one core, one problem, the import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from featurestep import Problem, predict
from featurestep.theory.engine import Solution, solve

ACTIVATIONS = ("tanh", "relu", "erf", "sigmoid", "hard_tanh", "softplus")


def distinct_problems(law: str, count: int, seed: int) -> list[Problem]:
    """Sizes, ratios, ridges and exponents all different; six activations, two targets."""
    rng = np.random.default_rng(seed)
    return [
        Problem.from_ratios(
            phi=float(np.exp(rng.uniform(-1.0, 1.0))),
            psi=float(np.exp(rng.uniform(-1.0, 1.0))),
            n=int(10 ** rng.uniform(2.5, 6.0)),
            activation=ACTIVATIONS[i % len(ACTIVATIONS)],
            centre=True,
            target=("H1 + H2/sqrt(2)", "tanh")[i % 2],
            step_exponent=float(rng.uniform(0.0, 0.5)),
            ridge=float(10 ** rng.uniform(-3.0, 1.0)),
            noise_std=0.3,
            readout=law,
        )
        for i in range(count)
    ]


def matrix_rate(size: int = 1000) -> float:
    """Matrix-product rate of one core, in flops a second: best of five."""
    a = np.random.default_rng(0).standard_normal((size, size))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2.0 * size**3 / min(times)


def batch_rate(law: str, count: int) -> tuple[float, float]:
    """Points a second, best of three, and the median number of groups."""
    problems = distinct_problems(law, count, seed=1)
    solve(problems[: len(ACTIVATIONS) * 2])
    best, outcomes = 0.0, []
    for _ in range(3):
        start = time.perf_counter()
        outcomes = solve(problems)
        best = max(best, count / (time.perf_counter() - start))
    solved = [o for o in outcomes if isinstance(o, Solution)]
    if len(solved) < count:
        raise SystemExit(f"{law}: {count - len(solved)} of {count} problems were refused")
    return best, statistics.median(len(o.g) for o in solved)


def single_time(law: str) -> float:
    """Median time of one warm predict, in milliseconds."""
    problem = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01, readout=law)
    times = []
    for _ in range(30):
        start = time.perf_counter()
        predict(problem)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def import_time() -> float:
    """Best of five imports in fresh interpreters, in seconds."""
    code = (
        "import time; t = time.perf_counter(); import featurestep; print(time.perf_counter() - t)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Print the table."""
    with threadpool_limits(limits=1):
        rate = matrix_rate()
        print(f"theory, one core (matrix product: {rate / 1e9:.1f} Gflop/s)")
        print(
            f"{'law':<12}{'groups':>8}{'points/s':>12}{'goal':>10}{'Mflop of product a point':>28}"
        )
        for law, count, goal in (
            ("constant", 6000, 10_000),
            ("rademacher", 3000, None),
            ("gaussian", 3000, 1_000),
            ("uniform", 3000, None),
        ):
            points, groups = batch_rate(law, count)
            shown = f"{goal:,}" if goal else "–"
            print(f"{law:<12}{groups:>8.0f}{points:>12,.0f}{shown:>10}{rate / points / 1e6:>28.2f}")
    for law in ("constant", "gaussian"):
        print(f"one predict, {law}: {single_time(law):.2f} ms warm (goal 10)")
    print(f"import featurestep: {import_time():.3f} s (goal 0.4)")


if __name__ == "__main__":
    main()
