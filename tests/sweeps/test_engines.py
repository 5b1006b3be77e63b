"""Engines: the same answers from each, and what a dying worker leaves behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from featurestep import EngineError, sweep
from featurestep.simulation import cluster as dask_cluster
from featurestep.sweeps import (
    EngineChoice,
    Job,
    Report,
    Store,
    after_death,
    execute,
    make_plan,
    processes,
    read_sweep,
    run_job,
)

ENGINES = ["serial", "processes", "dask"]


def executed(log: Path) -> Counter[float]:
    return Counter(float(line) for line in log.read_text().split())


def run(engine, grid, **options):
    workers = None if engine == "serial" else 2
    return sweep(grid, tasks={"chore": options}, engine=engine, workers=workers)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_unit_is_computed_once_and_a_failure_spoils_nothing(engine, grid, tmp_path):
    log = tmp_path / "log"
    found = run(engine, grid, log=str(log), fail=3.0, refuse=7.0)
    status = dict(zip(range(1, 11), found.chore_status.values, strict=True))
    assert status.pop(3) == "failed: ZeroDivisionError: no luck"
    assert status.pop(7) == "refused: the equations have no solution"
    assert set(status.values()) == {"ok"}
    for k in status:
        assert found.chore_double.values[k - 1] == 2.0 * k
    assert max(executed(log)[float(k)] for k in (5, 6, 8, 9, 10)) == 1


def test_the_traceback_is_kept(grid):
    plan = make_plan(read_sweep(grid, {"chore": {"fail": 3.0}}))
    with Store.in_memory() as store:
        execute(plan, store, EngineChoice("serial").make())
        rows = list(store.fetch([unit.key for unit in plan.units]))
    assert [place for place, row in enumerate(rows) if row.status == "failed"] == [2]
    assert 'raise ZeroDivisionError("no luck")' in rows[2].trace


@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_worker_killed_once_costs_nothing_but_time(engine, grid, tmp_path):
    found = run(engine, grid, kill=3.0, once=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert found.chore_double.values.tolist() == [2.0 * k for k in range(1, 11)]


@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_unit_that_kills_every_worker_is_given_up_alone(engine, grid):
    found = run(engine, grid, kill=3.0)
    status = found.chore_status.values.tolist()
    assert status[2].startswith("failed: its worker died")
    assert status.count("ok") == 9


def test_a_lost_job_is_halved_until_its_killer_is_alone(grid):
    plan = make_plan(read_sweep(grid, {"chore": {}}))
    (job, *_) = plan.jobs({unit.key for unit in plan.units})
    culprit = job.keys[2]
    waiting, lost, done = [job], [], []
    while waiting:
        tried = waiting.pop()
        if culprit not in tried.keys:
            done += tried.keys
            continue
        outcome = after_death(tried, "by SIGKILL")
        if isinstance(outcome, Report):
            lost += outcome.keys
        else:
            waiting += outcome
    assert lost == [culprit]
    assert sorted([*done, culprit]) == sorted(job.keys)


def test_a_failing_bundle_is_halved_until_its_culprit_is_alone(grid):
    report = run_job(Job(make_plan(read_sweep(grid, {"chore": {"fail": 5.0}})).units))
    assert [outcome.status for outcome in report.outcomes].index("failed") == 4
    assert sum(outcome.status == "ok" for outcome in report.outcomes) == 9


def test_workers_that_cannot_start_are_one_line(grid, monkeypatch):
    monkeypatch.setattr("featurestep.processes.COMMAND", "raise SystemExit('no such module')")
    with pytest.raises(EngineError, match="worker processes do not start: no such module"):
        run("processes", grid)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EngineError, match="worker processes do not start: No such file"):
        run("processes", grid)


def test_workers_have_one_thread_and_leave_stdout_alone(grid):
    plan = make_plan(read_sweep(grid, ["predict"]))
    (report,) = processes(plan.jobs({unit.key for unit in plan.units}), workers=1)
    assert "1 threads" in report.origin["blas"]
    assert "2 threads" not in report.origin["blas"]
    assert report.origin["numpy"]


def test_closing_an_engine_ends_its_workers(grid):
    plan = make_plan(read_sweep(grid, {"chore": {"pause": 0.05}}))
    running = processes(plan.jobs({unit.key for unit in plan.units}), workers=2)
    next(running)
    pool = running.gi_frame.f_locals["pool"]
    workers = [worker.process for worker in pool.workers]
    running.close()
    assert all(workers)
    assert not any(worker.lives for worker in workers)


@pytest.mark.parametrize("address", ["nowhere.json", "tcp://127.0.0.1:9", "???"])
def test_a_scheduler_that_is_not_there_is_one_line(grid, address, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_TIMEOUT", "1s")
    with pytest.raises(EngineError, match=f"no Dask scheduler at {re.escape(address)}"):
        sweep(grid, tasks=["chore"], scheduler=address)


def test_a_real_scheduler_is_used_by_its_address(grid):
    import dask
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster),  # a user's own
    ):
        found = sweep(grid, tasks=["chore"], engine="dask", scheduler=cluster.scheduler_address)
    assert set(found.chore_status.values) == {"ok"}
    assert dask.config.get("scheduler", None) is None, "nothing is left to a client that is closed"


SCRIPT = """
from featurestep import Problem
from featurestep import sweep
base = Problem(n=60, d=30, width=40, step_exponent=0.3, ridge=0.01)
print(sweep(base.vary(ridge=[0.1, 1.0]), engine={engine!r}, workers=2).predict_status.values)
"""


@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_script_without_a_main_guard(engine, tmp_path):
    """Workers of `processes` never import it; those of Dask do, and are told why they must not."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(engine=engine))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if engine == "processes":
        assert (done.returncode, done.stdout) == (0, "['ok' 'ok']\n"), done.stderr
    else:
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert "must call sweep below `if __name__ == '__main__':`" in last
        assert done.stdout == ""
