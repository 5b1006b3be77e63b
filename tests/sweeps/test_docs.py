"""The page on sweeps: its files are read. Its Python runs with the other examples of the docs."""

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
