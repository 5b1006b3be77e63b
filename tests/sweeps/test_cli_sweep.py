"""`featurestep sweep`: run, status, retry, export, plot, refusals and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from featurestep.sweeps import Store

from .. import command
from .studies import PROBLEM, stored

EXAMPLE = Path(__file__).parents[2] / "examples" / "ridge_sweep.toml"
SMALL = f"""
engine = "serial"
{PROBLEM}
[tasks.predict]
[tasks.simulate]
seeds = 2
n_test = 50
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text(SMALL)
    return path


def run(*arguments: str, code: int = 0):
    return command.run("sweep", *arguments, code=code)


def test_run_then_run_again(study):
    first = run("run", "study.toml").stdout
    assert "9 units, 0 stored before, 9 computed" in first
    assert "now 9 ok, 0 refused, 0 failed; store study.sqlite" in first
    assert "9 units, 9 stored before, 0 computed" in run("run", "study.toml").stdout


def test_the_example_file_is_planned():
    assert "189 units" in run("status", str(EXAMPLE)).stdout


def test_status_before_and_after(study):
    before = json.loads(run("status", "study.toml", "--json").stdout)
    assert (before["units"], before["missing"]) == (9, 9)
    assert not Path("study.sqlite").exists()
    run("run", "study.toml")
    after = json.loads(run("status", "study.toml", "--json").stdout)
    assert (after["ok"], after["executions"], len(after["origins"])) == (9, 9, 1)
    text = run("status", "study.toml").stdout
    assert "simulate" in text
    assert "numpy" in text


def test_failures_set_the_exit_code_and_retry_mends_them(study):
    broken = SMALL.replace("[tasks.simulate]", "[tasks.chore]\nfail = 0.1\n[tasks.simulate]")
    study.write_text(broken)
    told = run("run", "study.toml", code=1).stdout
    assert "11 ok, 0 refused, 1 failed" in told
    assert "1 of chore failed: ZeroDivisionError: no luck" in told
    run("run", "study.toml", code=1)
    study.write_text(broken.replace("fail = 0.1", ""))
    told = json.loads(run("retry", "study.toml", "--json").stdout)
    assert (told["known"], told["computed"], told["failed"], told["executions"]) == (11, 1, 0, 13)


def test_refused_points_are_no_failure(study):
    study.write_text(
        SMALL.replace("step_exponent = 0.3", "step_exponent = 0.25") + "[tasks.limit]\n"
    )
    assert "9 ok, 3 refused, 0 failed" in run("run", "study.toml").stdout


@pytest.mark.parametrize("ending", ["nc", "parquet", "csv", "json"])
def test_export(study, ending):
    run("run", "study.toml")
    assert f"wrote out.{ending}" in run("export", "study.toml", f"out.{ending}").stdout
    assert Path(f"out.{ending}").stat().st_size > 100


def test_plot(study):
    run("run", "study.toml")
    assert "Figure: out.svg" in run("plot", "study.toml", "out.svg").stdout
    assert Path("out.svg").read_text().startswith("<?xml")
    refused = run("plot", "study.toml", "out.svg", "--at", "ridge=7", code=2).stderr
    assert refused.startswith("error: --at must give ridge one of its values")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[grid]\nridge = []", "grid.ridge must not be empty; got []"),
        ("[grid]\nridge = ['a']", "grid.ridge must be > 0 (a number); got 'a'"),
        ("[grid]\nlambda = [1]", "grid.lambda is not a known name here"),
        ("[grid]\nstep_size = [1]\nstep_exponent = [1]", "grid.step_size must not be varied"),
        ("[grid", "FILE must be valid TOML"),
    ],
)
def test_a_bad_file_starts_nothing(study, content, message):
    study.write_text(SMALL.replace("[grid]\nridge = [0.01, 0.1, 1.0]", content))
    for verb in ("run", "retry", "status"):
        refused = run(verb, "study.toml", code=2)
        assert refused.stderr.startswith(f"error: {message}")
        assert refused.stderr.count("\n") == 1
        assert refused.stdout == ""
    assert os.listdir() == ["study.toml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "gpu"], "--engine must be one of processes, serial, dask; got 'gpu'"),
        (["--engine", "processes", "--workers", "x"], "--workers must be a whole number"),
        (["--engine", "serial", "--scheduler", "a"], "--scheduler needs the engine dask"),
        (["--store", "no/s.sqlite"], "store must be in a directory that exists"),
    ],
)
def test_bad_options_start_nothing(study, arguments, message):
    refused = run("run", "study.toml", *arguments, code=2)
    assert refused.stderr.startswith(f"error: {message}")
    assert os.listdir() == ["study.toml"]


def test_a_missing_file_and_a_missing_store(study):
    assert "FILE must be readable" in run("run", "no.toml", code=2).stderr
    assert "there is no store" in run("export", "study.toml", "x.csv", code=1).stderr
    assert "OUTPUT must end in" in run("export", "study.toml", "x.xls", code=2).stderr


def test_a_store_in_use_is_refused(study):
    with Store.for_writing(Path("study.sqlite")):
        refused = run("run", "study.toml", code=1).stderr
    assert f"is in use by process {os.getpid()}" in refused
    assert refused.count("\n") == 1


def test_examples_in_the_help_are_valid(study):
    """With the file of the repository's examples in its place, made small."""
    Path("examples").mkdir()
    small = EXAMPLE.read_text().replace("seeds = 4", "seeds = 1\nn_test = 50")
    Path("examples/ridge_sweep.toml").write_text(small.replace("count = 7", "count = 2"))
    verbs = ("run", "retry", "status", "export", "plot")
    lines = [arguments for verb in verbs for arguments in command.examples("sweep", verb)]
    alone = [arguments for arguments in lines if "dask" not in arguments]
    assert len(alone) >= 8
    for arguments in alone:
        command.run(*arguments)


def test_the_file_in_the_help_is_valid(study):
    text = run("--help").stdout
    lines = text[text.index("[problem]") : text.index("Options:")].splitlines()
    study.write_text("\n".join(line.strip() for line in lines))
    assert "105 units" in run("status", "study.toml").stdout


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_ctrl_c_keeps_what_is_done(study, engine):
    study.write_text(SMALL.replace("seeds = 2", "seeds = 1000"))
    process = subprocess.Popen(
        [sys.executable, "-m", "featurestep", "sweep", "run", "study.toml", "--engine", engine],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as in a terminal
    )
    while stored(Path("study.sqlite")) < 30 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130, told
    kept = stored(Path("study.sqlite"))
    assert told == (
        f"interrupted: {kept} of 3003 units are kept in study.sqlite; run it again to go on\n"
    )
