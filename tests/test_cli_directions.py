"""Targets of several directions on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from featurestep import Problem, learnable, predict, sweep

from . import command

OPTIONS = ["--target", "z1 + z1*z2", "--activation", "relu", "--readout", "rademacher"]
PROBLEM = Problem(
    n=2000,
    d=1000,
    width=1500,
    step_exponent=0.3,
    ridge=0.01,
    target="z1 + z1*z2",
    activation="relu",
    readout="rademacher",
)


def test_predict_takes_a_formula() -> None:
    found = command.run_json("predict", *OPTIONS)
    expected = predict(PROBLEM)
    assert found["test_error"] == pytest.approx(expected.test_error, rel=1e-12)
    assert found["alignments"] == pytest.approx(list(expected.alignments), abs=1e-12)
    table = command.run_json("predict", *OPTIONS[2:], "--over", "target=z1+z2,z1*z2")
    assert [point["target"] for point in table["points"]] == ["z1+z2", "z1*z2"]


def test_learnable_tells_terms_floors_and_advice() -> None:
    arguments = [*OPTIONS[:1], "z1 + z1*z2 + z2^2 - 1", "--activation", "tanh"]
    found = command.run_json("learnable", *arguments)
    expected = learnable(
        PROBLEM.replace(target="z1 + z1*z2 + z2^2 - 1", activation="tanh", readout="gaussian")
    )
    assert found["floor"] == pytest.approx(expected.floor, rel=1e-12)
    assert [term["verdict"] for term in found["terms"]] == [
        "learned",
        "not with this activation and law",
        "never",
    ]
    shown = command.run("learnable", *arguments).stdout
    for text in ("H2(z2)", "never", "class floor", "another activation"):
        assert text in shown


@pytest.mark.parametrize("verb", ["predict", "learnable", "baselines"])
def test_refusals_are_one_line(verb: str) -> None:
    result = command.run(verb, "--target", "z1 + z5", code=2)
    assert result.stderr.count("\n") == 1
    assert "unexpected 'z5'" in result.stderr


def test_examples_of_learnable_run() -> None:
    listed = command.examples("learnable")
    assert len(listed) == 2
    for arguments in listed:
        command.run(*arguments)


def test_a_sweep_knows_a_formula_by_its_content(tmp_path: Path) -> None:
    """Spelling does not matter, the function does."""
    store = tmp_path / "store.sqlite"
    small = PROBLEM.replace(n=400, d=200, width=300)
    first = sweep(small, store=store)
    again = sweep(small.replace(target="z1+(z1 * z2)"), store=store)
    other = sweep(small.replace(target="z1 - z1*z2 + z2"), store=store)
    name = "predict_test_error"
    assert float(first[name]) == float(again[name]) == predict(small).test_error
    assert float(other[name]) != float(first[name])
