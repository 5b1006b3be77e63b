"""`bench` and `doctor`: how fast this machine simulates, and whether it computes a known case."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import __version__
from ..bench import bench as run_bench
from ..core.checks import check_file, write_whole
from ..core.display import Table
from ..core.problem import Problem
from ..core.threads import blas_libraries, cores
from ..meeting.comparison import compare
from ..sweeps import installed
from ..theory import predict
from .options import json_option
from .output import show_json, show_notes, show_table

REQUIRED = (
    "numpy", "scipy", "threadpoolctl", "xarray", "matplotlib", "click", "rich",
)  # fmt: skip
OPTIONAL = ("torch", "dask", "flask", "plotly", "pyarrow", "scikit-learn")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Computed where tests hold this program to one that shares no code with it, to some nine digits.
KNOWN_PROBLEM: dict[str, Any] = {
    "activation": "relu",
    "target": "H1 + H2/sqrt(2)",
    "readout": "constant",
    "n": 2000,
    "d": 1000,
    "width": 1500,
    "n_step": 2000,
    "step_size": 38.72983346207417,
    "ridge": 0.01,
    "noise_std": 0.2,
}
KNOWN = {
    "test_error": 1.9738813578540302,
    "train_loss": 0.30163894550723613,
    "train_mse": 0.2337468579308718,
}
MAX_RELATIVE_GAP = 1e-6
_SIZE_DIVISOR = 5  # the network that is trained has sizes smaller by this


@click.command()
@click.option(
    "--device",
    metavar="NAME",
    default="cpu",
    show_default=True,
    help="cpu, cuda, or torch (on the CPU)",
)
@click.option("--out", metavar="FILE", help="also write the table to a file")
def bench(device: str, out: str | None) -> None:
    """Measure the speed of simulations on this machine.

    Prints the machine, its rates, and one line for each case as it ends: seconds, seconds per
    draw, flops per second, and their share of the rate of matrix products. About a minute.

    \b
    Examples
      featurestep bench
      featurestep bench --device cuda --out h200.txt
    """
    if out is not None:
        check_file("--out", out, (".txt",))
    lines: list[str] = []

    def show(line: str) -> None:
        click.echo(line)
        lines.append(line)

    run_bench(device, show=show)
    if out is not None:
        write_whole("--out", Path(out), ("\n".join(lines) + "\n").encode())


@click.command()
@click.option("--seeds", metavar="K", default=8, show_default=True, help="networks to train")
@json_option
def doctor(seeds: int, as_json: bool) -> None:
    """Check this installation by a case with known values.

    Prints versions and settings of threads. The case is predicted and compared with its known
    values; then networks of a fifth of the size are trained and compared with their prediction.
    Exit code 1 if either disagrees. Include the whole output when you report a problem.

    \b
    Examples
      featurestep doctor
      featurestep doctor --json
    """
    machine = {**versions(), **arithmetic()}
    predicted, trained = predicted_case(), trained_case(seeds)
    notes = complaints(machine, predicted, trained)
    healthy = all(row["agrees"] for row in (*predicted, *trained))
    if as_json:
        case = {"predicted": predicted, "trained": trained}
        show_json({"machine": machine, **case, "notes": notes, "healthy": healthy})
    else:
        for name, text in machine.items():
            click.echo(f"{name:<18} {text}")
        _show(predicted, ("here", "known", "gap"))
        _show(trained, ("simulated", "predicted", "z"))
        show_notes(notes)
        click.echo("This machine computes the known case." if healthy else "Something is wrong.")
    if not healthy:
        sys.exit(1)


def _show(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    lines = [
        (row["quantity"], *(row[name] for name in columns), "ok" if row["agrees"] else "DISAGREES")
        for row in rows
    ]
    show_table(Table.of(("quantity", *columns, "verdict"), lines))


def versions() -> dict[str, str]:
    """This package, Python, and every dependency that is or could be here."""
    found = {"featurestep": __version__, "python": platform.python_version()}
    found["platform"] = platform.platform()
    for name in REQUIRED + OPTIONAL:
        found[name] = installed(name, "not installed")
    return found


def arithmetic() -> dict[str, str]:
    """Cores, BLAS libraries with their threads, the settings behind them, and precision."""
    settings = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    smallest = np.array([5e-324]) * 1.0  # 0 where a library has switched subnormal numbers off
    return {
        "cores": str(cores()),
        "BLAS": blas_libraries(),
        "thread settings": ", ".join(settings) or "none",
        "float64 epsilon": f"{np.finfo(np.float64).eps:.3g}",
        "subnormal numbers": "kept" if smallest[0] > 0 else "flushed to 0",
    }


def predicted_case() -> list[dict[str, Any]]:
    """The known case against its known values."""
    found = predict(Problem(**KNOWN_PROBLEM), method="exact")
    rows = []
    for name, known in KNOWN.items():
        here = float(getattr(found, name))
        gap = here / known - 1.0
        agrees = bool(abs(gap) <= MAX_RELATIVE_GAP)
        rows.append({"quantity": name, "here": here, "known": known, "gap": gap, "agrees": agrees})
    return rows


def small_case() -> Problem:
    """The known case at a size that trains in a moment, the step in the same units of √N."""
    sizes = {name: KNOWN_PROBLEM[name] // _SIZE_DIVISOR for name in ("n", "d", "width", "n_step")}
    step = KNOWN_PROBLEM["step_size"] / _SIZE_DIVISOR**0.5
    return Problem(**{**KNOWN_PROBLEM, **sizes, "step_size": step})


def trained_case(seeds: int) -> list[dict[str, Any]]:
    """Trained networks against their prediction, judged as by `compare`."""
    shown = ("quantity", "simulated", "predicted", "z")
    return [
        {**{name: getattr(row, name) for name in shown}, "agrees": row.passes()}
        for row in compare(small_case(), seeds=seeds).rows
        if row.quantity in KNOWN
    ]


def complaints(
    machine: dict[str, str], predicted: list[dict[str, Any]], trained: list[dict[str, Any]]
) -> list[str]:
    """What may be wrong, in words."""
    notes = []
    if machine["subnormal numbers"] != "kept":
        notes.append("some library flushes subnormal numbers to 0 for the whole process")
    if not all(row["agrees"] for row in predicted):
        notes.append(
            "try OPENBLAS_NUM_THREADS=1, then another build of NumPy and SciPy: the predicted "
            f"case is off by more than {MAX_RELATIVE_GAP:g}"
        )
    if not all(row["agrees"] for row in trained):
        notes.append("try other seeds: trained networks disagree with their prediction")
    return notes
