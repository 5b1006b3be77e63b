"""Networks with n and N of the order of d²: the record that tests of small d hold theory to.

    python -m benchmarks.small_d                  # simulate what the record lacks

Draws problems at random with d from 30 to 200 and n from 600 to 4000 (both first layers, four laws,
smooth and kinked activations, n_step/d from 2 to 32, η up to 2√N), trains every one with several
seeds and writes means and standard errors to `tests/agreement/small_d.json`. Problems whose test
error is then known to less than COARSE are trained with more seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_networks import observed
from featurestep import Problem, estimate
from tests.draws import log_uniform

RECORD = Path(__file__).parents[1] / "tests" / "agreement" / "small_d.json"
COUNT = 100
WORK, MORE_WORK = 5e11, 2e12  # flops for one problem, all seeds together
FEWEST, MOST, MORE = 6, 60, 240  # seeds
COARSE = 0.007  # relative standard error of the test error
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


def seeds_for(problem: Problem, work: float, most: int) -> int:
    """As many networks as the work of one problem allows."""
    flops = float(estimate(problem, seeds=1).flops)
    return int(min(most, max(FEWEST, work // flops)))


def wanted(fields: dict[str, Any], known: dict[str, dict[str, Any]]) -> int:
    """Seeds to train a problem with, 0 if the record has it."""
    problem, row = Problem(**fields), known.get(key(fields))
    if row is None:
        return seeds_for(problem, WORK, MOST)
    mean, error = row["test_error"]
    more = seeds_for(problem, MORE_WORK, MORE)
    return more if error > COARSE * mean and more > row["seeds"] else 0


def key(fields: dict[str, Any]) -> str:
    """A problem's fields as one text."""
    return json.dumps(fields, sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
    known = {key(row["problem"]): row for row in rows}
    began = time.monotonic()
    for i, fields in enumerate([*cases(), *cases()]):  # a second time for more seeds
        seeds = wanted(fields, known)
        if not seeds:
            continue
        if time.monotonic() - began > chosen.seconds:
            print("out of time: run the command again for the rest")
            break
        found = observed(fields, seeds, chosen.device)
        known[key(fields)] = {"problem": fields, **found}
        kept = [known[key(case)] for case in cases() if key(case) in known]
        RECORD.write_text(json.dumps(kept, indent=1) + "\n")
        test, error = found["test_error"]
        took = time.monotonic() - began
        print(f"{i}: {test:.5f} ± {error:.5f}, {seeds} seeds ({took:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
