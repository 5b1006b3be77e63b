"""An option that a command does not use is refused, not accepted in silence."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurestep.cli import main
from featurestep.cli.simulate_commands import _RUN, _SETTING
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
        expected = f"error: --{option.replace('_', '-')} needs --seeds: it applies to simulated"
        assert refused.stderr.startswith(expected)
    assert refused.stdout == ""


@pytest.mark.parametrize("verb", ["predict", "limit", "baselines", "optimum", "critical"])
@pytest.mark.parametrize("option", [name for name in VALUES if name != "scheduler"])
def test_the_theory_alone_has_no_options_of_a_run(verb: str, option: str) -> None:
    refused = command.run(verb, f"--{option.replace('_', '-')}", "1", code=2)
    expected = f"error: No such option '--{option.replace('_', '-')}': simulate"
    assert refused.stderr.startswith(expected)


# Options of fields beyond the plain problem: a value of each, and what it needs beside.
FIELDS: dict[str, tuple[str, ...]] = {
    "rows": ("--rows", "same"),
    "loss": ("--loss", "logistic"),
    "huber": ("--loss", "huber"),
    "intercept": ("--intercept",),
    "flip": ("--loss", "hinge", "--flip", "0.1"),
    "flip alone": ("--flip", "0.1"),
    "steps": ("--steps", "2"),
    "step_sizes": ("--step-sizes", "3,2"),
    "batches": ("--steps", "2", "--batches", "same"),
    "covariance": ("--covariance", "6:0.1,0.5:0.9"),
    "target_exponent": ("--covariance", "6:0.1,0.5:0.9", "--target-exponent", "1"),
    "target_mass": ("--covariance", "6:0.1,0.5:0.9", "--target-mass", "0.9,0.1"),
    "target_mass alone": ("--target-mass", "0.9,0.1"),
    "target_direction": ("--covariance", "6:0.1,0.5:0.9", "--target-direction", "1"),
}
BESIDE = {  # what an option is compared with, where it does not come alone
    "flip": ("--loss", "hinge"),
    "batches": ("--steps", "2"),
    **dict.fromkeys(
        ("target_exponent", "target_mass", "target_direction"), ("--covariance", "6:0.1,0.5:0.9")
    ),
}
QUICK = (*SMALL, "--readout", "constant", "--target", "H1", "--noise-std", "0.3")
DRAWN = ("--seeds", "1", "--n-test", "50")
VERBS: dict[str, tuple[str, ...]] = {
    "predict": (),
    "limit": (),
    "baselines": (),
    "optimum": (),
    "critical": (),
    "spectrum": (),
    "learnable": (),
    "simulate": DRAWN,
    "compare": ("--seeds", "2", "--n-test", "50"),
    "equivalence": ("--seeds", "1"),
    "phase": ("--over", "step_exponent=0.3,0.45"),
}
_SECONDS = {"baselines": ("loss", "flip"), "optimum": FIELDS}  # of computing
SLOW = {(verb, option) for verb, options in _SECONDS.items() for option in options}
PAIRS = [
    pytest.param(verb, option, marks=[pytest.mark.slow] if (verb, option) in SLOW else [])
    for verb in VERBS
    for option in FIELDS
]


# Options of the plain problem, and verbs that each takes seconds with.
USUAL = {
    "n": ("--n", "70"),
    "d": ("--d", "33"),
    "width": ("--width", "44"),
    "phi and psi": ("--phi", "0.4", "--psi", "0.6"),
    "n_step": ("--n-step", "90"),
    "phi_step": ("--phi-step", "0.4"),
    "step_exponent": ("--step-exponent", "0.35"),
    "step_scale": ("--step-scale", "1.3"),
    "step_size": ("--step-size", "5"),
    "ridge": ("--ridge", "0.5"),
    "noise_std": ("--noise-std", "0.6"),
    "readout": ("--readout", "constant"),
    "residual": ("--residual", "full"),
    "initial": ("--initial", "gaussian"),
    "centre": ("--no-centre",),
    "activation": ("--activation", "softplus"),
    "target": ("--target", "H1 + H2"),
}
RELU = ("--readout", "rademacher", "--target", "H1 + H2/2", "--noise-std", "0.3")
PLAIN = (*RELU, "--activation", "relu", "--centre")
SEARCHES = ("critical", "spectrum", "optimum", "phase")


def plain_size(option: str) -> tuple[str, ...]:
    """Sizes of the plain problem beside an option; none beside the ratios that set them."""
    return SMALL[:2] if option == "phi and psi" else SMALL


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        pytest.param(verb, option, marks=[pytest.mark.slow] if verb in SEARCHES else [])
        for verb in VERBS
        for option in USUAL
    ],
)
def test_every_option_of_a_plain_problem_is_used_or_told_not_to_be(verb: str, option: str) -> None:
    """Used: the numbers are other ones. Not used: a line on stderr, or a refusal, says so."""
    if verb in ("critical", "phase") and option in ("step_exponent", "step_size"):
        refused = command.run(verb, *USUAL[option], code=2)
        assert refused.stderr.startswith(f"error: No such option '--{option.replace('_', '-')}': ")
        return
    plain = plain_answer(verb)
    tried = CliRunner().invoke(
        main, [verb, *plain_size(option), *PLAIN, *VERBS[verb], *USUAL[option], "--json"]
    )
    assert tried.exit_code == 0, tried.output
    name = f"--{option.replace('_', '-')}"
    told = f"note: the answer does not depend on {name}\n" in tried.stderr
    if option == "step_scale" and verb == "limit":  # used at the maximal step only
        ends = [numbers(maximal_limit(scale).stdout) for scale in ("1", "2")]
        assert ends[0] != ends[1]
    else:
        assert told == (numbers(tried.stdout) == numbers(plain.stdout))


def maximal_limit(scale: str) -> Result:
    """The limit at α = 1/2."""
    step = ("--step-exponent", "0.5", "--step-scale", scale)
    return CliRunner().invoke(main, ["limit", *SMALL, *PLAIN, *step, "--json"])


@cache
def plain_answer(verb: str) -> Result:
    """The answer to the plain problem of these tests."""
    found = CliRunner().invoke(main, [verb, *SMALL, *PLAIN, *VERBS[verb], "--json"])
    assert found.exit_code == 0, found.output
    return found


def numbers(text: str) -> Any:
    """What an answer says, without the problem and the time that it took."""
    answer = command.strict_json(text)
    left_out = ("problem", "base", "points", "wall_time", "seconds", "statistics", "setting")
    points = answer.get("points") or []
    return [answer[name] for name in answer if name not in left_out], [
        {name: value for name, value in point.items() if name not in left_out} for point in points
    ]


@cache
def answer_without(verb: str, *options: str) -> Result:
    """The answer without the option, computed once."""
    return CliRunner().invoke(main, [verb, *QUICK, *VERBS[verb], *options, "--json"])


@pytest.mark.parametrize("verb", VERBS)
def test_the_plain_problem_is_answered(verb: str) -> None:
    assert answer_without(verb).exit_code == 0, answer_without(verb).output


@pytest.mark.parametrize(("verb", "option"), PAIRS)
def test_every_field_is_used_or_refused_in_one_line(verb: str, option: str) -> None:
    """Used: the numbers are other ones."""
    tried = CliRunner().invoke(main, [verb, *QUICK, *VERBS[verb], *FIELDS[option], "--json"])
    if tried.exit_code == 0:
        plain = answer_without(verb, *BESIDE.get(option, ()))
        assert numbers(tried.stdout) != numbers(plain.stdout)
        return
    assert tried.exit_code == 2, tried.output
    assert tried.stdout == ""
    assert tried.stderr.startswith("error: ")
    assert tried.stderr.count("\n") == 1
    assert "; got " in tried.stderr


@pytest.mark.parametrize("option", FIELDS)
def test_the_demonstration_has_the_plain_problem_only(option: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = command.run("demo", *QUICK[:6], "--seeds", "2", *FIELDS[option], code=2)
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
