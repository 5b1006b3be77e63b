"""The commands that run the real network: `simulate`, `compare` and `equivalence`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .. import simulation
from ..meeting.comparison import Z_LIMIT, Comparison, enough_seeds
from ..meeting.comparison import compare as compare_problems
from ..theory.predict import require_predictable
from .answers import Found, answer
from .options import asking
from .run import SMALL, Run, numbers, scheduler_option

_MOST_NAMED = 3  # rows that a failed check spells out


@click.command()
@click.option(
    "--variants",
    metavar="NAMES",
    default="trained",
    show_default=True,
    help="feature maps on the same draw: trained, initial, spiked:ℓ, gaussian, "
    "gaussian+spiked:ℓ, srf, separated by commas",
)
@scheduler_option
@asking(Run, defaults=SMALL)
def simulate(request: Run, variants: str) -> None:
    """Train and test the network on random data.

    Draws the data and the network, takes the gradient step, fits the readout and measures its
    errors, once for each seed. All points of a grid use the same draws. The memory and the number
    of floating-point operations (flops) are printed to stderr before the run; Ctrl-C stops it and
    writes nothing. With --variants the feature maps that the papers prove equivalent are fitted
    on the same draws.

    \b
    Examples
      featurestep simulate
      featurestep simulate --over step_exponent=0:0.45:10 --seeds 4 --plot errors.pdf
      featurestep simulate --loss logistic --intercept --flip 0.05 --over ridge=0.001,0.01,0.1
      featurestep simulate --variants trained,initial,spiked:1,gaussian+spiked:1
      featurestep simulate --variants trained,spiked:2 --phi 0.5 --psi 0.7 --over n=200,400,800
      featurestep simulate --inputs rademacher --corrupted 0.1 --steps 3 --json
      featurestep simulate --n 40000 --d 1000 --width 2000 --seeds 2 --max-memory 1.5GB
    """
    names = tuple(name.strip() for name in variants.split(","))
    fields = 2 if len(names) == 1 else 1
    _answer(simulation.simulate, request, fields, variants=names, **request.run)


def _answer(verb: Callable[..., Found], request: Run, fields: int = 2, **arguments: Any) -> Found:
    """Estimate, run and report what the networks do."""
    cost = simulation.estimate(request.target, **arguments)
    price = {"memory": cost.memory, "flops": cost.flops}
    return answer(
        verb,
        request,
        fields=fields,
        cost=cost,
        by_flops=True,
        asked={"over": request.axes, "estimate": price},
        scheduler=request.scheduler,
        **arguments,
    )


@click.command()
@click.option(
    "--check",
    is_flag=True,
    help="exit with code 1 if |z| > 4 at any point, beyond the error that its notes expect",
)
@scheduler_option
@asking(Run, defaults=SMALL)
def compare(request: Run, check: bool) -> None:
    """Compare the theory with simulated networks.

    For every point: the answer of `predict`, the mean of `simulate` ± its standard error over the
    seeds, their difference in standard errors (z) and in per cent of the prediction (gap). Notes
    say where the theory is approximate or the simulation does not meet its assumptions.
    --plot draws the theory's curve with the simulated points, or the gaps of a single problem.
    With 8 seeds chance alone gives |z| > 4 once in 200 rows, with 24 once in 1800: use 24
    or more with --check.

    \b
    Examples
      featurestep compare
      featurestep compare --over step_exponent=0:0.45:10 --plot agreement.pdf
      featurestep compare --activation relu --centre --target "H1 + H2/sqrt(2)" --seeds 24 --check
      featurestep compare --inputs 'student_t(5)' --over ridge=log:0.001:1:7 --json
    """
    enough_seeds(request.run["seeds"])
    require_predictable(request.target)
    found = _answer(compare_problems, request, **request.run)
    failure = _failure(found) if check else None
    if failure is not None:
        click.echo(failure, err=True)
        raise click.exceptions.Exit(1)


def _failure(found: Comparison) -> str | None:
    """Which rows lie further off than their notes admit, or None."""
    wrong = sorted(found.disagreements(), key=lambda row: -row.distance)
    if not wrong:
        return None
    named = "; ".join(map(str, wrong[:_MOST_NAMED]))
    more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    return f"check failed, |z| > {Z_LIMIT:g}: {named}{more}"


@click.command()
@click.option("--degrees", metavar="ℓ,…", default="1,2,3", show_default=True, help="of F_ℓ")
@asking(Run, without=("n_test", "dtype", "device", "drawn"), defaults=SMALL)
def equivalence(request: Run, degrees: str) -> None:
    """Distance of the spiked features F_ℓ from the trained ones, ‖F − F_ℓ‖_op/√n.

    F_ℓ are the features before the step plus ℓ polynomials of the learned direction. The distance
    vanishes as n grows when ℓ is at least the degree of the step exponent's regime. For the
    errors of these feature maps on the same draws, see `simulate --variants`.

    \b
    Examples
      featurestep equivalence --n 400 --d 200 --width 300
      featurestep equivalence --phi 0.5 --psi 0.7 --over n=250,500,1000 --plot gaps.pdf
    """
    answer(simulation.feature_gap, request, fields=1, degrees=numbers(degrees), **request.run)
