"""Requests that run networks: their options, and how those are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import click

from ..core.axes import read_number
from ..core.errors import InvalidProblem
from ..simulation import SEEDS, Setting
from .options import DEFAULTS, Request, Rows, read_array

_MEMORY = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(?:([kmgt])(i)?)?b?", re.IGNORECASE)
SMALL = {**DEFAULTS, "n": 1000, "d": 500, "width": 750, "seeds": SEEDS}  # a few seconds


def numbers(text: str) -> list[Any]:
    """`v1,v2,…`, each as `number` reads it."""
    return [read_number(part.strip()) for part in text.split(",")]


def one_or_list(text: str) -> Any:
    """A number or a word, or a list of them."""
    return numbers(text) if "," in text else read_number(text)


def memory(text: str) -> float:
    """Bytes behind `2GB`, `500 MiB` or a plain number of them."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise InvalidProblem("max_memory", "must read as 2GB, 500MiB or a number of bytes", text)
    digits, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return float(digits) * float(base) ** " kmgt".index((prefix or " ").lower())


def _inputs(text: str) -> Any:
    """The name of a law, or the array in a .npy file."""
    return read_array("inputs", text) if text.endswith(".npy") else text


_READERS: Mapping[str, Callable[[str], Any]] = {  # of what is not a word, a number or a list
    "max_memory": memory,
    "inputs": _inputs,
}
_RUN = {
    "seeds": ("K", "number of networks to simulate, or a list of seeds such as 3,5,8"),
    "n_test": ("n_te", "number of test inputs  [default: 2n, from 4000 to 20000]"),
    "dtype": ("TYPE", "float64, float32, or mixed: features in float32  [default: float64]"),
    "device": ("NAME", "cpu, cuda, or torch (on the CPU)  [default: cpu]"),
    "drawn": ("WHERE", "draw random numbers on the host or the device  [default: device for cuda]"),
    "max_memory": (
        "SIZE",
        "largest memory to use, such as 2GB or 500MiB  [default: what is free]",
    ),
}
_SETTING = {
    "inputs": (
        "LAW",
        "distribution of the inputs: gaussian, rademacher, uniform, 'student_t(df)', sphere, "
        "'mixture(K,s)', or a .npy file with one input per row  [default: gaussian]",
    ),
    "corrupted": ("q", "fraction of training labels replaced by unrelated ones  [default: 0]"),
}
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="run on the workers of a Dask scheduler, given by its address or scheduler file",
)


class Run(Request):
    """A request that runs networks: also how many and where, and on what data.

    run
        The arguments of a verb that simulates, the scheduler aside.
    """

    OPTIONS: ClassVar[Rows] = {**_RUN, **_SETTING}

    def __init__(
        self, *, scheduler: str | None = None, defaults: Mapping[str, Any], **options: Any
    ) -> None:
        given, departed = (
            {
                name: _READERS.get(name, one_or_list)(text)
                for name in known
                if (text := options.pop(name, None)) is not None
            }
            for known in (_RUN, _SETTING)
        )
        fields = dict(defaults)
        self.run = {"seeds": fields.pop("seeds"), **given, "setting": Setting(**departed)}
        self.scheduler = scheduler
        if not self.run["seeds"] and "seeds" not in given:  # no network: no option is ignored
            unused = {**given, **departed, **({"scheduler": scheduler} if scheduler else {})}
            for name, value in unused.items():
                option = f"--{name.replace('_', '-')}"
                raise InvalidProblem(
                    option, "needs --seeds: it applies to simulated networks only", value
                )
        super().__init__(**options, defaults=fields)
