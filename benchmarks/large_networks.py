"""Networks of n = 2000 and more over the whole domain: the record that slow tests hold theory to.

    python -m benchmarks.large_networks --device cuda --output tests/agreement/large_networks.json

Draws problems at random (both residuals, both first layers, four laws, smooth and kinked
activations, n_step/d from ½ to 32, η up to 4√N), trains every one with many seeds and writes means
and standard errors. `--part 1/2` does the first half; parts are joined by naming the same file.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, simulate

QUANTITIES = ("test_error", "train_loss", "train_mse", "readout_norm")
COUNT = 80
ACTIVATIONS = (
    "relu", "tanh", "gelu", "leaky_relu", "erf", "softplus", "hard_tanh", "silu", "sin", "sigmoid",
)  # fmt: skip
TARGETS = ("tanh", "H1 + H2/sqrt(2)", "relu", "sin", "H0/2 + H1", "H1 + H2/2")
LAWS: tuple[Any, ...] = (
    "constant",
    "rademacher",
    "gaussian",
    "uniform",
    [[-1.5, 0.2], [0.0, 0.35], [1.1055415967851332, 0.45]],
)
SIZES = ((2000, 1000), (2400, 600), (2000, 1600), (3000, 750))


def random_case(rng: np.random.Generator) -> dict[str, Any]:
    """The fields of one problem."""
    n, d = SIZES[rng.integers(len(SIZES))]
    width = round(n * float(rng.choice([0.5, 0.75, 1.3])))
    law = LAWS[rng.integers(len(LAWS))]
    residual = ("labels", "labels", "full")[rng.integers(3)]
    centred = bool(rng.integers(2)) or (residual == "full" and not isinstance(law, str))
    step = float(rng.choice([0.1, 0.25, 0.5, 1.0, 2.0, 4.0]))
    return {
        "activation": ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        "target": TARGETS[rng.integers(len(TARGETS))],
        "n": n,
        "d": d,
        "width": width,
        "n_step": round(d * float(rng.choice([0.5, 1.0, 2.0, 4.0, 8.0, 32.0]))),
        "step_size": step * math.sqrt(width),
        "ridge": float(rng.choice([0.003, 0.01, 0.1, 1.0])),
        "noise_std": float(rng.choice([0.1, 0.5])),
        "readout": law,
        "residual": residual,
        "initial": ("sphere", "gaussian")[rng.integers(2)],
        "centre": centred or (residual == "full" and law == "constant"),
    }


def cases(count: int = COUNT, seed: int = 2310) -> list[dict[str, Any]]:
    """The problems, always the same."""
    rng = np.random.default_rng(seed)
    return [random_case(rng) for _ in range(count)]


def observed(
    fields: dict[str, Any], seeds: int | range, device: str, quantities: Sequence[str] = QUANTITIES
) -> dict[str, Any]:
    """Means and standard errors over the seeds."""
    found = simulate(Problem(**fields), seeds=seeds, device=device)
    count = len(found.seeds)
    table: dict[str, Any] = {"seeds": count}
    for name in quantities:
        (each,) = found.values[name]  # one variant
        table[name] = [float(each.mean()), float(each.std(ddof=1) / math.sqrt(count))]
    return table


def pooled(row: dict[str, Any], other: dict[str, Any], quantities: Sequence[str]) -> dict[str, Any]:
    """Means and standard errors of the draws of two rows of one problem."""
    counts = np.array([row["seeds"], other["seeds"]])
    total = int(counts.sum())
    found = {"problem": row["problem"], "seeds": total}
    for name in quantities:
        means, errors = np.array([row[name], other[name]]).T
        mean = float(counts @ means) / total
        squares = counts * (counts - 1) @ errors**2 + counts @ (means - mean) ** 2
        found[name] = [mean, math.sqrt(squares / (total - 1) / total)]
    return found


def relative_error(row: dict[str, Any]) -> float:
    """The relative standard error of a row's mean test error."""
    mean, error = row["test_error"]
    return float(error / mean)


def missing_draws(row: dict[str, Any], error: float) -> int:
    """Draws after which a row's relative standard error would be `error`, at most as many again."""
    missing = math.ceil(row["seeds"] * ((relative_error(row) / error) ** 2 - 1.0))
    return min(max(missing, 2), row["seeds"])


def record(
    problems: Sequence[dict[str, Any]],
    quantities: Sequence[str],
    later: Sequence[dict[str, Any]] = (),
) -> None:
    """Train every problem and write what was observed, by the command line's options.

    `--later` takes the other problems, if there are any.

    `--error` adds draws to problems of the record whose mean test error has a larger relative
    standard error, the largest first: the error bar alone decides, not the gap.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--error", type=float, default=math.inf)
    parser.add_argument("--output", type=Path, required=True)
    if later:
        parser.add_argument("--later", action="store_true", help="other problems, drawn later")
    arguments = parser.parse_args()
    problems = later if later and arguments.later else problems
    part, parts = map(int, arguments.part.split("/"))
    known = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    done = {json.dumps(row["problem"], sort_keys=True) for row in known}
    began = time.monotonic()
    for i, fields in enumerate(problems):
        if i % parts != part - 1 or json.dumps(fields, sort_keys=True) in done:
            continue
        if time.monotonic() - began > arguments.seconds:
            break
        seen = observed(fields, arguments.seeds, arguments.device, quantities)
        row = {"problem": fields, **seen}
        known.append(row)
        arguments.output.write_text(json.dumps(known, indent=1) + "\n")
        test, error = row["test_error"]
        print(f"{i}: {test:.5f} ± {error:.5f} ({time.monotonic() - began:.0f} s)", flush=True)
    while time.monotonic() - began < arguments.seconds:
        i = max(range(len(known)), key=lambda i: relative_error(known[i]))
        if relative_error(known[i]) <= arguments.error:
            break
        first, more = known[i]["seeds"], missing_draws(known[i], arguments.error)
        seeds = range(first, first + more)
        seen = observed(known[i]["problem"], seeds, arguments.device, quantities)
        known[i] = pooled(known[i], seen, quantities)
        arguments.output.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{i}: {first + more} draws ({time.monotonic() - began:.0f} s)", flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    record(cases(), QUANTITIES)
