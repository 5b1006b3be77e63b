"""Running a simulation from the command line: its options, its estimate and its progress."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from ..axes import number
from ..errors import InvalidProblem
from ..simulation import Estimate, Setting
from ..simulation.arguments import SEEDS
from .answers import Found, drawn
from .options import DEFAULTS, Command
from .progress import all_or_nothing, watched

Reader = Callable[[str], Any]
_MEMORY = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(?:([kmgt])(i)?)?b?", re.IGNORECASE)
SMALL = {**DEFAULTS, "n": 1000, "d": 500, "width": 750}  # a few seconds


def numbers(text: str) -> list[Any]:
    """`v1,v2,…`, each as `number` reads it."""
    return [number(part.strip()) for part in text.split(",")]


def one_or_list(text: str) -> Any:
    """A number, or a list of them."""
    return numbers(text) if "," in text else number(text)


def memory(text: str) -> float:
    """Bytes behind `2GB`, `500 MiB` or a plain number of them."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise InvalidProblem("max_memory", "must read as 2GB, 500MiB or a number of bytes", text)
    digits, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return float(digits) * float(base) ** " kmgt".index((prefix or " ").lower())


_OPTIONS: Mapping[str, tuple[str, Reader, str]] = {
    "seeds": ("K", one_or_list, "draws to average, or their seeds as 3,5,8"),
    "n_test": ("n_te", number, "test inputs  [default: 2n, from 4000 to 20000]"),
    "dtype": ("TYPE", str, "float64, float32, or mixed: features in float32  [default: float64]"),
    "device": ("NAME", str, "cpu, cuda, or torch (on the CPU)  [default: cpu]"),
    "drawn": (
        "WHERE",
        str,
        "random numbers on the host or the device  [default: device for cuda]",
    ),
    "max_memory": (
        "SIZE",
        memory,
        "refuse what cannot run in this much, as 2GB or 500MiB  [default: what is free]",
    ),
}


def _array(name: str) -> Reader:
    """Text as it is, or the array in a .npy file."""

    def read(text: str) -> Any:
        if not text.endswith(".npy"):
            return text
        try:
            return np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not an array"
            raise InvalidProblem(name, f"must be a readable .npy file ({reason})", text) from None

    return read


_SETTING: Mapping[str, tuple[str, Reader, str]] = {
    "inputs": (
        "LAW",
        _array("inputs"),
        "law of the inputs: gaussian, rademacher, uniform, 'student_t(df)', sphere, "
        "'mixture(K,s)', or a .npy file with one input a row  [default: gaussian]",
    ),
    "spectrum": (
        "v1,v2,…",
        numbers,
        "eigenvalues of the inputs' covariance, each for an equal share",
    ),
    "covariance": ("FILE", _array("covariance"), "covariance of the inputs, a .npy file (d, d)"),
    "direction": (
        "k",
        number,
        "target along the covariance's eigenvector k, 1 the largest  [default: a random direction]",
    ),
    "corrupted": (
        "q",
        number,
        "fraction of training labels replaced by unrelated ones  [default: 0]",
    ),
    "data": ("WHICH", str, "sample of the readout: fresh, or same as the step's  [default: fresh]"),
    "steps": (
        "k",
        one_or_list,
        "steps of size η each, or a multiple of η for each as 1,0.5  [default: 1]",
    ),
    "batches": (
        "WHICH",
        str,
        "samples of later steps: fresh, or same as the first  [default: fresh]",
    ),
}


scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="share the work over the workers of a Dask scheduler, by its address or its file",
)


def simulation_options(
    command: Command, *, seeds: int = SEEDS, without: Sequence[str] = ()
) -> Command:
    """Give a command the options of a run and those that leave the theory's assumptions."""
    for name, (metavar, _, text) in reversed([*_OPTIONS.items(), *_SETTING.items()]):
        if name not in without:
            shown = f"{text}  [default: {seeds}]" if name == "seeds" else text
            option = click.option(f"--{name.replace('_', '-')}", metavar=metavar, help=shown)
            command = option(command)
    return command


def read_run(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the problem, and the arguments of a verb that simulates."""
    rest = dict(options)
    given, departed = (
        {
            name: read(text)
            for name, (_, read, _) in known.items()
            if (text := rest.pop(name, None)) is not None
        }
        for known in (_OPTIONS, _SETTING)
    )
    return rest, {"seeds": SEEDS, **given, "setting": Setting(**departed)}


def ran(
    verb: Callable[..., Found], estimate: Estimate, plot: str | None, *, points: int | None = None
) -> Found:
    """State the estimate, run under a progress bar over flops, or over so many points, and draw."""
    total = points or estimate.flops

    def words(done: int) -> str:
        return "points" if points else f"{done / 1e9:.4g} of {total / 1e9:.4g} Gflop"

    with all_or_nothing():
        click.echo(f"estimate: {estimate}", err=True)
        with watched(total, words) as advance:
            return drawn(lambda: verb(progress=advance), plot)
