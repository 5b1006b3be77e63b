"""`featurestep study`: the list, refusals, files and claims of made-up data."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from featurestep import studies
from featurestep.cli import main
from featurestep.core.errors import install_command
from featurestep.studies import STUDIES

from .answers import FALSE, TRUE, changed


def run(*arguments):
    return CliRunner().invoke(main, ["study", *arguments])


def made_up(monkeypatch, name, data):
    instead = replace(STUDIES[name], compute=lambda quick, progress: data)
    monkeypatch.setitem(studies.STUDIES, name, instead)


def test_the_list_has_a_question_for_every_study():
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)
    assert all(line.endswith("?") for line in lines)


@pytest.mark.parametrize("arguments", [("nothing",), ()])
def test_bad_requests_are_one_line(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["full-training", "universality"])
def test_without_scikit_learn_it_says_what_to_install(name, monkeypatch):
    for module in ("sklearn", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    result = run(name)
    words = f"NAME needs scikit-learn: {install_command('sklearn')}"
    assert (result.exit_code, result.stderr) == (2, f"error: {words}; got '{name}'\n")


def test_an_answer_is_written_and_its_claims_are_told(tmp_path, monkeypatch):
    made_up(monkeypatch, "corruption", TRUE["corruption"]())
    result = run("corruption", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("  holds: ") == 7
    kinds = ("nc", "png", "svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"corruption.{k}" for k in kinds]


def test_a_claim_that_fails_is_told_and_leaves_the_files(tmp_path, monkeypatch):
    name, variable, where, value, _ = FALSE[0]
    made_up(monkeypatch, name, changed(TRUE[name](), variable, where, value))
    result = run(name, "--output", str(tmp_path))
    assert result.exit_code == 1
    assert "  FAILS: " in result.stdout
    assert result.stderr.startswith(f"error: study {name} contradicts its claim")
    assert len(list(tmp_path.iterdir())) == 3
