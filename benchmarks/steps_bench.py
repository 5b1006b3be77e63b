"""Predictions of several steps: CPU time of one point against the number of steps.

All steps together are 1.5√N, so that weights and rules are as large for every number of them. The
last column is the time of six steps relative to the line through those of two and three.
"""

from __future__ import annotations

import time

from featurestep import Problem
from featurestep.theory.predict import solve

STEPS = (1, 2, 3, 4, 5, 6)
TOTAL = 1.5  # √N
PROBLEM = Problem(
    target="H1 + H2/2",
    n=1500,
    d=750,
    width=1125,
    n_step=1500,
    ridge=0.05,
    noise_std=0.3,
    step_size=1.0,
)


def seconds(activation: str, readout: str, steps: int) -> float:
    """One prediction; the better of two for finite laws."""
    size = TOTAL * PROBLEM.width**0.5 / steps
    asked = PROBLEM.replace(activation=activation, readout=readout, step_sizes=(size,) * steps)
    found = []
    for _ in range(1 if readout == "gaussian" else 2):
        start = time.process_time()
        solve([asked])
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print the table."""
    print("predictions of several steps, CPU ms of one point (goal at T = 2: 150, Gaussian 3000)")
    print(f"{'law':12}{'activation':12}" + "".join(f"{f'T = {k}':>9}" for k in STEPS), " on line")
    for readout in ("constant", "rademacher", "gaussian"):
        for activation in ("tanh", "relu"):
            times = [1e3 * seconds(activation, readout, k) for k in STEPS]
            line = times[-1] / (times[1] + (STEPS[-1] - 2) * (times[2] - times[1]))
            row = "".join(f"{t:9.0f}" for t in times)
            print(f"{readout:12}{activation:12}{row}{line:9.2f}", flush=True)


if __name__ == "__main__":
    main()
