"""Networks on inputs with a covariance, for the tests of their theory.

`python -m tests.agreement.structured_networks` simulates all of them, which takes a quarter of an
hour, and writes the means and standard errors beside this file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, simulate
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact.inputs import largest_share

PATH = Path(__file__).with_suffix(".json")
QUANTITIES = ("test_error", "train_loss", "train_mse")
SEEDS = 6
SMALL = 0.03  # share of one direction below which there is no note
WANTED = {True: 44, False: 22}  # problems below and above that share
N = 1200
COVARIANCES: tuple[Any, ...] = (
    *([(3.0, 0.25), (1 / 3, 0.75)], [(6.0, 0.1), (4 / 9, 0.9)]),
    *([(4.0, 0.05), (1.5, 0.3), (7 / 13, 0.65)], (3.0, 1.5, 1.0, 0.5, 0.25)),
    *("power(0.3)", "power(0.5)", "power(0.6)", "power(0.9)"),
)


def random_problem(rng: np.random.Generator) -> dict[str, Any]:
    """The fields of a problem, ready for JSON."""

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    width = int(N * pick(0.5, 1.0, 1.5))
    return {
        "activation": pick("relu", "tanh", "gelu", "erf", "sin(z+0.6)", "softplus"),
        "target": pick("tanh", "H1 + H2/sqrt(2)", "relu", "H1", "sin(z)"),
        "n": N,
        "d": int(N * pick(0.25, 0.4, 0.6, 1.0)),
        "width": width,
        "n_step": int(N * pick(0.5, 1.0, 2.0)),
        "step_size": pick(0.0, 0.25, 0.5, 1.0, 2.0) * width**0.5,
        "ridge": pick(0.01, 0.03, 0.1),
        "noise_std": pick(0.1, 0.3),
        "readout": pick("constant", "rademacher", "gaussian"),
        "covariance": pick(*COVARIANCES),
        "target_exponent": pick(0.0, 0.0, -0.5, 0.5),
    }


def problems() -> list[dict[str, Any]]:
    """So many below and above the share as are wanted, in the order in which they are drawn."""
    rng, left, found = np.random.default_rng(29), dict(WANTED), []
    while any(left.values()):
        fields = random_problem(rng)
        problem = Problem(**fields)
        kind = largest_share(problem, spiked_weights(problem)) < SMALL
        if left[kind]:
            left[kind] -= 1
            found.append(fields)
    return found


def record() -> None:
    """Simulate all problems and write what was found."""
    rows = []
    for fields in problems():
        found = simulate(Problem(**fields), seeds=SEEDS)
        mean, error = found.mean, found.standard_error
        numbers = {
            name: [float(mean[name].squeeze()), float(error[name].squeeze())] for name in QUANTITIES
        }
        rows.append({"problem": fields, **numbers})
        PATH.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    record()
