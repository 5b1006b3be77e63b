"""The command line: words in, a table, strict JSON or a figure out."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NoReturn

import click

from .. import __version__, theory
from ..compare import enough_seeds
from ..errors import FeaturestepError, InvalidProblem
from ..simulation import InsufficientMemory
from ..theory.predict import VARIABLES
from .answers import Verb, answer, report
from .equivalence_command import equivalence
from .explore_command import explore
from .figure_command import figure
from .figures import draw_baselines, draw_errors, draw_learned, draw_stairs
from .files import check_folder, check_path, save, save_in
from .options import DEFAULTS, Request, curve_options, output_options, problem_options
from .output import cell, describe, show_notes, show_table
from .progress import INTERRUPTED, watched_share
from .simulate_commands import compare, simulate
from .spectrum_commands import critical, phase, spectrum
from .sweep_commands import sweep
from .values import number, one_or_list, parse_search

DEMO_OWN = {"activation": "relu", "centre": True, "d": 600, "width": 1000, "ridge": 0.1}
DEMO_DEFAULTS = {**DEFAULTS, **DEMO_OWN}
DEMO_FIXED = ("target", "noise_std", "step_exponent", "step_scale", "step_size")


class OneLineErrors(click.Group):
    """Every refusal is one line on stderr: exit code 2 for bad input, 1 for other failures."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without Greek is no failure
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "featurestep"
            _refuse(f"{error.format_message()} (see {where} --help)", error.exit_code)
        except click.ClickException as error:
            _refuse(error.format_message(), error.exit_code)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except FeaturestepError as error:
            is_request = isinstance(error, (InvalidProblem, InsufficientMemory))
            _refuse(str(error), 2 if is_request else 1)
        sys.exit(code if isinstance(code, int) else 0)


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
    readout is then fitted by ridge regression on n fresh samples. `simulate` and `equivalence` run
    this network on drawn data, and `compare` holds the theory against it, as do `spectrum` and
    `phase` with --seeds. All other commands predict from the theory alone: nothing is trained.

    \b
    Start with
      featurestep demo
      featurestep predict
      featurestep predict --over step_exponent=0:0.5:51 --plot curve.png
      featurestep compare
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (simulate, compare, equivalence, explore, sweep, spectrum, critical, phase, figure):
    main.add_command(command)


@main.command()
@problem_options
@curve_options
def predict(over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any) -> None:
    """Predict train and test errors at finite n.

    Holds for every step up to the maximal one, η of order √n; where an approximation leaves its
    range, a note below the table says so and by how much. --plot draws the function learned
    along the learned direction, M(κ), over the best one, E[y|κ]; with --over it draws the errors
    against the field, and against the step exponent their limits n → ∞ as well.

    \b
    Examples
      featurestep predict --activation relu --centre --target "H1 + H2/sqrt(2)"
      featurestep predict --over ridge=log:1e-4:10:30 --over step_exponent=0,0.2,0.4 --plot r.pdf
      featurestep predict --phi 0.5 --psi 0.7 --n 10000 --readout rademacher --json
    """
    verb = Verb(
        meanings=VARIABLES,
        columns=("test_error", "train_loss", "train_mse", "readout_norm", "alignment"),
        one=theory.predict,
        many=lambda grid, told: theory.predict(grid, progress=told),
        draw_one=draw_learned,
        draw_many=draw_errors,
    )
    answer(verb, Request(options, over), as_json=as_json, plot=plot)


@main.command()
@click.option("--degree", metavar="ℓ", help="regime ℓ, or maximal  [default: that of the step]")
@click.option(
    "--norm-growth",
    is_flag=True,
    help="include what the published limit leaves out: the step also changes the neurons' norms",
)
@problem_options
@curve_options
def limit(
    degree: str | None,
    norm_growth: bool,
    over: tuple[str, ...],
    as_json: bool,
    plot: str | None,
    **options: Any,
) -> None:
    """Errors in the limit n → ∞: the published staircase.

    Only the ratios φ = d/n, ψ = d/N and the regime matter: a step exponent α between (ℓ−1)/2ℓ
    and ℓ/(2ℓ+2) learns powers of the learned direction up to ℓ. At the ends of the intervals the
    limit is undefined, and the status says so. With --norm-growth it is where `predict` goes as n
    grows; without, the published one, which leaves out that the step changes the neurons' norms.

    \b
    Examples
      featurestep limit --activation relu --centre --target "H1 + H2" --step-exponent 0.3
      featurestep limit --degree 4
      featurestep limit --over step_exponent=0.01:0.45:45 --plot staircase.pdf
    """
    chosen = None if degree is None else number(degree)
    verb = Verb(
        meanings=theory.Limit.DESCRIPTIONS,
        columns=("degree", "powers", "test_error", "train_loss", "test_gain", "train_gain"),
        one=lambda problem: theory.limit(problem, degree=chosen, norm_growth=norm_growth),
        draw_many=draw_stairs,
    )
    answer(verb, Request(options, over), as_json=as_json, plot=plot)


@main.command()
@problem_options
@curve_options
def baselines(over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any) -> None:
    """Test errors of simpler predictors, and what no predictor can beat.

    \b
    Examples
      featurestep baselines --target "H1 + 0.5*H3" --noise-std 0.3
      featurestep baselines --over n=500:5000:10 --plot baselines.png
    """
    meanings = theory.Baselines.DESCRIPTIONS
    verb = Verb(
        meanings=meanings,
        columns=tuple(meanings),
        one=theory.baselines,
        draw_many=draw_baselines,
    )
    answer(verb, Request(options, over), as_json=as_json, plot=plot)


@main.command()
@click.option(
    "--over",
    multiple=True,
    metavar="NAME[=LOW:HIGH]",
    help="what to choose: ridge, step_size, or both  [default: ridge]",
)
@click.option("--minimise", metavar="ERROR", default="test_error", show_default=True)
@problem_options
@output_options
def optimum(
    over: tuple[str, ...], minimise: str, as_json: bool, plot: str | None, **options: Any
) -> None:
    """The best ridge λ, step size η, or both.

    A bounded search; when the best point lies on a bound, a note says so.

    \b
    Examples
      featurestep optimum --noise-std 0.5
      featurestep optimum --over ridge=1e-4:10 --over step_size --target "H1 + H2" --json
    """
    check_path(plot)
    searched = dict(map(parse_search, over)) or {"ridge": None}
    found = theory.optimum(
        Request(options).problem,
        over=tuple(searched),
        minimise=minimise,
        bounds={name: pair for name, pair in searched.items() if pair is not None},
    )
    if plot:
        save(plot, draw_learned(found.prediction))
    if as_json:
        report(found, {}, as_json=True, plot=plot)
        return
    click.echo(f"smallest {minimise.replace('_', ' ')}: {cell(found.value)}, at")
    show_table(
        ("", "value"),
        [(name.replace("_", " "), cell(value)) for name, value in found.location.items()],
    )
    show_notes(found.at_boundary)
    report(found.prediction, VARIABLES, as_json=False, plot=plot)


@main.command()
@click.option("--output", metavar="DIR", default="demo", show_default=True, help="for demo.png")
@click.option("--seeds", metavar="K", default="8", show_default=True, help="networks to simulate")
@partial(problem_options, without=DEMO_FIXED, defaults=DEMO_DEFAULTS)
def demo(output: str, seeds: str, **options: Any) -> None:
    """Two published targets, learned degree by degree as the step grows.

    The settings of Moniri et al.: y = H1 + ε with ε ~ N(0, 1), and y = H1 + H2/√2, the
    polynomials taken along β⋆. Draws train loss and test error against the step exponent, at
    finite n and in the limit n → ∞, with simulated networks on top, to DIR/demo.png.
    """
    from ..demo import EXPLANATION, SETTINGS, demo_notes, demo_rows, draw, run_demo

    base = Request(options, defaults=DEMO_DEFAULTS).problem
    check_folder(output)
    drawn = enough_seeds(one_or_list(seeds))
    with watched_share("simulating") as told:
        settings = run_demo(base, seeds=drawn, progress=told)
    rows = [[cell(value) for value in row] for row in demo_rows(base, settings)]
    path = save_in(output, "demo.png", draw(base, settings))
    click.echo("\n".join(describe(base, DEMO_FIXED)))
    header = ["step_exponent"]
    for which, (title, _) in enumerate(SETTINGS, 1):
        click.echo(title)
        header += [f"test error {which}", "simulated", "limit", "with norm growth"]
    show_table(header, rows)
    click.echo(EXPLANATION)
    show_notes(demo_notes(settings))
    click.echo(f"Figure: {path}")
