"""The page on sweeps: its files are read, its Python runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from featurestep.sweeps import make_plan, read_sweep

PAGE = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text()
FILES = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
BASE = "[problem]\nn = 200\nd = 100\nwidth = 150\nridge = 0.1\nstep_exponent = 0.3\n"


@pytest.mark.parametrize("text", FILES)
def test_every_file_is_valid(text):
    whole = text if "[problem]" in text else BASE + text + "[tasks.predict]\n"
    plan = make_plan(read_sweep(tomllib.loads(whole)))
    assert len(plan.units) >= 3


def test_the_first_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[0]
    names: dict[str, object] = {}
    exec(code, names)
    found = names["found"]
    assert found.predict_test_error.dims == ("ridge",)
    assert found.simulate_test_error.mean("seed").dims == ("variant", "ridge")
