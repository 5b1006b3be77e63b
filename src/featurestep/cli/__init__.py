"""The command line: words in, a table, strict JSON or a figure out."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from .. import __version__
from ..core.errors import FeaturestepError

_OTHER_OPTIONS = {  # as others call them
    **dict.fromkeys(("--lr", "--learning-rate", "--eta"), "--step-size"),
    **dict.fromkeys(("--lambda", "--reg", "--regularization", "--weight-decay"), "--ridge"),
    **dict.fromkeys(("--samples", "--n-samples", "--n-train"), "--n"),
    **dict.fromkeys(("--neurons", "--hidden", "--units"), "--width"),
    **dict.fromkeys(("--dim", "--dimension", "--n-features"), "--d"),
    **dict.fromkeys(("--noise", "--sigma"), "--noise-std"),
    "--alpha": "--step-exponent",
    "--center": "--centre",
}
_SIMILAR = 0.7  # difflib's measure of two names from which one is suggested for the other
INTERRUPTED = 130  # what a shell reports for a process ended by Ctrl-C
COMMANDS = {  # and their modules
    **dict.fromkeys(("predict", "limit", "baselines", "learnable", "optimum"), "theory_commands"),
    **dict.fromkeys(("simulate", "compare", "equivalence", "demo"), "simulate_commands"),
    **dict.fromkeys(("spectrum", "critical", "phase"), "spectrum_commands"),
    **dict.fromkeys(("figure", "study", "explore"), "figure_commands"),
    **dict.fromkeys(("bench", "doctor"), "machine_commands"),
    "sweep": "sweep_commands",
    "fit": "fit_command",
}


class OneLineErrors(click.Group):
    """Commands are imported when they are needed, and every refusal is one line on stderr.

    Exit code 2 for bad input, 1 for other failures.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name; an unknown one is refused with the nearest name."""
        if cmd_name not in COMMANDS:
            from ..functions.formula import suggestion  # loads NumPy

            hint = suggestion(cmd_name, COMMANDS)
            if hint:
                raise click.UsageError(f"No such command {cmd_name!r}{hint}", ctx)
            return None
        module = import_module(f".{COMMANDS[cmd_name]}", __name__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without Greek is no failure
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except click.NoSuchOption as error:
            _refuse_option(error)
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "featurestep"
            _refuse(f"{error.format_message()} (see {where} --help)", error.exit_code)
        except click.ClickException as error:
            _refuse(error.format_message(), error.exit_code)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except FeaturestepError as error:
            _refuse(str(error), 2 if error.is_request else 1)
        sys.exit(code if isinstance(code, int) else 0)


def _refuse_option(error: click.NoSuchOption) -> NoReturn:
    """An option that this command does not have: others that do, or similar names."""
    where = error.ctx.command_path if error.ctx else "featurestep"
    message = f"No such option {error.option_name!r}"
    if error.ctx:
        shown = {
            name
            for p in error.ctx.command.params
            if not getattr(p, "hidden", False)
            for name in p.opts
        }
        known = {**dict.fromkeys(shown), **{k: v for k, v in _OTHER_OPTIONS.items() if v in shown}}
        for close in get_close_matches(error.option_name, known, 1, _SIMILAR):
            message += f"; did you mean {known[close] or close!r}?"
    having = [name for name in COMMANDS if error.option_name in _options(name)]
    if having:
        *some, last = having
        names = f"{', '.join(some)} and {last} have" if some else f"{last} has"
        message = f"No such option {error.option_name!r}: {names} it"
    _refuse(f"{message} (see {where} --help)", error.exit_code)


def _options(name: str) -> set[str]:
    """The options of a command."""
    command: click.Command = getattr(import_module(f".{COMMANDS[name]}", __name__), name)
    return {option for parameter in command.params for option in parameter.opts}


def _refuse(message: str, code: int) -> NoReturn:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(
    "featurestep",
    cls=OneLineErrors,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="featurestep")
@click.pass_context
def main(ctx: click.Context) -> None:
    """What does a two-layer network learn in one large gradient step?

    A network f(x) = aᵀσ(Wx) of N neurons takes one step of size η = n^α on its first layer; its
    readout (the second layer) is then fitted by ridge regression on n fresh samples. `predict`,
    `limit`, `baselines`, `learnable`, `optimum` and `critical` use theory alone: nothing is
    trained. `simulate` and `equivalence` train this network on random data; `compare`, and
    `spectrum` and `phase` with --seeds, compare the theory with it. `fit` fits it to a file of
    your own. Several steps, rows used twice, other losses and inputs with a covariance are options:
    see `predict --help`.

    \b
    Start with
      featurestep demo
      featurestep predict
      featurestep predict --over step_exponent=0:0.5:51 --plot curve.png
      featurestep compare
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
