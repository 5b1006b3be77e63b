"""Networks of n = 1500 and more with every loss: the record that slow tests hold theory to.

    python -m benchmarks.large_losses --seeds 24 --output tests/agreement/large_losses.json
    python -m benchmarks.large_losses --error 0.007 --output tests/agreement/large_losses.json
    python -m benchmarks.large_losses --later --seeds 64 --output tests/agreement/small_losses.json

Draws problems at random (five losses in turn, with and without intercept and flips, both residuals,
both first layers, four laws, η up to 2√N), trains every one with many seeds and writes means and
standard errors. Options are those of `benchmarks.large_networks`; `--later` takes twelve problems
of n = 400 to 600 instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.large_networks import record
from featurestep.core.problem import BINARY_LOSSES

QUANTITIES = (
    *("test_loss", "test_error", "train_loss", "train_objective", "train_error"),
    *("readout_norm", "intercept"),
)
COUNT = 40
LOSSES = ("logistic", "squared_hinge", "hinge", "huber", "square")  # the last with an intercept
ACTIVATIONS = ("relu", "tanh", "gelu", "erf", "softplus", "sin", "sigmoid")
TARGETS = ("tanh", "H1 + H2/2", "sin", "H0/2 + H1", "H1")
LAWS: tuple[Any, ...] = (
    *("constant", "rademacher", "gaussian"),
    [[-1.5, 0.2], [0.0, 0.35], [1.1055415967851332, 0.45]],
)
SIZES = ((1500, 750), (1600, 500), (1500, 1200), (2000, 600))
SMALL = ((500, 250), (480, 150), (400, 320), (600, 180))


def random_case(
    rng: np.random.Generator, loss: str, sizes: Sequence[tuple[int, int]] = SIZES
) -> dict[str, Any]:
    """The fields of one problem."""
    n, d = sizes[rng.integers(len(sizes))]
    width = round(n * float(rng.choice([0.5, 0.75, 1.2])))
    law = LAWS[rng.integers(len(LAWS))]
    residual = ("labels", "labels", "full")[rng.integers(3)]
    binary = loss in BINARY_LOSSES
    flip = 0.1 if rng.integers(3) == 0 else 0.0
    intercept, centre = bool(rng.integers(2)), bool(rng.integers(2))
    return {
        "loss": loss,
        "intercept": intercept or loss == "square",
        "flip": flip if binary else 0.0,
        "activation": ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        "target": TARGETS[rng.integers(len(TARGETS))],
        "n": n,
        "d": d,
        "width": width,
        "n_step": round(d * float(rng.choice([1.0, 2.0, 4.0, 8.0]))),
        "step_size": float(rng.choice([0.0, 0.25, 0.5, 1.0, 2.0])) * math.sqrt(width),
        "ridge": float(rng.choice([0.003, 0.01, 0.1, 1.0])),
        "noise_std": float(rng.choice([0.0, 0.2, 0.5])),
        "readout": law,
        "residual": residual,
        "initial": ("sphere", "gaussian")[rng.integers(2)],
        "centre": centre or (residual == "full" and law not in ("rademacher", "gaussian")),
    }


def cases(count: int = COUNT, seed: int = 2611) -> list[dict[str, Any]]:
    """The problems, always the same, with the losses in turn."""
    rng = np.random.default_rng(seed)
    return [random_case(rng, LOSSES[i % len(LOSSES)]) for i in range(count)]


def small_cases(count: int = 12, seed: int = 2612) -> list[dict[str, Any]]:
    """Small ones."""
    rng = np.random.default_rng(seed)
    return [random_case(rng, LOSSES[i % len(LOSSES)], SMALL) for i in range(count)]


if __name__ == "__main__":
    record(cases(), QUANTITIES, small_cases())
