"""A driver killed at random moments: nothing is lost, nothing is done twice, nobody stays."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from featurestep.sweeps import Store, current_plan, export, load_sweep, make_plan

from .. import command
from .studies import PROBLEM, stored

STUDY = f"""
{PROBLEM}
step_size = [0.5, 1.0]
[tasks.predict]
[tasks.simulate]
seeds = SEEDS
n_test = 100
[engine]
workers = 2
"""


def start(path: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "featurestep", "sweep", "run", str(path)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def table(path: Path, name: str) -> bytes:
    plan = make_plan(load_sweep(path))
    with Store.for_reading(path.with_suffix(".sqlite")) as store:
        return export(current_plan(plan, store), store, path.with_name(name)).read_bytes()


@pytest.mark.parametrize(
    ("kills", "seeds"), [(2, 50), pytest.param(20, 400, marks=pytest.mark.slow)]
)
def test_a_killed_driver_resumes_to_the_same_table(tmp_path, kills, seeds):
    moments = random.Random(kills)
    for name in ("whole", "killed"):
        (tmp_path / f"{name}.toml").write_text(STUDY.replace("SEEDS", str(seeds)))
    killed, store = tmp_path / "killed.toml", tmp_path / "killed.sqlite"
    for _ in range(kills):
        process, before = start(killed), stored(store)
        more = moments.choice([0, 0, 6, 30, 60])
        while stored(store) < before + more and process.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.8 if more == 0 else 0.02))
        assert process.poll() is None, "the sweep ended before it was killed"
        workers = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive, "a worker outlived its driver"
    process = start(killed)
    _, told = process.communicate()
    assert process.returncode == 0, told
    command.run("sweep", "run", str(tmp_path / "whole.toml"), "--engine", "serial")
    plan = make_plan(load_sweep(killed))
    with Store.for_reading(store) as opened:
        plan = current_plan(plan, opened)
        rows = list(opened.fetch([unit.key for unit in plan.units]))
    assert len(rows) == len(plan.units) == 6 * (1 + seeds)
    assert {row.executions for row in rows} == {1}
    assert table(killed, "killed.csv") == table(tmp_path / "whole.toml", "whole.csv")
