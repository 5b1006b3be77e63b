"""An option that a command does not use is refused, not accepted in silence."""

from __future__ import annotations

import pytest

from featurestep.cli.run import _RUN, _SETTING
from tests import command

SMALL = ("--n", "60", "--d", "30", "--width", "40")
VALUES = {
    "n_test": "50",
    "dtype": "float32",
    "device": "cpu",
    "drawn": "host",
    "max_memory": "2GB",
    "inputs": "student_t(5)",
    "corrupted": "0.3",
    "scheduler": "tcp://127.0.0.1:9",
}
LEFT_OUT = {  # options that the commands do not have
    "spectrum": {"n_test", "dtype", "drawn"},
    "phase": {"n_test", "dtype", "drawn", "scheduler"},
}


def test_every_option_of_a_run_is_tried() -> None:
    assert {*VALUES} == {*_RUN, *_SETTING, "scheduler"} - {"seeds"}


@pytest.mark.parametrize("option", VALUES)
@pytest.mark.parametrize("verb", LEFT_OUT)
def test_options_of_a_run_need_one(verb: str, option: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = command.run(verb, *SMALL, f"--{option.replace('_', '-')}", VALUES[option], code=2)
    if option in LEFT_OUT[verb]:
        assert "No such option" in refused.stderr or "no such option" in refused.stderr.lower()
    else:
        expected = f"error: --{option.replace('_', '-')} needs --seeds: it is about simulated"
        assert refused.stderr.startswith(expected)
    assert refused.stdout == ""


@pytest.mark.parametrize("verb", ["predict", "limit", "baselines", "optimum", "critical"])
@pytest.mark.parametrize("option", [name for name in VALUES if name != "scheduler"])
def test_the_theory_alone_has_no_options_of_a_run(verb: str, option: str) -> None:
    refused = command.run(verb, f"--{option.replace('_', '-')}", "1", code=2)
    assert "option" in refused.stderr.lower()
