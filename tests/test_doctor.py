"""`featurestep doctor`: a known case, and a wrong value of it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from featurestep import Problem
from featurestep.cli import machine_commands
from tests.command import run, run_json
from tests.theory.roads import without_higher_degrees

VALUES = json.loads((Path(__file__).parent / "theory" / "exact_values.json").read_text())


def test_the_known_values_are_those_of_a_tested_program() -> None:
    """The independent program has the same case without blocks of degree 2 and 3."""
    fields = {"residual": "labels", "initial": "sphere", **machine_commands.KNOWN_PROBLEM}
    (case,) = [case for case in VALUES if case["problem"] == fields]
    plain = without_higher_degrees(Problem(**fields))
    for name, value in machine_commands.KNOWN.items():
        assert case["numbers"][name] == pytest.approx(getattr(plain, name), rel=1e-6)
        assert value == pytest.approx(case["numbers"][name], rel=3.0 / fields["d"])


def test_it_is_healthy_here() -> None:
    found = run_json("doctor", "--seeds", "4")
    assert found["healthy"]
    assert found["machine"]["numpy"][0].isdigit()
    assert "threads" in found["machine"]["BLAS"]
    assert {row["quantity"] for row in found["trained"]} == set(machine_commands.KNOWN)
    assert all(abs(row["gap"]) < 1e-6 for row in found["predicted"])


def test_a_wrong_value_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_commands, "KNOWN", {"test_error": 1.9691104097233907 * (1 + 3e-6)})
    found = [{"quantity": "q", "simulated": 1.0, "predicted": 1.0, "z": 0.0, "agrees": True}]
    monkeypatch.setattr(machine_commands, "trained_case", lambda seeds: found)
    printed = run("doctor", code=1).stdout
    assert "DISAGREES" in printed
    assert "Something is wrong." in printed
