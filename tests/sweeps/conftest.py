from __future__ import annotations

import pytest

from featurestep import Problem
from featurestep.sweeps import TASKS

from .chores import Chore


@pytest.fixture(autouse=True)
def _chores(monkeypatch):
    monkeypatch.setitem(TASKS, "chore", Chore)


@pytest.fixture
def base():
    return Problem(n=60, d=30, width=40, step_exponent=0.3, ridge=0.01, noise_std=0.1)


@pytest.fixture
def grid(base):
    """Ten ridges, 1 to 10."""
    return base.vary(ridge=[float(k) for k in range(1, 11)])
