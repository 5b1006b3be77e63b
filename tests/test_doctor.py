"""`featurestep doctor`: the known case is the independent program's, and a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from featurestep.cli import machine_commands
from tests.command import run, run_json

VALUES = json.loads((Path(__file__).parent / "theory" / "exact_values.json").read_text())


def test_the_known_values_are_those_of_the_independent_program() -> None:
    fields = {"residual": "labels", "initial": "sphere", **machine_commands.KNOWN_PROBLEM}
    (case,) = [case for case in VALUES if case["problem"] == fields]
    for name, value in machine_commands.KNOWN.items():
        assert case["numbers"][name] == value


def test_it_is_healthy_here() -> None:
    found = run_json("doctor", "--seeds", "4")
    assert found["healthy"]
    assert found["machine"]["numpy"][0].isdigit()
    assert "threads" in found["machine"]["BLAS"]
    assert {row["quantity"] for row in found["trained"]} == set(machine_commands.KNOWN)
    assert all(abs(row["gap"]) < 1e-6 for row in found["predicted"])


def test_a_wrong_value_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_commands, "KNOWN", {"test_error": 1.9730003695028058 * (1 + 3e-6)})
    found = [{"quantity": "q", "simulated": 1.0, "predicted": 1.0, "z": 0.0, "agrees": True}]
    monkeypatch.setattr(machine_commands, "trained_case", lambda seeds: found)
    printed = run("doctor", code=1).stdout
    assert "DISAGREES" in printed
    assert "Something is wrong." in printed
