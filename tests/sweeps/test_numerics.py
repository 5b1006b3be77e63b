"""A store knows the numerics behind its results by the answers of probe problems."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import featurestep
from featurestep.sweeps import (
    TASKS,
    Store,
    answers_of,
    current_plan,
    difference,
    earlier_results,
    execute,
    make_plan,
    make_status,
    make_table,
    read_sweep,
    run_elsewhere,
    serial,
    tag_of,
    under_numerics,
)

from .. import command
from .studies import PROBLEM

PACKAGE = Path(featurestep.__file__).parent
STUDY = f'engine = "serial"\n{PROBLEM}\n[tasks.predict]\n'
REAL = tuple(name for name in TASKS if name != "chore")
ANSWERS = {"one": {"test_error": 0.25, "count": 2.0}, "two": {"test_error": 1e-17}}


@pytest.fixture
def package(tmp_path):
    """A copy of the package that may be changed."""
    skip = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "src" / "featurestep", ignore=skip))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A sweep that this package has run."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    assert "0 stored before, 3 computed" in command.run("sweep", "run", "study.toml").stdout


def run_copy(package: Path) -> str:
    """What the changed copy says, in a program of its own, when it runs the same sweep."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "featurestep", "sweep", "run", "study.toml"],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def changed(factor: float) -> dict[str, dict[str, float]]:
    return {**ANSWERS, "one": {"test_error": 0.25 * factor, "count": 2.0}}


@pytest.mark.parametrize("name", REAL)
def test_every_probe_has_an_answer(name):
    answers = answers_of(TASKS[name](**{}))
    assert len(answers) >= 2
    assert all(len(numbers) > 1 and "refused" not in numbers for numbers in answers.values())
    assert difference(answers, json.loads(json.dumps(answers))) == 0.0


TRACED = """
import sys, threading
from featurestep import Problem
from featurestep.sweeps import make_plan, read_sweep

def called_by(work):
    files = set()
    def note(frame, event, _):
        if event == "call" and "featurestep" in frame.f_code.co_filename:
            files.add(frame.f_code.co_filename)
    threading.setprofile(note)
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return files

name, options = {name!r}, {options!r}
base = Problem(n=60, d=30, width=40, step_exponent=0.1, ridge=0.01, noise_std=0.1)
(unit,) = make_plan(read_sweep(base, {{name: options}})).units
probing = called_by(unit.task.answer_probes)
computing = called_by(lambda: unit.task.compute([unit]))
assert len(computing) > 10, computing
assert computing <= probing, computing - probing
"""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "spectrum" else n for n in REAL]
)
def test_probes_go_through_every_module_that_computes(name):
    """By what is called, in a process where nothing is remembered from before."""
    options = {"seeds": 1, "n_test": 20} if name == "simulate" else {}
    script = TRACED.format(name=name, options=options)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_device_has_probes_of_its_own():
    pytest.importorskip("torch")
    on_device = TASKS["simulate"](device="torch")
    assert on_device.probes != TASKS["simulate"]().probes
    assert {*answers_of(on_device)} - {*answers_of(TASKS["simulate"]())} == {"drawn on a device"}


def test_rounding_is_no_difference_and_numbers_are():
    assert difference(ANSWERS, changed(1 + 1e-11)) < 1e-10
    assert difference(ANSWERS, changed(1 + 1e-6)) == pytest.approx(1e-6, rel=1e-3)
    assert difference(ANSWERS, {**ANSWERS, "two": {"test_error": -3e-16}}) < 1e-10
    assert difference(ANSWERS, {**ANSWERS, "two": {"train_loss": 1e-17}}) == float("inf")
    assert difference(ANSWERS, {"three": {"test_error": 1.0}}) == float("inf")
    assert difference(ANSWERS, {**ANSWERS, "three": {"test_error": 1.0}}) == 0.0


def test_a_store_knows_numerics_by_their_answers(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        first = store.numerics_of("predict", ANSWERS)
        assert first == tag_of(ANSWERS)
        assert store.numerics_of("predict", changed(1 + 1e-11)) == first
        second = store.numerics_of("predict", changed(1.01))
        assert second != first
    with Store.for_reading(path) as store:
        assert store.numerics_of("predict", ANSWERS) == first
        assert store.numerics_of("predict", changed(1.01)) == second
        assert store.numerics_of("predict", changed(1.02)) not in (first, second)
        assert list(store.answers("predict")) == [second, first]
        assert store.answers("limit") == {}


def test_probes_that_are_added_later_count_from_then_on(tmp_path):
    more = {**ANSWERS, "three": {"test_error": 1.0}}
    with Store.for_writing(tmp_path / "s.sqlite") as store:
        tag = store.numerics_of("predict", ANSWERS)
        assert store.numerics_of("predict", more) == tag
        assert store.numerics_of("predict", {**more, "three": {"test_error": 2.0}}) != tag


def test_moved_and_renamed_code_reads_what_was_stored(study, package):
    (package / "theory" / "exact" / "regression.py").rename(
        package / "theory" / "exact" / "ridge_regression.py"
    )
    for path in package.rglob("*.py"):
        text = path.read_text()
        path.write_text(text.replace("regression import", "ridge_regression import"))
    edit(package / "theory" / "exact" / "ridge_regression.py", '"""The regression', '"""A')
    told = run_copy(package)
    assert "3 stored before, 0 computed" in told
    assert "numerics" not in told


def test_other_numerics_compute_again_and_what_they_stored_stays_readable(study, package):
    """This package and a changed copy of it, in a program of its own, share a store."""
    edit(package / "theory" / "exact" / "solve.py", "test_error=error", "test_error=1.25 * error")
    told = run_copy(package)
    assert "0 stored before, 3 computed" in told
    assert "3 of predict stored by numerics" in told
    assert "whose check values differ from this version's by up to 2.0e-01: not used here" in told
    assert "3 stored before, 0 computed" in command.run("sweep", "run", "study.toml").stdout
    (other,) = command.run_json("sweep", "status", "study.toml")["earlier"]
    assert other["units"] == 3
    assert other["difference"] == pytest.approx(0.2)
    exported = []
    for arguments in ([], ["--numerics", other["numerics"]]):
        command.run("sweep", "export", "study.toml", "out.json", *arguments)
        exported.append(json.loads(Path("out.json").read_text())["rows"])
    own, others = ([row["test_error"] for row in rows] for rows in exported)
    assert others == [1.25 * error for error in own]
    assert {row["numerics"] for row in exported[1]} == {other["numerics"]}


def test_stores_without_answers_are_read_and_brought_up(tmp_path, monkeypatch):
    """Layout 1 had fingerprints of the sources in the place of tags, and nothing to compare."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    plan, path = make_plan(read_sweep("study.toml")), Path("study.sqlite")
    with Store.for_writing(path) as store:
        execute(plan.under({"predict": "5a36538fb2a48bcc"}, is_current=False), store, serial)
    with sqlite3.connect(path) as db:
        db.executescript("DROP TABLE numerics; PRAGMA user_version = 1;")
    db.close()
    told = "3 of predict stored by numerics 5a36538fb2a48bcc"
    why = "which cannot be compared with this version: no check values were stored: not used"
    before = path.read_bytes()
    for verb in ("status", "run"):
        text = " ".join(command.run("sweep", verb, "study.toml").stdout.split())
        assert told in text
        assert why in text
        if verb == "status":
            assert path.read_bytes() == before
    with Store.for_reading(path) as store:
        assert len(store.answers("predict")) == 1
    command.run("sweep", "export", "study.toml", "out.csv", "--numerics", "5a36538fb2a48bcc")


def test_an_unknown_tag_is_refused_with_those_that_are_known(study):
    refused = command.run("sweep", "export", "study.toml", "x.csv", "--numerics", "2", code=2)
    assert refused.stderr == (
        "error: --numerics must be a tag with results here (there are none); got '2'\n"
    )


def test_a_worker_with_other_numerics_computes_nothing(base):
    plan = make_plan(read_sweep(base, ["predict"]))
    (job,) = plan.jobs({unit.key for unit in plan.units})
    answers = answers_of(job.task)
    (outcome,) = run_elsewhere(job, {"tanh": {**answers["tanh"], "test_error": 0.0}}).outcomes
    assert outcome.status == "failed"
    assert "install the driver's version of featurestep on the worker" in outcome.error
    (outcome,) = run_elsewhere(job, answers).outcomes
    assert outcome.status == "ok"


def test_results_of_the_first_stores_are_read_by_their_number(base, tmp_path):
    """They had a number, raised by hand, in the tag's place."""
    plan = make_plan(read_sweep(base, ["predict"]))
    with Store.for_writing(tmp_path / "s.sqlite") as store:
        execute(plan.under({"predict": 2}, is_current=False), store, serial)
        plan = current_plan(plan, store)
        assert make_status(plan, store).count("missing") == 1
        (found,) = earlier_results(plan, store)
        assert (found.numerics, found.units, found.difference) == (2, 1, None)
        assert "which cannot be compared with this version: no check values were stored" in str(
            found
        )
        table = make_table(under_numerics(plan, store, ["2"]), store)
    assert (table["status"], table["numerics"]) == (["ok"], ["2"])
