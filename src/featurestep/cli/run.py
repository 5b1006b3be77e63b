"""Running a simulation from the command line: its options, its estimate and its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import click
import numpy as np

from ..errors import InvalidProblem
from ..problem import Grid, Problem
from ..simulation import Estimate, Setting
from ..simulation.arguments import make_draws, make_resources
from ..simulation.network.experiment import make_experiment
from .options import DEFAULTS, Command, Request
from .progress import shifted, watched
from .values import memory, number, numbers, one_or_list

_RESOURCES = ("dtype", "device", "drawn", "max_memory")
SMALL = {**DEFAULTS, "n": 1000, "d": 500, "width": 750}  # a few seconds
Found = TypeVar("Found")
_OPTIONS = (
    ("seeds", "K", "draws to average, or their seeds as 3,5,8  [default: 8]"),
    ("n_test", "n_te", "test inputs  [default: 2n, from 4000 to 20000]"),
    ("dtype", "TYPE", "float64, float32, or mixed: features in float32  [default: float64]"),
    ("device", "NAME", "cpu, cuda, or torch (on the CPU)  [default: cpu]"),
    ("drawn", "WHERE", "random numbers on the host or the device  [default: device for cuda]"),
    ("max_memory", "SIZE", "refuse what cannot run in this much, as 2GB or 500MiB"),
)
_SETTING = (
    (
        "inputs",
        "LAW",
        "law of the inputs: gaussian, rademacher, uniform, student_t(df), sphere, or a .npy file "
        "with one input a row  [default: gaussian]",
    ),
    ("spectrum", "v1,v2,…", "eigenvalues of the inputs' covariance, each for an equal share"),
    ("corrupted", "q", "fraction of training labels replaced by unrelated ones  [default: 0]"),
    ("data", "WHICH", "sample of the readout: fresh, or same as the step's  [default: fresh]"),
    ("steps", "k", "steps of size η each, or a multiple of η for each as 1,0.5  [default: 1]"),
    ("batches", "WHICH", "samples of later steps: fresh, or same as the first  [default: fresh]"),
)


def simulation_options(command: Command) -> Command:
    """Give a command the options of a run and those that leave the theory's assumptions."""
    for name, metavar, text in reversed([*_OPTIONS, *_SETTING]):
        option = click.option(f"--{name.replace('_', '-')}", metavar=metavar, help=text)
        command = option(command)
    return command


@dataclass(frozen=True)
class Run:
    """A request to simulate: its problems, and the arguments of every run."""

    request: Request
    arguments: Mapping[str, Any]  # of `simulate`
    setting: Mapping[str, str]  # as written, for the record

    @cached_property
    def targets(self) -> list[Problem] | list[Grid]:
        """What to simulate, one after the other."""
        return self.request.grids if self.request.over else [self.request.problem]

    @cached_property
    def _estimates(self) -> list[Estimate]:
        asked: dict[str, Any] = {"variants": ("trained",), **self.arguments}
        n_test = asked.pop("n_test")
        resources = make_resources(**{name: asked.pop(name) for name in _RESOURCES})
        draws = make_draws(**asked)
        return [
            make_experiment(target, draws, resources, n_test=n_test).estimate
            for target in self.targets
        ]

    @property
    def estimate(self) -> Estimate:
        """Memory and flops of everything; every argument is checked by then."""
        return Estimate.of_all(self._estimates)

    def execute(self, work: Callable[..., Found]) -> list[Found]:
        """State the estimate, then run `work` on every target under one progress bar."""
        total = self.estimate.flops
        click.echo(f"estimate: {self.estimate}", err=True)
        starts = accumulate((each.flops for each in self._estimates), initial=0)
        with watched(total, lambda done: f"{done / 1e9:.4g} of {total / 1e9:.4g} Gflop") as advance:
            return [
                work(target, **self.arguments, progress=shifted(advance, start))
                for target, start in zip(self.targets, starts, strict=False)
            ]


def read_run(options: Mapping[str, Any], over: tuple[str, ...], **arguments: Any) -> Run:
    """The run that a command's options ask for, with further arguments of its verb."""
    rest, given, setting = dict(options), dict[str, Any](), dict[str, str]()
    for known, kept in ((_OPTIONS, given), (_SETTING, setting)):
        for name, *_ in known:
            text = rest.pop(name)
            if text is not None:
                kept[name] = text
    departed = Setting(**{name: _READ[name](text) for name, text in setting.items()})
    values = {name: _READ[name](text) for name, text in given.items()}
    return Run(
        Request(rest, over, SMALL),
        {**_DEFAULTS, **values, "setting": departed, **arguments},
        setting,
    )


def _inputs(text: str) -> Any:
    """A law's name, or the array in a file."""
    if not text.endswith(".npy"):
        return text
    try:
        return np.load(text, allow_pickle=False)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not an array"
        raise InvalidProblem("inputs", f"must be a readable .npy file ({reason})", text) from None


_DEFAULTS = {
    **{"seeds": 8, "n_test": None, "dtype": "float64", "device": "cpu", "drawn": None},
    "max_memory": None,
}
_READ: Mapping[str, Callable[[str], Any]] = {
    "seeds": one_or_list,
    "n_test": number,
    "dtype": str,
    "device": str,
    "drawn": str,
    "max_memory": memory,
    "inputs": _inputs,
    "spectrum": numbers,
    "corrupted": number,
    "data": str,
    "steps": one_or_list,
    "batches": str,
}
