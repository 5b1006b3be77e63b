"""`featurestep bench`: the table of speeds."""

from __future__ import annotations

import pytest

from featurestep import bench as bench_module
from featurestep.bench import TimedCase, cases, grid_of, proportional

from .command import run


@pytest.fixture
def few_cases(monkeypatch):
    def chosen(device):
        yield TimedCase("a grid", grid_of(60))
        yield TimedCase("draws", proportional(60), seeds=3, options={"dtype": "mixed"})
        yield TimedCase("a spectrum", proportional(60), options={"method": "dense"}, spectrum=True)

    monkeypatch.setattr(bench_module, "cases", chosen)


@pytest.mark.usefixtures("few_cases")
def test_a_line_for_every_case(tmp_path):
    out = tmp_path / "table.txt"
    done = run("bench", "--device", "cpu", "--out", str(out))
    lines = done.stdout.splitlines()
    assert lines == out.read_text().splitlines()
    assert lines[0].startswith("machine: ")
    assert "Tflop/s" in lines[1]
    assert [line.split("  ")[0] for line in lines[2:]] == ["a grid", "draws", "a spectrum"]
    assert "relative gaps to float64 on seed 0" in lines[3]


def test_refusals():
    assert "device must be cpu, cuda or torch" in run("bench", "--device", "tpu", code=2).stderr
    assert "--out must end in .txt" in run("bench", "--out", "table.csv", code=2).stderr


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_case_is_a_problem(device):
    assert all(case.seeds >= 1 for case in cases(device))


def test_a_scheduler_that_is_not_there_is_one_line():
    pytest.importorskip("distributed")
    small = ("--n", "60", "--d", "20", "--width", "30", "--seeds", "2")
    for verb in ("simulate", "compare", "spectrum"):
        done = run(verb, *small, "--scheduler", "x.json", code=2)
        assert "scheduler must be a file that exists, or an address; got 'x.json'" in done.stderr


def test_a_scheduler_without_simulations_is_refused():
    done = run("spectrum", "--scheduler", "x.json", code=2)
    assert "--scheduler needs --seeds" in done.stderr
