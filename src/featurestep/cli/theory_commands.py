"""Commands that predict from the theory alone: predict, limit, baselines, learnable, optimum."""

from __future__ import annotations

from typing import Any

import click

from .. import theory
from ..theory.method import METHODS
from ..theory.predict import VARIABLES
from .answers import Verb, answer, report
from .figures import draw_baselines, draw_errors, draw_learned, draw_stairs
from .files import check_path, save
from .options import Request, curve_options, output_options, problem_options
from .output import cell, show_notes, show_table
from .values import number, parse_search

_PREDICTED = {**VARIABLES, "method": "weights that the errors were computed with"}


@click.command()
@click.option(
    "--method",
    metavar="|".join(METHODS),
    default="auto",
    show_default=True,
    help="weights after the step: exact (every step size), isotropic (faster: only the shift along "
    "the learned direction and the norm of each neuron, the published spiked random features), or "
    "auto (exact, except where isotropic loses less than 1e-4 of the errors)",
)
@problem_options
@curve_options
def predict(
    method: str, over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any
) -> None:
    """Predict train and test errors at finite n.

    Holds for every step, small, maximal (η of order √N) or larger. What the step does to the
    weights is taken in full; `--method isotropic` keeps only each neuron's shift and norm, as the
    published spiked random features do, and so shows what the rest is worth: tens of per cent of
    the test error for a large step and an activation with c_2 ≠ 0, such as ReLU. Where terms are
    left out, a note below the table says so and by how much.

    --plot draws the function learned along the learned direction, M(κ), over the best one, E[y|κ];
    with --over it draws the errors against the field, and against the step exponent their limits
    n → ∞ as well.

    \b
    Examples
      featurestep predict --activation relu --centre --target "H1 + H2/sqrt(2)"
      featurestep predict --over ridge=log:1e-4:10:30 --over step_exponent=0,0.2,0.4 --plot r.pdf
      featurestep predict --phi 0.5 --psi 0.7 --n 10000 --readout rademacher --json
      featurestep predict --activation relu --step-exponent 0.5 --centre --method isotropic
    """
    verb = Verb(
        meanings=_PREDICTED,
        columns=("test_error", "train_loss", "train_mse", "readout_norm", "alignment", "method"),
        one=lambda problem: theory.predict(problem, method=method),
        many=lambda grid, told: theory.predict(grid, method=method, progress=told),
        draw_one=draw_learned,
        draw_many=draw_errors,
    )
    answer(verb, Request(options, over), as_json=as_json, plot=plot)


@click.command()
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


@click.command()
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


@click.command()
@problem_options
@click.option("--json", "as_json", is_flag=True, help="strict JSON, not a table")
def learnable(as_json: bool, **options: Any) -> None:
    """Which parts of a target one step can learn, in part or never.

    Lists the Hermite terms of the target, in the basis whose first axis is E[y z]; how much of each
    any network could learn after a step on n_step samples, and how much this activation and readout
    law can express; the floors on the test error that follow, and what would lower them.

    \b
    Examples
      featurestep learnable --target "z1 + z1*z2 + z2^2 - 1" --activation relu --readout rademacher
      featurestep learnable --target "z1 + z1*z2*z3" --step-exponent 0.5 --n-step 20000 --json
    """
    found = theory.learnable(Request(options).problem)
    if as_json:
        report(found, {}, as_json=True, plot=None)
        return
    report(found, theory.Learnable.DESCRIPTIONS, as_json=False, plot=None)
    if any("=" in axis for axis in found.axes):
        click.echo("\n".join(("in the basis", *(f"  {axis}" for axis in found.axes))))
    show_table(
        ("", "size", "possible", "expressed", "verdict"),
        [
            (t.name, cell(t.size), f"{t.possible:.0%}", f"{t.expressed:.0%}", t.verdict)
            for t in found.terms
        ],
    )
    show_notes(found.advice)


@click.command()
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
    report(found.prediction, _PREDICTED, as_json=False, plot=plot)
