"""The command line's words: options for every field of a problem, and the values to vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import click

from ..errors import InvalidProblem
from ..functions.activations import NAMED
from ..problem import Grid, Problem
from .values import MAX_POINTS, parse_axis, value_of

DEFAULTS: Mapping[str, Any] = {
    "activation": "tanh",
    "target": "tanh",
    "n": 2000,
    "d": 1000,
    "width": 1500,
    "step_exponent": 0.3,
    "step_scale": 1,
    "ridge": 0.01,
    "noise_std": 0,
    "readout": "gaussian",
    "residual": "labels",
    "initial": "sphere",
    "centre": False,
}
_STEP = ("step_size", "step_exponent", "step_scale")
_OPTIONS = (
    ("activation", "σ", f"activation σ: {', '.join(NAMED)}, or a Hermite sum"),
    ("target", "σ⋆", "target σ⋆ of y = σ⋆(β⋆·x) + ε: a name as above, or a sum 'H1 + H2/sqrt(2)'"),
    ("n", "n", "samples for the readout"),
    ("d", "d", "input dimension"),
    ("width", "N", "neurons N"),
    ("phi", "φ", "φ = d/n, with --psi in place of --d and --width"),
    ("psi", "ψ", "ψ = d/N, with --phi"),
    ("n_step", "n0", "fresh samples n0 for the gradient step  [default: n]"),
    ("step_exponent", "α", "exponent α of the step η = step_scale·n^α"),
    ("step_scale", "c", "factor on n^α"),
    ("step_size", "η", "step η outright, in place of --step-exponent"),
    ("ridge", "λ", "λ in (1/n)‖y − Fa‖² + λ‖a‖²"),
    ("noise_std", "σ_ε", "standard deviation of the label noise ε"),
    (
        "readout",
        "LAW",
        "law of √N a at the start: gaussian, rademacher, constant, uniform, or "
        "value:probability,… with mean square 1, as -1:0.5,1:0.5",
    ),
    (
        "residual",
        "KIND",
        "what the step descends on: labels (y alone, as in the papers) or full (y − f, the "
        "true gradient)",
    ),
    (
        "initial",
        "LAW",
        "law of the first layer's rows at the start: sphere (uniform, of norm 1) or gaussian "
        "(N(0, I/d), of norm 1 on average)",
    ),
)
Command = TypeVar("Command", bound=Callable[..., Any])


def problem_options(
    command: Command, *, without: Sequence[str] = (), defaults: Mapping[str, Any] = DEFAULTS
) -> Command:
    """Give a command one option for each field of a problem, and the ratios φ and ψ."""
    shown = {name: f"  [default: {value}]" for name, value in defaults.items()}
    shown["centre"] = f"  [default: {'centre' if defaults['centre'] else 'no-centre'}]"
    decorators = [
        click.option(
            f"--{name.replace('_', '-')}", metavar=metavar, help=text + shown.get(name, "")
        )
        for name, metavar, text in _OPTIONS
        if name not in without
    ]
    centre = click.option(
        "--centre/--no-centre",
        default=None,
        help=f"subtract E σ(z) from the activation, so that c_0 = 0{shown['centre']}",
    )
    for decorate in reversed([*decorators, centre]):
        command = decorate(command)
    return command


@dataclass(frozen=True)
class Request:
    """What was asked for: the options that were given, their defaults, and the fields to vary."""

    options: Mapping[str, Any]
    over: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=lambda: DEFAULTS)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The options that were set, as values."""
        return {
            name: value_of(name, text) for name, text in self.options.items() if text is not None
        }

    @cached_property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The values of each varied field."""
        axes = dict(parse_axis(text) for text in self.over)
        if len(axes) < len(self.over) or len(axes) > 2:
            raise InvalidProblem("--over", "must name one field or two different ones", self.over)
        for name in axes:
            rivals = _STEP if name == "step_size" else ("step_size",) if name in _STEP else ()
            for rival in (name, *rivals):
                if rival in self.given:
                    rule = f"must not vary {name} while --{rival.replace('_', '-')} is given"
                    raise InvalidProblem("--over", rule, self.over)
        if math.prod(map(len, axes.values())) > MAX_POINTS:
            raise InvalidProblem("--over", f"must give at most {MAX_POINTS} points", self.over)
        return axes

    @property
    def problem(self) -> Problem:
        """The problem asked for, without the varied fields."""
        return self._problem({})

    @property
    def grids(self) -> list[Grid]:
        """The grid asked for; one for each n where φ and ψ fix the other sizes."""
        if "phi" not in self.given or "n" not in self.axes:
            return [self.problem.vary(**self.axes)]
        return [self._problem({"n": n}).vary(**{**self.axes, "n": [n]}) for n in self.axes["n"]]

    @property
    def ratios(self) -> dict[str, Any]:
        """φ and ψ where they make the other sizes follow a varied n."""
        follows = "phi" in self.given and "n" in self.axes
        return {name: self.given[name] for name in ("phi", "psi")} if follows else {}

    @property
    def varied(self) -> tuple[str, ...]:
        """The fields that are not the same at every point."""
        return (*self.axes, *(("d", "width") if self.ratios else ()))

    @property
    def lines(self) -> list[Problem]:
        """The problem behind each line of the curves: one for each value of the second field."""
        if len(self.axes) < 2:
            return [self.problem]
        _, (name, values) = self.axes.items()
        return [self._problem({name: value}) for value in values]

    def _problem(self, changes: Mapping[str, Any]) -> Problem:
        given = {**self.given, **changes}
        settings = {**self.defaults, **given}
        if "step_size" in given and "step_exponent" not in given:
            del settings["step_exponent"]
        if "phi" not in given and "psi" not in given:
            return Problem(**settings)
        for name, partner, rival in (("phi", "psi", "d"), ("psi", "phi", "width")):
            if name not in given:
                raise InvalidProblem(name, f"must be given together with {partner}", None)
            if rival in given or rival in self.axes:
                raise InvalidProblem(name, f"must not be given together with {rival}", given[name])
            del settings[rival]
        return Problem.from_ratios(**settings)


def output_options(command: Command) -> Command:
    """Options for JSON and figures."""
    plot = click.option("--plot", metavar="FILE", help="also draw a figure: .png, .pdf or .svg")
    as_json = click.option("--json", "as_json", is_flag=True, help="strict JSON, not a table")
    return as_json(plot(command))


def curve_options(command: Command) -> Command:
    """The option to vary one or two fields, and those of the output."""
    over = click.option(
        "--over",
        multiple=True,
        metavar="FIELD=VALUES",
        help="vary a field: START:STOP:COUNT, log:START:STOP:COUNT or v1,v2,…; a second --over "
        "gives several lines",
    )
    return over(output_options(command))
