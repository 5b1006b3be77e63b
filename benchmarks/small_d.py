"""Networks with n and N of the order of d²: the record that tests of small d hold theory to.

    python -m benchmarks.small_d --device cuda --output tests/agreement/small_d.json --error 0.003

Draws problems at random with d from 30 to 200 and n from 600 to 4000 (both first layers, four laws,
smooth and kinked activations, n_step/d from 2 to 32, η up to 2√N), trains every one with many
seeds and writes means and standard errors. `--later` draws others, for a record that the theory
has not been looked at with: `tests/agreement/small_d_later.json`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.large_networks import QUANTITIES, record
from tests.draws import log_uniform

COUNT = 100
ACTIVATIONS = (
    "relu", "tanh", "gelu", "leaky_relu", "erf", "softplus", "hard_tanh", "silu", "sigmoid",
    "sin(z + 0.6)",
)  # fmt: skip
TARGETS = ("tanh", "H1 + H2/sqrt(2)", "relu", "sin", "H0/2 + H1", "H1")
LAWS = ("constant", "rademacher", "gaussian", "uniform")


def random_case(rng: np.random.Generator) -> dict[str, Any]:
    """The fields of one problem."""
    n, d = round(log_uniform(rng, 600.0, 4000.0)), round(log_uniform(rng, 30.0, 200.0))
    width = min(4000, round(n * float(rng.choice([0.5, 0.75, 1.5]))))
    step = float(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0, 2.0]))
    return {
        "activation": ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        "target": TARGETS[rng.integers(len(TARGETS))],
        "n": n,
        "d": d,
        "width": width,
        "n_step": round(d * float(rng.choice([2.0, 8.0, 32.0]))),
        "step_size": step * math.sqrt(width),
        "ridge": float(rng.choice([0.01, 0.03, 0.1, 0.5])),
        "noise_std": float(rng.choice([0.1, 0.5])),
        "readout": LAWS[rng.integers(len(LAWS))],
        "residual": "labels",
        "initial": ("sphere", "gaussian")[rng.integers(2)],
        "centre": bool(rng.integers(2)),
    }


def cases(count: int = COUNT, seed: int = 1301) -> list[dict[str, Any]]:
    """The problems, always the same."""
    rng = np.random.default_rng(seed)
    return [random_case(rng) for _ in range(count)]


def later_cases(count: int = COUNT, seed: int = 2811) -> list[dict[str, Any]]:
    """Problems of the later record, always the same."""
    return cases(count, seed)


if __name__ == "__main__":
    record(cases(), QUANTITIES, later_cases())
