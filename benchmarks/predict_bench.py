"""Speed of the theory: batches of distinct problems on one core, one problem, the import.

Isotropic and exact weights side by side: each rate is of one method, asked for by name.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from featurestep import Problem, predict
from featurestep.theory.predict import solve
from featurestep.theory.prediction import Prediction

# law, activation, number of problems, goal in points a second
EXACT = (
    ("constant", "relu", 1000, 4_000),
    ("constant", "tanh", 1000, 4_000),
    ("rademacher", "relu", 600, None),
    ("rademacher", "tanh", 600, None),
    ("gaussian", "relu", 180, 300),
    ("gaussian", "tanh", 180, 300),
    ("uniform", "relu", 180, None),
)
ISOTROPIC = (("constant", "relu", 1000, None), ("gaussian", "relu", 180, None))
# law, activation, side of a grid at α = ½, goal
GRIDS = (
    ("constant", "tanh", 100, 4_000),
    ("gaussian", "tanh", 25, 300),
    ("constant", "relu", 100, 4_000),
    ("gaussian", "relu", 25, 300),
)
ONE_GOALS = {"constant": 8, "rademacher": 8, "gaussian": 20}  # milliseconds


def distinct_problems(law: str, activation: str, count: int, seed: int) -> list[Problem]:
    """Sizes, ratios, ridges and exponents all different; two targets."""
    rng = np.random.default_rng(seed)
    return [
        Problem.from_ratios(
            phi=float(np.exp(rng.uniform(-1.0, 1.0))),
            psi=float(np.exp(rng.uniform(-1.0, 1.0))),
            n=int(10 ** rng.uniform(2.5, 6.0)),
            activation=activation,
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


def batch_rate(law: str, activation: str, count: int, method: str) -> tuple[float, float]:
    """Points a second, best of three, and the median number of groups."""
    problems = distinct_problems(law, activation, count, seed=1)
    solve(problems[:2], method=method)
    best, outcomes = 0.0, []
    for _ in range(3):
        start = time.perf_counter()
        outcomes = solve(problems, method=method)
        best = max(best, count / (time.perf_counter() - start))
    solved = [o for o in outcomes if isinstance(o, Prediction)]
    if len(solved) < count:
        refused = count - len(solved)
        raise SystemExit(f"{law}, {method}: {refused} of {count} problems were refused")
    return best, statistics.median(len(o.groups.g) for o in solved)


def single_time(law: str, activation: str, method: str) -> float:
    """Median time of one warm predict, in milliseconds."""
    problem = Problem(
        n=2000,
        d=1000,
        width=1500,
        step_exponent=0.3,
        ridge=0.01,
        readout=law,
        activation=activation,
    )
    times = []
    for _ in range(30):
        start = time.perf_counter()
        predict(problem, method=method)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def directions_time(law: str, target: str) -> tuple[float, float]:
    """Milliseconds of the first predict of a target of several directions, and of one more.

    Every problem has another n_step, so that no average over its directions is known yet.
    """
    problem = Problem(
        n=2000,
        d=1000,
        width=1500,
        step_exponent=0.5,
        ridge=0.01,
        noise_std=0.2,
        readout=law,
        activation="relu",
        target=target,
    )
    times = []
    for i in range(12):
        asked = problem.replace(n_step=2000 + i)
        start = time.perf_counter()
        predict(asked)
        times.append(time.perf_counter() - start)
    return 1e3 * times[0], 1e3 * statistics.median(times[1:])


def grid_rate(law: str, activation: str, side: int) -> float:
    """Points a second of a grid over ridge and noise at the largest published exponent."""
    problem = Problem(
        activation=activation,
        centre=True,
        n=2000,
        d=1000,
        width=1500,
        step_exponent=0.5,
        ridge=0.01,
        readout=law,
    )
    grid = problem.vary(
        ridge=np.geomspace(1e-3, 10.0, side).tolist(), noise_std=np.linspace(0, 1, side).tolist()
    )
    start = time.perf_counter()
    predict(grid)
    return side**2 / (time.perf_counter() - start)


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
            f"{'weights':<11}{'law':<12}{'activation':<11}{'groups':>7}{'points/s':>10}{'goal':>9}"
            f"{'Mflop of product a point':>27}"
        )
        for method, cases in (("exact", EXACT), ("isotropic", ISOTROPIC)):
            for law, activation, count, goal in cases:
                points, groups = batch_rate(law, activation, count, method)
                shown = f"{goal:,}" if goal else "–"
                print(
                    f"{method:<11}{law:<12}{activation:<11}{groups:>7.0f}{points:>10,.0f}{shown:>9}"
                    f"{rate / points / 1e6:>27.2f}"
                )
        for law, activation, side, goal in GRIDS:
            points = grid_rate(law, activation, side)
            print(
                f"grid {side} × {side} at α = ½, {activation}, {law}: {points:,.0f} points/s "
                f"(goal {goal:,})"
            )
    for law, most in ONE_GOALS.items():
        shown = ", ".join(
            f"{name} {single_time(law, name, 'exact'):.2f} ms" for name in ("relu", "tanh")
        )
        print(f"one predict, {law}: {shown} warm (goal {most})")
    predict(Problem(n=200, d=100, width=150, step_exponent=0.5, ridge=0.01, target="z1 + z2"))
    for directions, form in (("two", "z1 + {}*z1*z2"), ("three", "z1 + {}*z1*z2*z3")):
        for i, law in enumerate(("constant", "rademacher", "gaussian")):
            first, more = directions_time(law, form.format(1.0 + 0.1 * i))
            goal = " (goal 100)" if directions == "two" and law != "gaussian" else ""
            print(
                f"one predict, {directions} directions, {law}: {more:.0f} ms{goal}, "
                f"{first:.0f} ms with a new target"
            )
    print(f"import featurestep: {import_time():.3f} s (goal 0.4)")


if __name__ == "__main__":
    main()
