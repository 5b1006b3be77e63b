"""Networks whose target has two or three directions: the record that slow tests hold theory to.

    python -m benchmarks.several_directions --output tests/agreement/several_directions.json
    python -m benchmarks.several_directions --compare tests/agreement/several_directions.json

Four activations, three laws, n_step/d = 2 and 8, η = ½, 1 and 2 √N. The steps of one network share
its draws. Networks whose error bars are wide get more seeds: a file of draws that is named again
(`--draws`) is continued. `--compare` draws nothing: today's predictions against a record.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, learnable, predict, simulate

QUANTITIES = ("test_error", "train_loss", "train_mse", "readout_norm")
STEPS = (0.5, 1.0, 2.0)  # η/√N
N, D, WIDTH = 1600, 800, 1200
FINE = 0.007  # relative error bar of the test error at which a network has seeds enough
NETWORKS: tuple[tuple[str, str, int, str], ...] = (
    ("relu", "rademacher", 8, "z1 + z1*z2"),
    ("relu", "constant", 2, "z1 + 0.5*z2 + tanh(z1*z2)"),
    ("relu", "gaussian", 8, "z1 + z2^2 - 1 + z1*z2"),
    ("tanh", "rademacher", 2, "z1 + z1*z2"),
    ("gelu", "constant", 8, "z1 + z2 + z1*z2*z3"),
    ("gelu", "rademacher", 2, "z1 + z2*tanh(z3) + z1*z2/2"),
    ("sigmoid", "gaussian", 2, "z1 - z2 + z1*z3"),
    ("tanh", "constant", 8, "z1 + tanh(z2*z3)"),
)


def network(activation: str, readout: str, ratio: int, target: str) -> dict[str, Any]:
    """The fields of one network, but for its step."""
    return {
        "activation": activation,
        "target": target,
        "n": N,
        "d": D,
        "width": WIDTH,
        "n_step": ratio * D,
        "ridge": 0.01 if ratio == 2 else 0.1,
        "noise_std": 0.2,
        "readout": readout,
    }


def drawn(fields: dict[str, Any], seeds: range) -> dict[str, np.ndarray]:
    """Every quantity by step and seed."""
    sizes = [step * math.sqrt(fields["width"]) for step in STEPS]
    grid = Problem(**fields, step_size=0.0).vary(step_size=sizes)
    found = simulate(grid, seeds=seeds)
    return {name: found.values[name][0] for name in QUANTITIES}  # one variant


def rows(fields: dict[str, Any], values: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Means and standard errors of the problems of one network."""
    found = []
    for i, step in enumerate(STEPS):
        problem = {**fields, "step_size": step * math.sqrt(fields["width"])}
        row: dict[str, Any] = {"problem": problem, "seeds": int(values["test_error"].shape[1])}
        for name, each in values.items():
            count = each.shape[1]
            row[name] = [float(each[i].mean()), float(each[i].std(ddof=1) / math.sqrt(count))]
        found.append(row)
    return found


def compared(record: list[dict[str, Any]]) -> str:
    """How far today's predictions of the test error are from the record, in a line."""
    z, gaps, bars, above = [], [], [], 0
    for row in record:
        problem, (mean, error) = Problem(**row["problem"]), row["test_error"]
        value = predict(problem).test_error
        z.append((mean - value) / error)
        gaps.append(abs(mean / value - 1.0))
        bars.append(error / mean)
        above += mean > learnable(problem).floor
    return (
        f"{len(record)} problems, error bars of {np.median(bars):.1%} (median), rms z "
        f"{np.sqrt(np.mean(np.square(z))):.2f}, largest gap {max(gaps):.1%}, "
        f"{above} above the floor"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16, help="seeds drawn at a time")
    parser.add_argument("--most", type=int, default=160, help="seeds of a network")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--draws", type=Path, default=Path("several_directions_draws.json"))
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--output", type=Path)
    kind.add_argument("--compare", type=Path, metavar="RECORD")
    arguments = parser.parse_args()
    if arguments.compare:
        print(compared(json.loads(arguments.compare.read_text())))
        return
    began = time.monotonic()
    known = json.loads(arguments.draws.read_text()) if arguments.draws.exists() else {}
    table = []
    for number, case in enumerate(NETWORKS):
        fields, key = network(*case), str(number)
        values = {name: np.array(each) for name, each in known.get(key, {}).items()}
        while time.monotonic() - began < arguments.seconds:
            first = values["test_error"].shape[1] if values else 0
            if first >= arguments.most or (first >= 16 and _is_fine(values["test_error"])):
                break
            more = drawn(fields, range(first, first + arguments.batch))
            values = {
                name: np.concatenate([values[name], each], axis=1) if values else each
                for name, each in more.items()
            }
            known[key] = {name: each.tolist() for name, each in values.items()}
            arguments.draws.write_text(json.dumps(known))
            for row in rows(fields, values):
                test, error = row["test_error"]
                print(number, row["seeds"], f"{test:.5f} ± {error / test:.2%}", flush=True)
        table += rows(fields, values) if values else []
    arguments.output.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s")


def _is_fine(values: np.ndarray) -> bool:
    error = values.std(axis=1, ddof=1) / math.sqrt(values.shape[1])
    return bool(np.all(error <= FINE * values.mean(axis=1)))


if __name__ == "__main__":
    main()
