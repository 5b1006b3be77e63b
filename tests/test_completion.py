"""Shell completion, asked as a shell asks."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from featurestep.cli import main
from featurestep.figures import FIGURES


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    shell = BashComplete(main, {}, "featurestep", "_FEATURESTEP_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pred",), ["predict"]),
        (("predict", "--activation", "le"), ["leaky_relu"]),
        (("simulate", "--target", "hard"), ["hard_tanh"]),
        (("predict", "--readout", "r"), ["rademacher"]),
        (("spectrum", "--initial", ""), ["sphere", "gaussian"]),
        (("predict", "--residual", "f"), ["full"]),
        (("predict", "--method", "iso"), ["isotropic"]),
        (("predict", "--over", "step_e"), ["step_exponent="]),
        (("predict", "--over", "readout=uniform,c"), ["readout=uniform,constant"]),
        (("predict", "--over", "ridge=1"), []),
        (("figure", "max"), ["maximal-step"]),
        (("study", "uni"), ["universality"]),
        (("fit", "data.csv", "--task", "c"), ["classification"]),
        (("optimum", "--best", "step"), ["step_size", "step_sizes"]),
    ],
)
def test_names_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_all_figures_are_offered() -> None:
    assert offered("figure", "") == ["all", *FIGURES]


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "da"),
        ("fit", "data.csv", "--save", "da"),
        ("predict", "--plot", "da"),
        ("sweep", "run", "da"),
        ("sweep", "export", "sweep.toml", "da"),
    ],
)
def test_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    shell = BashComplete(main, {}, "featurestep", "_FEATURESTEP_COMPLETE")
    (item,) = shell.get_completions(list(words[:-1]), words[-1])
    assert (item.type, item.value) == ("file", "da")
