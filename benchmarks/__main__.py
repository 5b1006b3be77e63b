"""Every speed table, or those named, one after the other.

    python -m benchmarks                       # prints all: make bench
    python -m benchmarks --record sweep        # also writes benchmarks/results/sweep.txt

The site shows the recorded tables, each with its machine and how busy that was.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    covariance_bench,
    files_bench,
    gpu_bench,
    losses_bench,
    page_bench,
    predict_bench,
    reuse_bench,
    simulate_bench,
    spectrum_bench,
    steps_bench,
    sweep_bench,
)
from featurestep.bench import machine

RESULTS = Path(__file__).parent / "results"
TABLES: dict[str, Callable[[], None]] = {
    "predict": predict_bench.main,
    "losses": losses_bench.main,
    "covariance": covariance_bench.main,
    "reuse": reuse_bench.main,
    "simulate": simulate_bench.main,
    "spectrum": spectrum_bench.main,
    "steps": steps_bench.main,
    "sweep": sweep_bench.main,
    "gpu": gpu_bench.main,
    "page": page_bench.main,
    "files": files_bench.main,
}


class _Both(io.StringIO):
    """Keeps what is printed, and prints it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]
        return super().write(text)


def surroundings() -> str:
    """The machine, the day, and how many others computed on it when the table was begun."""
    load = f", load average {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    return f"{machine('cpu')}; {time.strftime('%-d %B %Y')}{load}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print, and record what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--record", action="store_true", help=f"write to {RESULTS.name}/TABLE.txt")
    options = parser.parse_args(arguments)
    if unknown := set(options.tables) - set(TABLES):
        parser.error(f"TABLE must be one of {', '.join(TABLES)}; got {', '.join(sorted(unknown))}")
    for name in options.tables or TABLES:
        where, printed = surroundings(), _Both()
        with contextlib.redirect_stdout(printed):
            TABLES[name]()
        print()
        if options.record:
            text = f"{where}\npython -m benchmarks {name}\n\n{printed.getvalue()}"
            (RESULTS / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
