"""Spectra of training features on rows of the step, recorded for `test_reused_rows`.

`python -m tests.agreement.reused_spectra cuda` draws problems by a seed, simulates them and writes
`reused_spectra.json`: means and standard deviations over the networks of the largest singular
values of F/√n, of squared overlaps with H_0(κ) … H_3(κ), and of the traces m(−λ) at `PLACES`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import simulated_spectrum
from featurestep.core.types import FloatArray

from .reused_rows import LAWS, STEPS, drawn, problem_of

RECORD = Path(__file__).with_name("reused_spectra.json")
COUNT, SEED, NETWORKS, N = 24, 20261120, 10, 3000
PLACES = (0.01, 0.1, 1.0)  # λ of m(−λ) = (1/N) tr(FᵀF/n + λ)⁻¹
TOP, DEGREES = 6, 4


def drawn_problems() -> list[dict[str, Any]]:
    """All laws and steps; a third has half of the rows."""
    rng = np.random.default_rng(SEED)
    found = [drawn(rng, LAWS[i % 4], STEPS[i // 4 % 4], N) for i in range(COUNT)]
    return [{**f, "rows": "half" if i % 3 == 2 else "same"} for i, f in enumerate(found)]


def _mean_and_sd(values: FloatArray) -> dict[str, Any]:
    """Over the first axis."""
    parts = {"mean": values.mean(axis=0), "sd": values.std(axis=0, ddof=1)}
    return {name: [[float(f"{v:.6g}") for v in row] for row in np.atleast_2d(part)]
            for name, part in parts.items()}  # fmt: skip


def observed(fields: dict[str, Any], device: str, networks: int = NETWORKS) -> dict[str, Any]:
    """What is recorded of one problem."""
    problem = problem_of(fields)
    found = simulated_spectrum(problem, seeds=networks, top=TOP, device=device, drawn="device")
    draws = found.dataset.isel(variant=0)
    eigenvalues = draws["eigenvalue"].values  # (seeds, N)
    traces = np.stack([(1.0 / (eigenvalues + z)).mean(axis=1) for z in PLACES], axis=1)
    overlaps = draws["hermite_overlap"].values[:, :TOP, :DEGREES]
    return {
        "problem": fields,
        "networks": networks,
        "singular_value": _mean_and_sd(draws["singular_value"].values[:, :TOP]),
        "overlap": _mean_and_sd(overlaps),
        "trace": _mean_and_sd(traces),
    }


def main(device: str, path: Path = RECORD) -> None:
    """Simulate what a record does not have yet."""
    known = json.loads(path.read_text()) if path.exists() else []
    for fields in drawn_problems()[len(known) :]:
        known.append(observed(fields, device))
        path.write_text("[\n" + ",\n".join(map(json.dumps, known)) + "\n]\n")
        print(len(known), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
