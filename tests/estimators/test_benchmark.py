"""The benchmark's record, its tables in the documentation, and what the text says of them."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from benchmarks.estimator_models import MODELS, NUMBERS, OF_CLASSES, SETS
from benchmarks.estimators_bench import (
    PAGE,
    RECORD,
    SPLITS,
    cpu_seconds,
    digits,
    in_a_process,
    merged,
    read,
    tables,
    write,
)


@pytest.fixture(scope="module")
def record():
    return read(RECORD)


def test_every_model_ran_on_every_set(record):
    assert list(record) == list(SETS)
    for name, models in record.items():
        left_out = OF_CLASSES if name in NUMBERS else ()
        assert set(models) == set(MODELS) - set(left_out), name
        for model, fits in models.items():
            assert list(fits) == [str(split) for split in range(SPLITS)], (name, model)
            assert all({"error", "cpu", "memory"} <= set(fit) for fit in fits.values())


def test_the_documentation_has_the_tables_of_the_record(record):
    page = PAGE.read_text()
    for table in tables(record):
        assert table in page, "python -m benchmarks.estimators_bench --tables"


def test_parts_are_merged_and_survive_the_file(tmp_path):
    fit = {"error": 0.25, "seconds": 1.0, "cpu": 1.5, "memory": 3.0}
    path = tmp_path / "record.json"
    assert read(path) == {}
    first = merged(merged({}, "digits", "ridge", 1, fit), "digits", "xRFM", 0, fit)
    write(path, first)
    assert read(path) == first
    later = merged(read(path), "digits", "ridge", 0, fit)
    later = merged(later, "digits", "ridge", 1, {**fit, "error": 0.5})
    assert [each["error"] for each in later["digits"]["ridge"].values()] == [0.25, 0.5]
    assert later["digits"]["xRFM"] == first["digits"]["xRFM"] == {"0": fit}
    assert first["digits"]["ridge"] == {"1": fit}


def test_the_least_error_is_bold_and_what_is_missing_is_said():
    def fits(*errors):
        cost = {"seconds": 1.0, "cpu": 0.0151, "memory": 3.2}
        return {str(k): {"error": e, **cost} for k, e in enumerate(errors)}

    models = {
        "ridge": fits(0.1, 0.1, 0.5, 0.1),
        "xRFM": fits(0.1, 0.2),
        "MLP, torch": {"0": {"failure": "no"}},
    }
    errors, costs = tables({"digits": models})
    assert "| ridge | 0.200 ± 0.100 |" in errors
    assert "| xRFM | **0.150** ± 0.050 (2 of 4 splits) |" in errors
    assert "| boosted trees | not run |" in errors
    assert "| MLP, torch | failed |" in errors
    assert "| xRFM | 0.015, 3 |" in costs


def test_seconds_have_two_digits():
    assert [digits(s) for s in (0.0151, 0.153, 1.53, 15.3, 153.0)] == [
        "0.015",
        "0.15",
        "1.5",
        "15",
        "153",
    ]


def test_work_of_other_threads_counts():
    def work():
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            np.ones(100).sum()

    before = cpu_seconds()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert cpu_seconds() - before > 0.04


def test_a_fit_is_measured_in_a_process_of_its_own():
    found = in_a_process("diabetes", "ridge", 0)
    assert 0.3 < found["error"] < 0.8
    assert found["cpu"] > 0
    assert "failure" in in_a_process("diabetes", "no such model", 0)


FEW = ("single index", "multi index")
HALF, REUSE, RANDOM = "one step, half", "one step, reuse", "random features"
LOGISTIC = "one step, logistic"
# Set, worse, better: by two standard errors of the paired difference at least.
BEHIND = [
    *(
        (name, worse, REUSE)
        for name in FEW
        for worse in (RANDOM, "MLP, scikit-learn", "MLP, torch")
    ),
    *((name, REUSE, "xRFM") for name in FEW),
    ("breast cancer", REUSE, LOGISTIC),
    ("MNIST", LOGISTIC, REUSE),
    ("MNIST", RANDOM, HALF),
    ("MNIST", HALF, REUSE),
    ("MNIST", HALF, "xRFM"),
    ("MNIST", REUSE, "kernel ridge, RBF"),
    *(("diabetes", worse, RANDOM) for worse in ("boosted trees", "xRFM", "MLP, torch")),
]
LEVEL = [
    *(("MNIST", REUSE, other) for other in ("xRFM", "MLP, scikit-learn", "MLP, torch")),
    *(("digits", REUSE, other) for other in ("kernel ridge, RBF", "xRFM")),
    ("digits", HALF, RANDOM),
    *((name, own, RANDOM) for name in ("diabetes", "breast cancer") for own in (HALF, REUSE)),
    ("digits", REUSE, LOGISTIC),
]


def paired(record, name, left, right):
    """Mean difference over the splits, in its standard errors."""
    fits = record[name]
    apart = np.array([fits[left][k]["error"] - fits[right][k]["error"] for k in fits[left]])
    return apart.mean() / (apart.std(ddof=1) / len(apart) ** 0.5)


def test_the_text_says_what_the_numbers_say(record):
    for name, worse, better in BEHIND:
        assert paired(record, name, worse, better) > 2, (name, worse, better)
    for name, one, other in LEVEL:
        assert abs(paired(record, name, one, other)) < 2, (name, one, other)
    for name, models in record.items():
        costs = [np.mean([f["cpu"] for f in models[m].values()]) for m in (REUSE, HALF)]
        assert 0.95 < costs[0] / costs[1] < 1.55, name  # 1.0 to 1.5
    for name, times in (("MNIST", 7), ("digits", 14)):
        slow, quick = (
            np.mean([f["cpu"] for f in record[name][m].values()]) for m in (LOGISTIC, REUSE)
        )
        assert round(slow / quick) == times
    splits = record["MNIST"][REUSE]
    assert all(record["MNIST"][LOGISTIC][k]["error"] > splits[k]["error"] for k in splits)
    for name, share in zip(FEW, (0.16, 0.27), strict=True):  # a sixth, a quarter
        one, other = (
            np.mean([f["error"] for f in record[name][m].values()]) for m in (REUSE, RANDOM)
        )
        assert one / other == pytest.approx(share, abs=0.02)
