"""Networks whose readout is fitted on the rows of their step, recorded for `test_reused_rows`.

`python -m tests.agreement.reused_rows` draws the problems by a seed, simulates them and writes
`reused_rows.json`: errors of every network after its step, and of the same network before it, whose
theory is known, as control, with two averages over the labels of the readout's rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, simulate
from tests.simulation.dense import draw_of, whole

RECORD = Path(__file__).with_name("reused_rows.json")
QUANTITIES = ("test_error", "train_loss", "train_mse")
VARIANTS = ("trained", "initial")
COUNT, SEED, NETWORKS, N, N_TEST = 64, 20261118, 24, 1500, 3000

ACTIVATIONS = ("tanh", "erf", "relu", "gelu", "softplus", "sin(z+0.6)")
TARGETS = ("tanh", "H1", "H1 + 0.7071067811865476*H2", "relu", "sin", "0.5*H0 + H1")
LAWS = ("constant", "rademacher", "gaussian", "uniform")
STEPS = (0.25, 0.5, 1.0, 2.0)  # in units of √N


def drawn_problems() -> list[dict[str, Any]]:
    """The fields of `COUNT` problems, every law and step equally often."""
    rng = np.random.default_rng(SEED)
    return [_drawn(rng, LAWS[i % 4], STEPS[i // 4 % 4]) for i in range(COUNT)]


def _drawn(rng: np.random.Generator, law: str, step: float) -> dict[str, Any]:
    width = round(N * np.exp(rng.uniform(np.log(0.3), np.log(1.2))))
    return {
        "activation": str(rng.choice(ACTIVATIONS)),
        "target": str(rng.choice(TARGETS)),
        "readout": law,
        "n": N,
        "d": round(N * np.exp(rng.uniform(np.log(0.2), 0.0))),
        "width": width,
        "step_size": step * width**0.5,
        "ridge": float(10 ** rng.uniform(-2.0, 0.0)),
        "noise_std": float(rng.choice([0.1, 0.3, 0.5])),
        "centre": bool(rng.random() < 0.4),
    }


def problem_of(fields: dict[str, Any]) -> Problem:
    """The problem of recorded fields."""
    return Problem(**fields, rows="same")


def simulated(fields: dict[str, Any], seeds: range) -> dict[str, Any]:
    """Errors of the networks of one problem, after and before the step."""
    draws = simulate(problem_of(fields), seeds=seeds, n_test=N_TEST, variants=VARIANTS).dataset
    return {
        variant: {
            name: [float(f"{v:.7g}") for v in draws[name].sel(variant=variant).values]
            for name in QUANTITIES
        }
        for variant in VARIANTS
    }


def label_averages(fields: dict[str, Any], seeds: range) -> dict[str, list[float]]:
    """Means of y² and of yβ⋆·x over the readout's rows of every network."""
    problem, found = problem_of(fields), []
    for seed in seeds:
        draw = draw_of(problem, seed=seed)
        X, clean, noise = whole(draw, draw.readout_sample(problem.n))
        y = clean + problem.noise_std * noise
        found.append(
            [float(f"{v:.7g}") for v in (np.mean(y**2), np.mean(y * (X @ draw.directions[0])))]
        )
    squares, products = zip(*found, strict=True)
    return {"squares": list(squares), "products": list(products)}


def extended(known: dict[str, Any]) -> dict[str, Any]:
    """A recorded problem with the networks that it lacks."""
    fields = known["problem"]
    first = len(known["trained"]["test_error"]) if "trained" in known else 0
    if first < NETWORKS:
        new = simulated(fields, range(first, NETWORKS))
        for variant in VARIANTS:
            old = known.get(variant, {})
            known[variant] = {n: old.get(n, []) + new[variant][n] for n in QUANTITIES}
    if len(known.get("labels", {}).get("squares", ())) < NETWORKS:
        known["labels"] = label_averages(fields, range(NETWORKS))
    return known


def main() -> None:
    """Simulate what the record does not have yet."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else []
    for i, fields in enumerate(drawn_problems()):
        known[i : i + 1] = [extended(known[i] if i < len(known) else {"problem": fields})]
        RECORD.write_text(json.dumps(known) + "\n")
        print(f"{i + 1} of {COUNT}", file=sys.stderr)


if __name__ == "__main__":
    main()
