"""Where theory and simulation agree within 1, 3 and 10 %: a map over the whole domain.

    python -m benchmarks.validity                 # simulate what is missing, predict, draw the map
    python -m benchmarks.validity --seconds 0     # the same without simulating anything

Problems are drawn at random from the domain that the tests declare (all activations, targets, laws,
residuals and starts, steps of n⁰ to n^¾), at sizes that a processor trains in seconds. Each is
trained with several seeds; means and standard errors are kept in `tests/agreement/networks.csv`, so
that only missing problems are simulated. The 80 larger networks of `benchmarks.large_networks` join
them. The command writes `docs/validity-map.md` and `docs/images/validity.png`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_networks import QUANTITIES, observed
from featurestep import FeaturestepError, InvalidProblem, Problem, estimate
from tests.draws import ACTIVATIONS, LAWS, TARGETS, log_uniform

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "agreement" / "networks.csv"
LARGE = ROOT / "tests" / "agreement" / "large_networks.json"
COUNT = 240
FEWEST, MOST = 8, 96  # seeds of a problem, as many as its share of the work allows
WORK = 1e12  # flops for one problem, all seeds together
LARGEST = {"d": 1500, "width": 2500, "n_step": 12_000}
FIELDS = (
    "activation", "target", "n", "d", "width", "n_step", "step_exponent", "ridge", "noise_std",
    "readout", "residual", "initial", "centre",
)  # fmt: skip


def random_case(rng: np.random.Generator) -> dict[str, Any]:
    """The fields of one problem of the domain; drawn again where sizes or rules do not allow it."""
    while True:
        n = round(log_uniform(rng, 400.0, 1500.0))
        d = round(n * log_uniform(rng, 0.05, 5.0))
        fields = {
            "activation": ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
            "target": TARGETS[rng.integers(len(TARGETS))],
            "n": n,
            "d": d,
            "width": round(n * log_uniform(rng, 0.1, 5.0)),
            "n_step": round(d * log_uniform(rng, 0.25, 100.0)),
            "step_exponent": round(float(rng.uniform(0.0, 0.75)), 4),
            "ridge": float(f"{log_uniform(rng, 1e-4, 10.0):.3g}"),
            "noise_std": float(rng.choice([0.0, 0.1, 1.0])),
            "readout": LAWS[rng.integers(len(LAWS))],
            "residual": ("labels", "full")[rng.integers(2)],
            "initial": ("sphere", "gaussian")[rng.integers(2)],
            "centre": bool(rng.integers(2)),
        }
        if all(50 <= fields[name] <= most for name, most in LARGEST.items()) and _is_one(fields):
            return fields


def _is_one(fields: dict[str, Any]) -> bool:
    try:
        Problem(**fields)
    except InvalidProblem as error:  # abs takes no step, full wants a centred start
        if error.parameter not in ("residual", "activation"):
            raise
        return False
    return True


def cases(count: int = COUNT, seed: int = 4980) -> list[dict[str, Any]]:
    """The problems, always the same."""
    rng = np.random.default_rng(seed)
    return [random_case(rng) for _ in range(count)]


def seeds_for(problem: Problem) -> int:
    """As many networks as the work of one problem allows."""
    flops = float(estimate(problem, seeds=1).flops)
    return int(min(MOST, max(FEWEST, WORK // flops)))


def row_of(fields: dict[str, Any], table: dict[str, Any]) -> dict[str, str]:
    """One problem and what was observed, as text."""
    row = {name: _text(fields[name]) for name in FIELDS}
    row["seeds"] = str(table["seeds"])
    for name in QUANTITIES:
        mean, error = table[name]
        row[name], row[f"{name}_error"] = f"{mean:.7g}", f"{error:.3g}"
    return row


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (tuple, list, bool)) else str(value)


def _value(name: str, text: str) -> Any:
    if name in ("n", "d", "width", "n_step", "centre"):
        return json.loads(text)
    if name in ("step_exponent", "ridge", "noise_std"):
        return float(text)
    return json.loads(text) if text.startswith("[") else text


def read_record(path: Path = RECORD) -> list[dict[str, Any]]:
    """The record's rows in the form of `large_networks.json`."""
    if not path.exists():
        return []
    rows = []
    for line in csv.DictReader(io.StringIO(path.read_text())):
        row: dict[str, Any] = {"problem": {name: _value(name, line[name]) for name in FIELDS}}
        row["seeds"] = int(line["seeds"])
        for name in QUANTITIES:
            row[name] = [float(line[name]), float(line[f"{name}_error"])]
        rows.append(row)
    return rows


def same(fields: dict[str, Any]) -> str:
    """A problem's fields as one text, to compare by."""
    return json.dumps(fields, sort_keys=True)


def simulate_missing(path: Path, count: int, seconds: float, device: str) -> None:
    """Train what the record lacks, in order, and keep every row the moment it is known."""
    done = {same(row["problem"]) for row in read_record(path)}
    columns = [*FIELDS, "seeds", *(f"{q}{end}" for q in QUANTITIES for end in ("", "_error"))]
    began = time.monotonic()
    for i, fields in enumerate(cases(count)):
        if same(json.loads(same(fields))) in done:
            continue
        if time.monotonic() - began > seconds:
            print("out of time: run the command again for the rest")
            return
        try:
            table = observed(fields, seeds_for(Problem(**fields)), device)
        except FeaturestepError as error:
            print(f"{i}: not simulated: {error}", flush=True)
            continue
        is_new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row_of(fields, table))
        mean, error_bar = table["test_error"]
        took = time.monotonic() - began
        print(
            f"{i}: {mean:.5f} ± {error_bar:.5f}, {table['seeds']} seeds ({took:.0f} s)", flush=True
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=COUNT, help="problems in all")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the simulations")
    parser.add_argument("--record", type=Path, default=RECORD)
    chosen = parser.parse_args(arguments)
    simulate_missing(chosen.record, chosen.count, chosen.seconds, chosen.device)
    if chosen.record == RECORD:
        from benchmarks import validity_map

        validity_map.write()


if __name__ == "__main__":
    main()
