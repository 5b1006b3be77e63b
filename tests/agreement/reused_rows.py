"""Networks whose readout is fitted on the rows of their step, recorded for `test_reused_rows`.

`python -m tests.agreement.reused_rows` draws the problems by a seed, simulates them and writes
`reused_rows.json`: errors of every network after its step, and of the same network before it, whose
theory is known, as control.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, simulate

RECORD = Path(__file__).with_name("reused_rows.json")
QUANTITIES = ("test_error", "train_loss", "train_mse")
COUNT, SEED, NETWORKS, N, N_TEST = 64, 20261118, 10, 1500, 3000

ACTIVATIONS = ("tanh", "erf", "relu", "gelu", "softplus", "sin(z+0.6)")
TARGETS = ("tanh", "H1", "H1 + 0.7071067811865476*H2", "relu", "sin", "0.5*H0 + H1")
LAWS = ("constant", "rademacher", "gaussian", "uniform")
STEPS = (0.25, 0.5, 1.0, 2.0)  # in units of √N


def drawn_problems() -> list[dict[str, Any]]:
    """The fields of `COUNT` problems, every law and step equally often."""
    rng = np.random.default_rng(SEED)
    found = []
    for i in range(COUNT):
        width = round(N * np.exp(rng.uniform(np.log(0.3), np.log(1.2))))
        found.append(
            {
                "activation": str(rng.choice(ACTIVATIONS)),
                "target": str(rng.choice(TARGETS)),
                "readout": LAWS[i % 4],
                "n": N,
                "d": round(N * np.exp(rng.uniform(np.log(0.2), 0.0))),
                "width": width,
                "step_size": STEPS[i // 4 % 4] * width**0.5,
                "ridge": float(10 ** rng.uniform(-2.0, 0.0)),
                "noise_std": float(rng.choice([0.1, 0.3, 0.5])),
                "centre": bool(rng.random() < 0.4),
            }
        )
    return found


def simulated(fields: dict[str, Any]) -> dict[str, Any]:
    """Errors of the networks of one problem, after and before the step."""
    problem = Problem(**fields, rows="same")
    found = simulate(problem, seeds=NETWORKS, n_test=N_TEST, variants=("trained", "initial"))
    draws = found.dataset
    return {
        "problem": fields,
        **{
            variant: {
                name: [float(f"{v:.7g}") for v in draws[name].sel(variant=variant).values]
                for name in QUANTITIES
            }
            for variant in ("trained", "initial")
        },
    }


def main() -> None:
    """Simulate what the record does not have yet."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else []
    for fields in drawn_problems()[len(known) :]:
        known.append(simulated(fields))
        RECORD.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{len(known)} of {COUNT}", file=sys.stderr)


if __name__ == "__main__":
    main()
