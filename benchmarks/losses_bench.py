"""Predictions with every loss: time of one point, and of the points of a grid.

CPU time of one core. One point: median and 90th percentile over random problems with finite readout
laws. Grids: 100 problems over the ridge, over ridge and step size, and over ridge and noise,
against some of them one by one; then grids over ridge and step size around five of the random
problems, the median and the smallest of the five ratios.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from featurestep import Problem
from featurestep.core.problem import BINARY_LOSSES, LOSSES
from featurestep.theory.predict import solve

ONE, ALONE, GRID, RANDOM = 30, 12, 100, 5
SIZES = {"n": 2000, "d": 1000, "width": 1500, "n_step": 3000}


def random_problem(rng: np.random.Generator, loss: str) -> Problem:
    """One with a finite law of the readout."""
    n = round(np.exp(rng.uniform(np.log(800), np.log(20_000))))
    d, width = round(n * rng.uniform(0.25, 2.0)), round(n * rng.uniform(0.5, 2.5))
    return Problem(
        n=n,
        d=d,
        width=width,
        n_step=round(d * np.exp(rng.uniform(np.log(0.5), np.log(32.0)))),
        step_size=float(rng.uniform(0.0, 2.0) * width**0.5),
        ridge=float(10.0 ** rng.uniform(-3.0, 0.0)),
        noise_std=float(rng.choice([0.1, 0.3, 0.5])),
        activation=str(rng.choice(["tanh", "relu", "gelu", "erf"])),
        target=str(rng.choice(["H1", "tanh", "H0/2 + H1", "H1 + H2/2"])),
        readout=str(rng.choice(["constant", "rademacher"])),
        loss=loss,
        intercept=bool(rng.random() < 0.5),
        flip=0.1 if loss in BINARY_LOSSES and rng.random() < 0.3 else 0.0,
    )


def grids(loss: str) -> dict[str, list[Problem]]:
    """100 problems over one field, and over two."""
    base = Problem(
        **SIZES,
        step_size=20.0,
        ridge=0.1,
        noise_std=0.3,
        target="H0/2 + H1",
        readout="rademacher",
        loss=loss,
        intercept=True,
    )
    few, steps = np.geomspace(3e-3, 3.0, 10).tolist(), np.linspace(5.0, 40.0, 10).tolist()
    return {
        "ridge": list(base.vary(ridge=np.geomspace(3e-3, 3.0, GRID).tolist())),
        "ridge and step": list(base.vary(ridge=few, step_size=steps)),
        "ridge and noise": list(base.vary(ridge=few, noise_std=np.linspace(0.1, 0.8, 10).tolist())),
    }


def random_grid(problem: Problem) -> list[Problem]:
    """100 problems around one, with other ridges and steps."""
    steps = problem.width**0.5 * np.linspace(0.1, 2.0, 10)
    ridges = problem.ridge * np.geomspace(0.05, 20.0, 10)
    return list(problem.vary(ridge=ridges.tolist(), step_size=steps.tolist()))


def seconds(problems: Sequence[Problem]) -> float:
    """CPU time of problems that are solved together."""
    began = time.process_time()
    solve(problems, any_loss=True)
    return time.process_time() - began


def compared(problems: Sequence[Problem], rng: np.random.Generator) -> tuple[float, float]:
    """Seconds a point of a grid, and how many times longer some of its points take one by one."""
    some = [problems[i] for i in rng.choice(len(problems), ALONE, replace=False)]
    single = float(np.mean([seconds([each]) for each in some]))
    together = seconds(problems) / len(problems)
    return together, single / together


def main() -> None:
    """Print the table."""
    print("ms a point (CPU time), and ratios to points one by one")
    print(
        f"{'':14}{'one':>6}{'90 %':>6}{'ridge':>8}{'':>6}{'ridge, step':>13}{'':>6}"
        f"{'ridge, noise':>14}{'':>6}{'random: median':>16}{'least':>6}"
    )
    for loss in LOSSES:
        rng = np.random.default_rng(26)
        chosen = [random_problem(rng, loss) for _ in range(ONE)]
        solve(chosen[:1], any_loss=True)  # what is kept from call to call
        middle, high = 1e3 * np.quantile([seconds([each]) for each in chosen], [0.5, 0.9])
        cells = [f"{loss:14}{middle:6.1f}{high:6.1f}"]
        for problems, width in zip(grids(loss).values(), (8, 13, 14), strict=True):
            together, ratio = compared(problems, rng)
            cells.append(f"{1e3 * together:{width}.1f}{ratio:6.1f}")
        ratios = [compared(random_grid(problem), rng)[1] for problem in chosen[:RANDOM]]
        cells.append(f"{np.median(ratios):16.1f}{min(ratios):6.1f}")
        print("".join(cells), flush=True)


if __name__ == "__main__":
    main()
