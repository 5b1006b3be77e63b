"""Predictions with every loss: time of one point, and of the points of a grid.

CPU time of one core. One point: the median over random problems with finite readout laws. Grids:
100 problems over the ridge, or over ridge and step size, against twenty of them one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from featurestep import Problem
from featurestep.core.problem import BINARY_LOSSES, LOSSES
from featurestep.theory.predict import solve

ONE, ALONE, GRID = 30, 20, 100
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
    steps = np.linspace(5.0, 40.0, 10).tolist()
    return {
        "ridge": list(base.vary(ridge=np.geomspace(3e-3, 3.0, GRID).tolist())),
        "ridge and step": list(
            base.vary(ridge=np.geomspace(3e-3, 3.0, 10).tolist(), step_size=steps)
        ),
    }


def seconds(problems: Sequence[Problem]) -> float:
    """CPU time of problems that are solved together."""
    began = time.process_time()
    solve(problems, any_loss=True)
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    print("ms a point (CPU time)")
    print(f"{'':14}{'one':>12}{'grid: ridge':>14}{'ratio':>8}{'ridge, step':>14}{'ratio':>8}")
    for loss in LOSSES:
        rng = np.random.default_rng(26)
        chosen = [random_problem(rng, loss) for _ in range(ONE)]
        solve(chosen[:1], any_loss=True)  # what is kept from call to call
        cells = [f"{loss:14}{1e3 * float(np.median([seconds([each]) for each in chosen])):12.1f}"]
        for problems in grids(loss).values():
            some = [problems[i] for i in rng.choice(GRID, ALONE, replace=False)]
            single = float(np.mean([seconds([each]) for each in some]))
            together = seconds(problems) / GRID
            cells.append(f"{1e3 * together:14.1f}{single / together:8.1f}")
        print("".join(cells), flush=True)


if __name__ == "__main__":
    main()
