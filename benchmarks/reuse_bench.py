"""Predictions with readouts on rows of the step: time of one point, over random problems.

CPU time of one core, of problems that are solved one by one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from featurestep import Problem
from featurestep.theory.predict import solve
from featurestep.theory.prediction import Prediction

FINITE, CONTINUOUS = ("constant", "rademacher"), ("gaussian",)
ACTIVATIONS = ("tanh", "erf", "relu", "gelu", "softplus", "sin", "hard_tanh", "leaky_relu")
TARGETS = ("tanh", "H1", "H1 + 0.7*H2", "relu", "sin", "0.5*H0 + H1")
STEPS = (0.1, 0.25, 0.5, 1.0, 2.0)  # in units of √N
# name: laws of the readout, steps, fields, number of problems, goal for the median in milliseconds
CASES: Mapping[str, tuple[tuple[str, ...], tuple[float, ...], dict[str, Any], int, float]] = {
    "same": (FINITE, STEPS, {}, 150, 100.0),
    "half": (FINITE, STEPS, {"rows": "half"}, 75, 100.0),
    "same, Gaussian rows": (FINITE, STEPS, {"initial": "gaussian"}, 75, 100.0),
    "same, Gaussian law, √N": (CONTINUOUS, (1.0,), {}, 20, 2000.0),
}


def random_problem(
    rng: np.random.Generator, laws: tuple[str, ...], steps: tuple[float, ...]
) -> Problem:
    """Sizes from n/10 to 3n, ridges from 1e-4 to 10."""
    n = int(rng.choice([800, 1500, 4000]))
    d, width = (round(n * np.exp(rng.uniform(np.log(0.1), np.log(3.0)))) for _ in range(2))
    return Problem(
        n=n,
        d=d,
        width=width,
        step_size=float(rng.choice(steps)) * width**0.5,
        ridge=float(10.0 ** rng.uniform(-4.0, 1.0)),
        noise_std=float(rng.choice([0.0, 0.1, 0.5])),
        activation=str(rng.choice(ACTIVATIONS)),
        target=str(rng.choice(TARGETS)),
        readout=str(rng.choice(laws)),
        centre=bool(rng.random() < 0.4),
        rows="same",
    )


def milliseconds(problem: Problem) -> float:
    """CPU time of one prediction; the problem must not be refused."""
    began = time.process_time()
    (found,) = solve([problem])
    if not isinstance(found, Prediction):
        raise SystemExit(f"refused: {problem}: {found}")
    return 1e3 * (time.process_time() - began)


def main() -> None:
    """Print the table."""
    print("ms a point (CPU time)")
    print(f"{'rows':24}{'problems':>9}{'median':>9}{'90 %':>9}{'longest':>9}{'goal':>9}")
    for name, (laws, steps, fields, count, goal) in CASES.items():
        rng = np.random.default_rng(27)
        chosen = [random_problem(rng, laws, steps).replace(**fields) for _ in range(count)]
        milliseconds(chosen[0])  # what is kept from call to call
        times = [milliseconds(each) for each in chosen]
        shown = "".join(f"{t:9.0f}" for t in (*np.quantile(times, [0.5, 0.9]), max(times)))
        print(f"{name:24}{count:9}{shown}{goal:9.0f}", flush=True)


if __name__ == "__main__":
    main()
