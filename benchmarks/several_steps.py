"""Networks after two, three and four steps: the record that tests hold the theory to.

    python -m benchmarks.several_steps --output tests/agreement/several_steps.json
    python -m benchmarks.several_steps --error 0.007 --output tests/agreement/several_steps.json
    python -m benchmarks.several_steps --moved-shifts --draws 40 --output FILE
    python -m benchmarks.several_steps --seed 41 --count 24 --draws 128 --device cuda --output FILE
    python -m benchmarks.several_steps --small-d --draws 64 --device cuda --output FILE
    python -m benchmarks.several_steps --small-d --count 60 --most 1500 --draws 16 --output FILE
    python -m benchmarks.several_steps --compare tests/agreement/several_steps.json

Problems are drawn by a seed: six activations, seven targets, three laws, both laws of the rows of
W0, steps of ¼ to 1½ √N; eight draws of each or more. An output that exists is continued. `--error`
adds draws to every problem of a record whose mean test error has a larger relative standard error:
the error bar alone decides, not the gap.
`--compare` draws nothing: today's predictions against a record. `--moved-shifts` draws two other
problems (tests/agreement/moved_shifts.json): shifts that norms move matter most there, with
opposite signs. `--seed` draws other problems of the same kind, `--small-d` problems in which d is
small beside n and N; `--most` leaves out those of more samples. On a GPU networks are drawn on the
device: other ones than on the host.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_networks import missing_draws, pooled, relative_error
from featurestep import Problem, predict, simulate

QUANTITIES = ("test_error", "train_loss", "train_mse")
COUNT, SEED, DRAWS = 44, 20, 8
N = 1500
ACTIVATIONS = ("erf", "gelu", "relu", "sin(z+0.6)", "softplus", "tanh")
TARGETS = ("H1", "H0/2 + H1", "H1 + H2/sqrt(2)", "sin", "tanh", "z1 + z1*z2", "z1 + z2 + z1*z2")
SIZES = (0.25, 0.5, 1.0, 1.5)  # η/√N


def problems(count: int = COUNT, seed: int = SEED) -> list[dict[str, Any]]:
    """Fields of random problems; readouts with a continuous law take two steps."""
    rng = np.random.default_rng(seed)

    def one_of(values: Any, p: Any = None) -> Any:
        return values[int(rng.choice(len(values), p=p))]

    found = []
    for _ in range(count):
        readout = one_of(("constant", "rademacher", "gaussian"), (0.4, 0.45, 0.15))
        steps = 2 if readout == "gaussian" else one_of((2, 3, 4), (0.45, 0.35, 0.2))
        d, width = one_of((300, 500, 750)), one_of((750, 1125, 1500))
        found.append(
            {
                "activation": one_of(ACTIVATIONS),
                "target": one_of(TARGETS),
                "readout": readout,
                "initial": one_of(("sphere", "gaussian"), (0.75, 0.25)),
                "centre": bool(rng.random() < 0.5),
                "n": N,
                "d": d,
                "width": width,
                "n_step": d * one_of((1, 2, 4)),
                "step_sizes": [one_of(SIZES) * math.sqrt(width) for _ in range(steps)],
                "ridge": one_of((0.01, 0.05, 0.2)),
                "noise_std": one_of((0.1, 0.3)),
            }
        )
    return found


def moved_shifts() -> list[dict[str, Any]]:
    """Fields of two problems in which moved shifts matter."""
    return [
        {
            "activation": activation,
            "target": "H1",
            "readout": "rademacher",
            "centre": True,
            "n": 1000,
            "d": 500,
            "width": 1500,
            "n_step": 2000,
            "step_sizes": [1.5 * math.sqrt(1500)] * 2,
            "ridge": 0.02,
            "noise_std": 0.1,
        }
        for activation in ("sin(z+0.6)", "erf")
    ]


def small_d(count: int = 32, seed: int = 50) -> list[dict[str, Any]]:
    """Fields of random problems of two and three steps with d from 40 to 100."""
    rng = np.random.default_rng(seed)

    def one_of(values: Any, p: Any = None) -> Any:
        return values[int(rng.choice(len(values), p=p))]

    found = []
    for _ in range(count):
        n = one_of((1500, 3000, 4000), (0.4, 0.3, 0.3))
        d, width = one_of((40, 60, 80, 100)), round(n * one_of((0.5, 0.75, 1.25)))
        sizes = one_of(((0.25, 0.25), (0.5, 0.25), (0.5, 0.5), (1.0, 0.5), (1.0, 1.0), (0.5,) * 3))
        found.append(
            {
                "activation": one_of(ACTIVATIONS),
                "target": one_of(TARGETS[:5]),
                "readout": one_of(("constant", "rademacher")),
                "initial": one_of(("sphere", "gaussian"), (0.75, 0.25)),
                "centre": bool(rng.random() < 0.5),
                "n": n,
                "d": d,
                "width": width,
                "n_step": d * one_of((2, 8, 32)),
                "step_sizes": [size * math.sqrt(width) for size in sizes],
                "ridge": one_of((0.01, 0.1)),
                "noise_std": one_of((0.1, 0.3)),
            }
        )
    return found


def few_rows() -> list[dict[str, Any]]:
    """Fields of problems whose steps have d rows: one step of 2√N, and a second one of √N.

    There the weights are so far from isotropic that what norms of neurons share with functions of
    degree 2 matters.
    """
    return [
        {
            "activation": activation,
            "target": "H1 + H2/2",
            "readout": readout,
            "n": 4 * d,
            "d": d,
            "width": 5 * d // 2,
            "n_step": d,
            "step_sizes": [size * math.sqrt(5 * d // 2) for size in sizes],
            "ridge": 0.1,
            "noise_std": 0.3,
        }
        for activation, readout, d in (
            ("gelu", "constant", 50),
            ("sin(z+0.6)", "rademacher", 50),
            ("gelu", "constant", 100),
            ("gelu", "constant", 200),
        )
        for sizes in ((2.0,), (2.0, 1.0))
    ]


def simulated(
    fields: dict[str, Any], first: int, draws: int, device: str = "cpu"
) -> dict[str, Any]:
    """Means and standard errors of one problem's networks."""
    found = simulate(Problem(**fields), seeds=range(first, first + draws), device=device)
    row: dict[str, Any] = {"problem": fields, "seeds": draws}
    for name in QUANTITIES:
        values = np.asarray(found.values[name]).ravel()
        row[name] = [float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))]
    return row


def extended(row: dict[str, Any], error: float) -> dict[str, Any]:
    """A row with draws added until its test error's relative standard error is at most `error`."""
    while relative_error(row) > error:
        draws = missing_draws(row, error)
        row = pooled(row, simulated(row["problem"], row["seeds"], draws), QUANTITIES)
    return row


def predictions(record: list[dict[str, Any]]) -> list[Any]:
    """Today's predictions of a record's problems."""
    return [predict(Problem(**row["problem"])) for row in record]


def gaps(
    record: list[dict[str, Any]], quantity: str, predicted: list[Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """z and relative gaps of predictions, today's unless they are given."""
    predicted = predictions(record) if predicted is None else predicted
    mean, error = np.array([row[quantity] for row in record]).T
    value = np.array([getattr(each, quantity) for each in predicted])
    return (value - mean) / error, value / mean - 1.0


def main() -> None:
    """Draw networks, or compare predictions with a record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--error", type=float)
    parser.add_argument("--moved-shifts", action="store_true")
    parser.add_argument("--small-d", action="store_true")
    parser.add_argument("--most", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    if asked.compare:
        record = json.loads(asked.compare.read_text())
        for name in QUANTITIES:
            z, relative = gaps(record, name)
            print(
                f"{name}: {z.size} problems, rms z {np.sqrt(np.mean(z**2)):.2f}, largest gap "
                f"{np.abs(relative).max():.2%}"
            )
        return
    record = json.loads(asked.output.read_text()) if asked.output.exists() else []
    every = problems(asked.count, asked.seed)
    if asked.moved_shifts or asked.small_d:
        every = moved_shifts() if asked.moved_shifts else small_d(asked.count)
    every = [fields for fields in every if fields["n"] <= asked.most]
    for fields in every[len(record) :]:
        start = time.process_time()
        record.append(simulated(fields, 0, asked.draws, asked.device))
        asked.output.write_text(json.dumps(record, indent=1) + "\n")
        print(len(record), fields["step_sizes"], f"{time.process_time() - start:.0f} s", flush=True)
    for index, row in enumerate(record if asked.error else []):
        record[index] = extended(row, asked.error)
        asked.output.write_text(json.dumps(record, indent=1) + "\n")
        print(index, record[index]["seeds"], flush=True)


if __name__ == "__main__":
    main()
