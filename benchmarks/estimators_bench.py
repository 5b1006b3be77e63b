"""`python -m benchmarks.estimators_bench`: the estimators against others, on data from wheels.

    python -m benchmarks.estimators_bench                                   # everything: an hour
    python -m benchmarks.estimators_bench --sets MNIST --models ridge xRFM  # a part of it
    python -m benchmarks.estimators_bench --tables            # the tables of docs/estimators.md
    python -m benchmarks.estimators_bench --clock             # wall time of the fit on MNIST

Every model is fitted on the same repeated splits, each fit in a process of its own: its test
error, its time and the memory it adds. What was measured replaces the same set, model and split
in the record and leaves the rest of it alone, so that parts may be run one by one. BLAS should
have one thread (OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1): CPU seconds have no waiting threads
in them then. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.estimator_models import MODELS, NUMBERS, OF_CLASSES, SETS

RECORD = Path(__file__).parent / "results" / "estimators.json"
PAGE = Path(__file__).parents[1] / "docs" / "estimators.md"
SPLITS = 4
FITS = 3  # of the clock


def measure(name, model, split):
    """Error, seconds and MiB of one fit, in this process."""
    from sklearn.model_selection import train_test_split

    X, y, classes = SETS[name]()
    kept = y if classes else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=split, stratify=kept)
    made = MODELS[model](name, classes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, busy = time.perf_counter(), cpu_seconds()
    made.fit(X, y)
    seconds, busy = time.perf_counter() - started, cpu_seconds() - busy
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    guess = np.ravel(made.predict(X_test))
    error = np.mean(guess != y_test) if classes else np.mean((guess - y_test) ** 2) / y_test.var()
    return {"error": float(error), "seconds": seconds, "cpu": busy, "memory": memory}


def cpu_seconds():
    """Of this process, all its threads, and its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_a_process(name, model, split):
    """The same in a child, so that memory is its own and a failure is a line."""
    SETS[name]()  # here, so that what reading a file takes is no part of the child's peak
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            found = measure(name, model, split)
        except Exception as error:
            found = {"failure": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(found))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text or '{"failure": "the process died"}')


def merged(record, name, model, split, fit):
    """The record with this fit in the place of an earlier one of the same set, model and split."""
    models = record.get(name, {})
    fits = {**models.get(model, {}), str(split): fit}
    return {**record, name: {**models, model: dict(sorted(fits.items()))}}


def read(path):
    """The record in a file: sets, models, splits; empty where there is none."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path, record):
    """In the order of the tables, numbers to four digits."""
    ordered = {
        name: {m: _rounded(record[name][m]) for m in MODELS if m in record[name]}
        for name in SETS
        if name in record
    }
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def _rounded(fits):
    return {
        split: {k: v if isinstance(v, str) else float(f"{v:.4g}") for k, v in fit.items()}
        for split, fit in fits.items()
    }


def mean_and_error(values):
    """Over splits."""
    values = np.array(values)
    spread = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return values.mean(), spread


def line(name, model, fits):
    """What is printed when a model is done with a set."""
    failures = _failures(fits)
    if failures:
        return f"| {name} | {model} | failed: {failures[0]} | | | |"
    error, spread = _error(fits)
    wall, cpu, memory = (_mean(fits, key) for key in ("seconds", "cpu", "memory"))
    return (
        f"| {name} | {model} | {error:.4f} ± {spread:.4f} | {digits(wall)} | "
        f"{digits(cpu)} | {memory:.0f} |"
    )


def _failures(fits):
    return [fit["failure"] for fit in fits.values() if "failure" in fit]


def _mean(fits, key):
    return float(np.mean([fit[key] for fit in fits.values()]))


def _error(fits):
    return mean_and_error([fit.get("error", np.inf) for fit in fits.values()])


def digits(value):
    """Seconds to two digits: 0.015, 0.12, 1.2, 12."""
    places = max(0, 1 - int(np.floor(np.log10(max(value, 1e-3)))))
    return f"{value:.{min(places, 3)}f}"


def tables(record):
    """The two tables of the documentation: errors, the least of a set in bold, and costs."""
    names = [name for name in SETS if name in record]
    head = [f"| model | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    least = {name: min(_error(fits)[0] for fits in record[name].values()) for name in names}
    errors, costs = list(head), list(head)
    for model in MODELS:
        found = [(name, record[name].get(model)) for name in names]
        cells = [_error_cell(name, model, fits, least[name]) for name, fits in found]
        errors.append(f"| {model} | {' | '.join(cells)} |")
        costs.append(f"| {model} | {' | '.join(_cost_cell(fits) for _, fits in found)} |")
    return "\n".join(errors), "\n".join(costs)


def _error_cell(name, model, fits, least):
    if not fits:
        return "–" if model in OF_CLASSES and name in NUMBERS else "not run"
    if _failures(fits):
        return "failed"
    error, spread = _error(fits)
    shown = f"**{error:.3f}**" if error == least else f"{error:.3f}"
    if len(fits) > 1:
        shown += f" ± {spread:.3f}"
    return shown if len(fits) >= SPLITS else f"{shown} ({len(fits)} of {SPLITS} splits)"


def _cost_cell(fits):
    if not fits or _failures(fits):
        return "–"
    return f"{digits(_mean(fits, 'cpu'))}, {_mean(fits, 'memory'):.0f}"


def clock():
    """Wall time of the fit on all of MNIST, width 2000, everything chosen; all threads."""
    from featurestep.estimators import OneStepClassifier

    X, y, _ = SETS["MNIST"]()
    OneStepClassifier(width=50, random_state=0).fit(X[::25], y[::25])  # what is loaded late
    seconds = []
    for _ in range(FITS):
        started = time.perf_counter()
        OneStepClassifier(width=2000, split="half", random_state=0).fit(X, y)
        seconds.append(time.perf_counter() - started)
    shown = ", ".join(f"{each:.1f}" for each in sorted(seconds))
    return (
        f"MNIST {X.shape[0]} × {X.shape[1]}, width 2000, auto: {shown} s ({os.cpu_count()} cores)"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, nargs="+", default=range(SPLITS), help="their seeds")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--record", type=Path, default=RECORD, help=f"default {RECORD}")
    parser.add_argument("--tables", action="store_true", help="print the tables and stop")
    parser.add_argument("--clock", action="store_true", help="print the wall time and stop")
    given = parser.parse_args()
    if given.tables or given.clock:
        print("\n\n".join(tables(read(given.record))) if given.tables else clock())
        return
    print("| data | model | error | fit, s | fit, CPU s | memory, MiB |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in given.sets:
        for model in given.models:
            if model in OF_CLASSES and name in NUMBERS:
                continue
            fits = {split: in_a_process(name, model, split) for split in given.splits}
            print(line(name, model, fits), flush=True)
            record = read(given.record)
            for split, fit in fits.items():
                record = merged(record, name, model, split, fit)
            write(given.record, record)


if __name__ == "__main__":
    main()
