"""A store knows the numerics behind its numbers: changed code never serves what older code made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import featurestep
from featurestep.sweeps import numerics
from featurestep.sweeps.engines.local import serial
from featurestep.sweeps.job import run_elsewhere
from featurestep.sweeps.plan import make_plan
from featurestep.sweeps.results import make_table
from featurestep.sweeps.run import execute
from featurestep.sweeps.spec import read_sweep
from featurestep.sweeps.status import earlier_results, make_status, under_numerics
from featurestep.sweeps.store import Store
from featurestep.sweeps.tasks import TASKS

from .. import command
from .studies import PROBLEM

PACKAGE = Path(featurestep.__file__).parent
STUDY = f'engine = "serial"\n{PROBLEM}\n[tasks.predict]\n'
REAL = tuple(name for name in TASKS if name != "chore")


@pytest.fixture
def package(tmp_path):
    """A copy of the package that may be changed."""
    skip = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "src" / "featurestep", ignore=skip))


@pytest.fixture
def tags(package, monkeypatch):
    """The fingerprint of every task in the copy, as it stands when asked."""

    def read():
        forget()
        return {name: TASKS[name](**{}).numerics for name in REAL}

    monkeypatch.setattr(numerics, "_SOURCES", package)
    yield read
    forget()


def forget():
    numerics.fingerprint.cache_clear()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_words_leave_the_fingerprint_as_it_is(package, tags):
    before = tags()
    regression = package / "theory" / "exact" / "regression.py"
    edit(regression, '"""The regression', '"""A regression')
    edit(regression, "    mass = at.mass\n", "    # the mass\n\n    mass = (at.mass)\n")
    edit(regression, "    train_loss: FloatArray  # (B,) L_tr", "    train_loss: object")
    for shown in ("plots/style.py", "cli/output.py", "page/theme.py", "sweeps/store.py"):
        (package / shown).write_text("changed = 1\n")
    assert tags() == before


def test_what_may_change_numbers_changes_the_fingerprint(package, tags):
    """Each edit on top of the last; a simulation does not care what the theory does."""
    numpy = "import numpy as np"
    edits = [
        ("theory/exact/regression.py", "3.0 if", "4.0 if", {"predict", "limit"}, {"simulate"}),
        ("simulation/network/step.py", numpy, f"{numpy}\nx = 1", {"simulate"}, {"predict"}),
        ("functions/quadrature.py", numpy, f"{numpy}\nx = 1", {*REAL}, set()),
        # loaded by name, on a GPU only
        ("simulation/arrays/philox_kernel.py", numpy, f"{numpy}\nx = 1", {"simulate"}, {"limit"}),
        ("sweeps/tasks/theory.py", "= 4", "= 5", {"spectrum"}, {"simulate"}),
        ("sweeps/tasks/simulate.py", "= 8", "= 9", {"simulate"}, {"predict", "spectrum"}),
    ]
    before = tags()
    for file, old, new, touched, untouched in edits:
        edit(package / file, old, new)
        after = tags()
        changed = {name for name in REAL if after[name] != before[name]}
        assert touched <= changed, file
        assert not untouched & changed, file
        before = after


@pytest.mark.parametrize("name", REAL)
def test_every_module_that_computes_is_in_the_fingerprint(name, base):
    """By what is called while a unit is computed, not by what is imported."""
    options = {"seeds": 1, "n_test": 20} if name == "simulate" else {}
    (unit,) = make_plan(read_sweep(base.replace(step_exponent=0.1), {name: options})).units
    task = unit.task
    called: set[str] = set()

    def note(frame, event, _):
        if event == "call":
            called.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        (found,) = task.compute([unit])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert isinstance(found, dict)
    covered = set(map(str, numerics.sources(type(task), task.engine).values()))
    ours = {path for path in called if path.startswith(str(PACKAGE))}
    assert len(ours) > 10
    assert ours - covered == set()


def test_other_numerics_compute_again_and_what_they_stored_stays_readable(
    package, tmp_path, monkeypatch
):
    """This package and a changed copy of it, in a program of its own, share a store."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    assert "0 stored before, 3 computed" in command.run("sweep", "run", "study.toml").stdout
    edit(package / "theory" / "exact" / "solve.py", "test_error=mean", "test_error=1.25 * mean")
    told = subprocess.run(
        [sys.executable, "-P", "-m", "featurestep", "sweep", "run", "study.toml"],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "0 stored before, 3 computed" in told
    assert "3 of predict stored by numerics" in told
    assert "3 stored before, 0 computed" in command.run("sweep", "run", "study.toml").stdout
    (other,) = command.run_json("sweep", "status", "study.toml")["earlier"]
    assert other["units"] == 3
    exported = []
    for arguments in ([], ["--numerics", other["numerics"]]):
        command.run("sweep", "export", "study.toml", "out.json", *arguments)
        exported.append(json.loads(Path("out.json").read_text())["rows"])
    own, changed = ([row["test_error"] for row in rows] for rows in exported)
    assert changed == [1.25 * error for error in own]
    assert {row["numerics"] for row in exported[1]} == {other["numerics"]}


def test_an_unknown_tag_is_refused_with_those_that_are_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    command.run("sweep", "run", "study.toml")
    refused = command.run("sweep", "export", "study.toml", "x.csv", "--numerics", "2", code=2)
    assert refused.stderr == (
        "error: --numerics must be others that have results here (there are none); got '2'\n"
    )


def test_the_plan_names_the_numerics_of_every_task(base):
    found = read_sweep(base, ["predict", "baselines"])
    assert len({task.numerics for task in found.tasks}) == 1
    assert TASKS["simulate"]().numerics != found.tasks[0].numerics


def test_a_worker_with_other_numerics_computes_nothing(base):
    plan = make_plan(read_sweep(base, ["predict"]))
    (job,) = plan.jobs({unit.key for unit in plan.units})
    (outcome,) = run_elsewhere(job, "0123456789abcdef").outcomes
    assert outcome.status == "failed"
    assert "the driver 0123456789abcdef: install the featurestep of the driver" in outcome.error
    (outcome,) = run_elsewhere(job, job.task.numerics).outcomes
    assert outcome.status == "ok"


def test_results_of_the_first_stores_are_read_by_their_number(base):
    """They had a number, raised by hand, in the fingerprint's place."""
    plan = make_plan(read_sweep(base, ["predict"]))
    with Store.in_memory() as store:
        execute(plan.under({"predict": 2}), store, serial)
        assert make_status(plan, store).count("missing") == 1
        (found,) = earlier_results(plan, store)
        assert (found.numerics, found.units) == (2, 1)
        table = make_table(under_numerics(plan, store, ["2"]), store)
    assert (table["status"], table["numerics"]) == (["ok"], ["2"])
