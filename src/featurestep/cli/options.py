"""The command line's words: options for every field of a problem, and the values to vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from inspect import signature
from typing import Any, ClassVar

import click
import numpy as np
from click.shell_completion import CompletionItem

from ..conventions import RATIOS
from ..core.axes import read_axis, read_value
from ..core.errors import InvalidProblem
from ..core.problem import BATCHES, FIELDS, INITIALS, LOSSES, RESIDUALS, ROWS, Grid, Problem
from ..functions.activations import NAMED
from ..functions.readout import NAMES as LAWS

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
    "loss": "square",
    "intercept": False,
    "flip": 0,
    "rows": "fresh",
    "steps": 1,
    "batches": "fresh",
    "target_exponent": 0,
}
MAX_POINTS = 100_000
_SWITCHES = ("centre", "intercept")
_STEP = ("step_size", "step_exponent", "step_scale")
_RIVALS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(_STEP[1:], ("step_size", "step_sizes")),
    "step_size": (*_STEP[1:], "step_sizes"),
    "steps": ("step_sizes",),
    "step_sizes": (*_STEP, "steps"),
}
_RENAMED = {"data": "rows", "spectrum": "covariance", "direction": "target-direction"}
Rows = Mapping[str, tuple[str, str]]  # what options take, in a word and in a sentence
Command = Callable[..., None]
_FIELDS: Rows = {
    "activation": ("σ", f"activation σ: {', '.join(NAMED)}, a Hermite sum, or a formula in z"),
    "target": ("σ⋆", "target σ⋆ of y = σ⋆(β⋆·x) + ε: a name as above, 'H1 + H2/2' or 'z1 + z1*z2'"),
    "n": ("n", "number of samples that the readout is fitted on"),
    "d": ("d", "input dimension"),
    "width": ("N", "number of neurons N"),
    "phi": ("φ", "φ = d/n, with --psi in place of --d and --width"),
    "psi": ("ψ", "ψ = d/N, with --phi"),
    "n_step": ("n0", "number of samples n0 in a gradient step  [default: n]"),
    "phi_step": ("φ0", "φ0 = d/n0, in place of --n-step"),
    "step_exponent": ("α", "exponent α of the step η = step_scale·n^α"),
    "step_scale": ("c", "factor on n^α"),
    "step_size": ("η", "step size η, in place of --step-exponent"),
    "ridge": ("λ", "ridge penalty λ in (1/n)‖y − Fa‖² + λ‖a‖²"),
    "noise_std": ("σ_ε", "standard deviation of the label noise ε"),
    "readout": (
        "LAW",
        f"distribution of √N·a, a the initial readout weights: {', '.join(LAWS)}, or "
        "value:probability,… with mean square 1, such as -1:0.5,1:0.5",
    ),
    "residual": (
        "KIND",
        "residual in the step's gradient: labels (y, as in the papers) or full (y − f, the "
        "gradient of the squared loss)",
    ),
    "initial": (
        "LAW",
        "distribution of the initial first-layer rows: sphere (uniform, of norm 1) or gaussian "
        "(N(0, I/d), of norm 1 on average)",
    ),
    "centre": ("", "subtract E σ(z), z ~ N(0, 1), from the activation"),
    "loss": (
        "NAME",
        "loss of the readout's fit: square or huber, or for labels sign(σ⋆(β⋆·x) + ε) logistic, "
        "squared_hinge, hinge or square_signs",
    ),
    "intercept": ("", "also fit an intercept, without penalty"),
    "flip": ("SHARE", "share of labels ±1 whose sign is flipped at random"),
    "rows": (
        "WHICH",
        "rows that the readout is fitted on: fresh, half (half of the step's rows are among them) "
        "or same (the step's rows)",
    ),
    "steps": ("k", "number of gradient steps, each of size η"),
    "step_sizes": ("η1,η2,…", "sizes of all steps, in place of --step-exponent and --steps"),
    "batches": ("WHICH", "samples of later steps: fresh, or same (those of the first step)"),
    "covariance": (
        "Σ",
        "covariance of the inputs, scaled to mean eigenvalue 1: 'power(a)' (eigenvalue i ∝ i^-a), "
        "eigenvalue:share,… such as 6:0.1,0.5:0.9, eigenvalues v1,v2,…, or a .npy file (d, d)",
    ),
    "target_exponent": (
        "a",
        "with a covariance: share of the target's input variance along an eigenvector ∝ "
        "eigenvalue^(1+a); 0: as for a random direction",
    ),
    "target_mass": (
        "t1,t2,…",
        "share of the target's input variance in each class of equal eigenvalues, of sum 1",
    ),
    "target_direction": (
        "k",
        "target along the covariance's eigenvector k (1: of the largest eigenvalue), or along the "
        "vector in a .npy file",
    ),
}


Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def offering(words: Iterable[str]) -> Completion:
    """Completes to any of the words that begin as what was typed does."""
    known = tuple(words)

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def figure_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The figures, and all of them."""
    from ..figures import FIGURES  # heavy, and only wanted here

    return offering(("all", *FIGURES))(ctx, param, incomplete)


def study_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The studies, and all of them."""
    from ..studies import STUDIES

    return offering(("all", *STUDIES))(ctx, param, incomplete)


def file_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Those that the shell knows."""
    return [CompletionItem(incomplete, type="file")]


def complete_axis(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`FIELD=`, and after the sign of equality the names that such a field may have."""
    name, equals, typed = incomplete.partition("=")
    if not equals:
        return [f"{field}=" for field in FIELDS if field.startswith(name)]
    done, comma, last = typed.rpartition(",")
    words = _WORDS.get(name, ())
    return [f"{name}={done}{comma}{word}" for word in words if word.startswith(last)]


_WORDS: dict[str, tuple[str, ...]] = {
    "activation": tuple(NAMED),
    "target": tuple(NAMED),
    "readout": tuple(LAWS),
    "residual": RESIDUALS,
    "initial": INITIALS,
    "centre": ("true", "false"),
    "loss": LOSSES,
    "intercept": ("true", "false"),
    "rows": ROWS,
    "batches": BATCHES,
}


def _completion_of(name: str) -> dict[str, Any]:
    """The keyword of an option for this field, where there are names to offer."""
    return {"shell_complete": offering(_WORDS[name])} if name in _WORDS else {}


class Request:
    """What was asked for: a problem's options and their defaults, fields to vary, and the output.

    given
        The options that were set, as values.
    axes
        The values of each varied field.
    """

    OPTIONS: ClassVar[Rows] = {}  # beside those of a problem and of the output
    AXES: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # varied unless two other fields are

    def __init__(
        self,
        *,
        over: tuple[str, ...] = (),
        as_json: bool = False,
        plot: str | None = None,
        defaults: Mapping[str, Any] = DEFAULTS,
        **options: Any,
    ) -> None:
        self.over = over
        self.as_json = as_json
        self.plot = plot
        self.given = {name: _read(name, v) for name, v in options.items() if v is not None}
        self.axes = self._read_axes()
        self._defaults = defaults

    def _read_axes(self) -> dict[str, tuple[Any, ...]]:
        axes = dict(read_axis("--over", text) for text in self.over)
        if len(axes) < len(self.over) or len(axes) > 2:
            raise InvalidProblem("--over", "must name one field or two different ones", self.over)
        if len(axes) < 2:
            axes = {**self.AXES, **axes}
        for name in axes:
            for rival in (name, *_RIVALS.get(name, ())):
                if rival in self.given:
                    rule = f"must not vary {name} while --{rival.replace('_', '-')} is given"
                    raise InvalidProblem("--over", rule, self.over)
        if math.prod(map(len, axes.values())) > MAX_POINTS:
            raise InvalidProblem("--over", f"must give at most {MAX_POINTS} points", self.over)
        return axes

    def tell_unused(self, names: Sequence[str]) -> None:
        """Say so where one of these fields is given: the answer does not depend on them."""
        for name in names:
            if name in self.given or name in self.axes:
                option = f"--{name.replace('_', '-')}"
                click.echo(f"note: the answer does not depend on {option}", err=True)

    @property
    def target(self) -> Problem | Grid:
        """What was asked about: one problem, or a grid over it."""
        if not self.axes:
            return self.problem
        moved = not {"n", "d"}.isdisjoint(self.axes)
        held = {name: self.given[name] for name in RATIOS if moved and name in self.given}
        return self.problem.vary(**self.axes, **held)

    @cached_property
    def problem(self) -> Problem:
        """The problem asked for, without the varied fields."""
        given, known = self.given, {*self.given, *self.axes}
        for name, partner, rival in (("phi", "psi", "d"), ("psi", "phi", "width")):
            if name in given and partner not in known:
                raise InvalidProblem(partner, f"must be given together with {name}", None)
            if name in given and rival in known:
                raise InvalidProblem(name, f"must not be given together with {rival}", given[name])
        if "n_step" in given and "phi_step" in given:
            rule = "must not be given together with n_step"
            raise InvalidProblem("phi_step", rule, given["phi_step"])
        anchor = {"n": self._defaults["n"]} if "phi" in given else {}  # d follows n, not n d
        return Problem(**self._defaults).replace(**{**anchor, **given})


json_option = click.option(
    "--json", "as_json", is_flag=True, help="print strict JSON instead of a table"
)
_CURVE = (
    click.option(
        "--over",
        multiple=True,
        metavar="FIELD=VALUES",
        shell_complete=complete_axis,
        help="vary a field: START:STOP:COUNT, log:START:STOP:COUNT, START:STOP:step=STEP or "
        "v1,v2,…; a second --over gives a line for each of its values",
    ),
    json_option,
    click.option(
        "--plot",
        metavar="FILE",
        help="also draw a figure: .png, .pdf or .svg",
        shell_complete=file_names,
    ),
)


def asking(
    kind: type[Request] = Request,
    *,
    without: Sequence[str] = (),
    unused: Sequence[str] = (),
    defaults: Mapping[str, Any] = DEFAULTS,
    curve: bool = True,
) -> Callable[[Command], Command]:
    """Give a function of a request the options behind it; those that it names are its own.

    There is one for each field of a problem and the ratios φ and ψ, those of the kind of request,
    and for a curve the fields to vary, JSON and a figure. Fields of the problem that the answer
    does not depend on are `unused`: where one is given a line says so.
    """
    rows = {**_FIELDS, **kind.OPTIONS}
    options = [_option(name, *row, defaults) for name, row in rows.items() if name not in without]
    options += _CURVE if curve else ()
    options += [_renamed(old, new) for old, new in _RENAMED.items() if old not in without]

    def decorate(function: Command) -> Command:
        own = [name for name in signature(function).parameters if name != "request"]

        @wraps(function)
        def asked(**given: Any) -> None:
            named = {name: given.pop(name) for name in own}
            request = kind(**given, defaults=defaults)
            function(request, **named)
            request.tell_unused(unused)

        command: Command = asked
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _read(name: str, value: Any) -> Any:
    """The value of an option: a field's, or the array in a .npy file."""
    is_file = isinstance(value, str) and value.endswith(".npy")
    return read_array(name, value) if is_file else read_value(name, value)


def read_array(name: str, path: str) -> Any:
    """The array in a .npy file."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not an array"
        raise InvalidProblem(name, f"must be a readable .npy file ({reason})", path) from None


def _renamed(old: str, new: str) -> Callable[[Command], Command]:
    """A hidden option that refuses its old name."""

    def refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise InvalidProblem(f"--{old}", f"is --{new} now", value)

    return click.option(f"--{old}", hidden=True, expose_value=False, callback=refuse)


def _option(
    name: str, metavar: str, words: str, defaults: Mapping[str, Any]
) -> Callable[[Command], Command]:
    """The option of a field or of a run, with its default where it has one."""
    shown = f"  [default: {defaults[name]}]" if name in defaults else ""
    if name in _SWITCHES:
        shown = f"  [default: {name if defaults[name] else f'no-{name}'}]"
        return click.option(f"--{name}/--no-{name}", default=None, help=words + shown)
    known = _completion_of(name)
    option = f"--{name.replace('_', '-')}"
    return click.option(option, metavar=metavar, help=words + shown, **known)
