"""Commands that predict from the theory alone: predict, limit, baselines, learnable, optimum."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click

from .. import theory
from ..core.axes import read_number
from ..core.errors import InvalidProblem
from ..theory.predict import METHODS
from .options import Request, asking, offering
from .output import answer


@click.command()
@click.option(
    "--method",
    metavar="|".join(METHODS),
    default="exact",
    show_default=True,
    shell_complete=offering(METHODS),
    help="weights after the step: exact (every step size), or isotropic (only the shift along the "
    "learned direction and the norm of each neuron: the published spiked random features)",
)
@asking()
def predict(request: Request, method: str) -> None:
    """Predict train and test errors at finite n.

    Holds for every step size, small, maximal (η of order √N) or larger. `--method isotropic` uses
    the published approximation (spiked random features), which keeps only each neuron's shift and
    norm after the step. Its error is tens of per cent for a large step and an activation with a
    quadratic part (Hermite coefficient c_2 ≠ 0), such as ReLU. Where the theory leaves out terms,
    a note below the table says how large an error to expect.

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
    answer(theory.predict, request, method=method)


@click.command()
@click.option("--degree", metavar="ℓ", help="regime ℓ, or maximal  [default: that of the step]")
@click.option(
    "--norm-growth",
    is_flag=True,
    help="include what the published limit leaves out: the step also changes the neurons' norms",
)
@asking()
def limit(request: Request, degree: str | None, norm_growth: bool) -> None:
    """Errors in the limit n → ∞: the published staircase.

    Only the ratios φ = d/n, ψ = d/N and the regime matter: a step exponent α between (ℓ−1)/2ℓ
    and ℓ/(2ℓ+2) learns powers of the learned direction up to ℓ. At the ends of the intervals the
    limit is undefined, and the status says so. The published limit leaves out that the step
    changes the norms of the neurons; with --norm-growth the answer is the limit of `predict`.

    \b
    Examples
      featurestep limit --activation relu --centre --target "H1 + H2" --step-exponent 0.3
      featurestep limit --degree 4
      featurestep limit --over step_exponent=0.01:0.45:45 --plot staircase.pdf
    """
    chosen = None if degree is None else read_number(degree)
    answer(theory.limit, request, degree=chosen, norm_growth=norm_growth)


@click.command()
@asking(unused=("step_exponent", "step_scale", "step_size", "readout"))
def baselines(request: Request) -> None:
    """Test errors of simpler predictors, and lower bounds.

    \b
    Examples
      featurestep baselines --target "H1 + 0.5*H3" --noise-std 0.3
      featurestep baselines --over n=500:5000:10 --plot baselines.png
    """
    answer(theory.baselines, request, fields=1)


@click.command()
@asking(unused=("ridge", "initial"))
def learnable(request: Request) -> None:
    """Which parts of a target one step can learn, or never.

    Lists the target's Hermite terms, along the direction that the step finds, E[y z], and those
    across it: how much of each any network can learn after a step on n_step samples, and how much
    with this activation and readout law; then the resulting floors (lower bounds) of the test
    error, and what would lower them.

    \b
    Examples
      featurestep learnable --target "z1 + z1*z2 + z2^2 - 1" --activation relu --readout rademacher
      featurestep learnable --target "z1 + z1*z2*z3" --step-exponent 0.5 --n-step 20000 --json
    """
    answer(theory.learnable, request, fields=1)


@click.command()
@click.option(
    "--best",
    multiple=True,
    metavar="NAME[=LOW:HIGH]",
    help="what to choose: ridge, step_size or both, or step_sizes  [default: ridge]",
    shell_complete=offering(("ridge", "step_size", "step_sizes")),
)
@click.option("--minimise", metavar="ERROR", default="test_error", show_default=True)
@asking()
def optimum(request: Request, best: tuple[str, ...], minimise: str) -> None:
    """The best ridge λ, step size η, or sizes of several steps.

    Searches between bounds; a note says if the best point lies on a bound. --over repeats the
    search for each value of another field.

    \b
    Examples
      featurestep optimum --noise-std 0.5
      featurestep optimum --best ridge=1e-4:10 --best step_size --target "H1 + H2" --json
      featurestep optimum --best step_sizes --steps 2 --activation relu --readout rademacher
      featurestep optimum --over noise_std=0:1:11 --plot ridges.pdf
    """
    searched = dict(map(_parse_search, best)) or {"ridge": None}
    bounds = {name: pair for name, pair in searched.items() if pair is not None}
    names = tuple(searched)
    answer(theory.optimum, request, fields=1, over=names, minimise=minimise, bounds=bounds)
    step = ("step_exponent", "step_scale") if {"step_size", "step_sizes"} & searched.keys() else ()
    request.tell_unused((*names, *step))


def _parse_search(text: str) -> tuple[str, tuple[Any, Any] | None]:
    """`NAME` or `NAME=LOW:HIGH`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        return name, None
    bounds = tuple(map(read_number, values.split(":")))
    if len(bounds) != 2 or not all(isinstance(b, (int, float)) and isfinite(b) for b in bounds):
        raise InvalidProblem("--best", "must read NAME or NAME=LOW:HIGH", text)
    return name, (bounds[0], bounds[1])
