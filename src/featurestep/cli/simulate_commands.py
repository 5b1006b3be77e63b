"""The commands that run the real network: `simulate` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .. import simulation
from ..meeting.comparison import compare as compare_problems
from ..meeting.comparison import enough_seeds
from .figures import check_lines, draw_comparisons, draw_simulations
from .files import check_path, mention, save
from .options import curve_options, problem_options
from .output import show_json
from .progress import all_or_nothing
from .run import SMALL, Found, Run, read_run, simulation_options
from .simulated import (
    comparisons_json,
    failed_check,
    show_comparisons,
    show_simulations,
    simulations_json,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_problem_options = partial(problem_options, defaults=SMALL)


@click.command()
@click.option(
    "--variants",
    metavar="NAMES",
    default="trained",
    show_default=True,
    help="feature maps on the same draw: trained, initial, spiked:ℓ, gaussian, "
    "gaussian+spiked:ℓ, srf, separated by commas",
)
@_problem_options
@simulation_options
@curve_options
def simulate(
    variants: str, over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any
) -> None:
    """Train and test the real network on drawn data, exactly.

    Draws the data and the network, takes the gradient step, fits the readout and measures its
    errors, once for each seed; points of a grid see the same draws and share all the work they
    can. Memory and flops are stated on stderr before the run, and Ctrl-C writes nothing. With
    --variants the feature maps that the papers prove equivalent run on the same draws.

    \b
    Examples
      featurestep simulate
      featurestep simulate --over step_exponent=0:0.45:10 --seeds 4 --plot errors.pdf
      featurestep simulate --variants trained,initial,spiked:1,gaussian+spiked:1
      featurestep simulate --variants trained,spiked:2 --phi 0.5 --psi 0.7 --over n=200,400,800
      featurestep simulate --inputs rademacher --corrupted 0.1 --steps 3 --json
      featurestep simulate --n 40000 --d 1000 --width 2000 --seeds 2 --max-memory 1.5GB
    """
    names = tuple(name.strip() for name in variants.split(","))
    run = read_run(options, over, variants=names)
    check_path(plot)
    if plot:
        check_lines(run)
    found = _found(run, simulation.simulate, draw_simulations, plot)
    if as_json:
        show_json(simulations_json(run, found))
    else:
        show_simulations(run, found)
        mention(plot)


@click.command()
@click.option(
    "--check", is_flag=True, help="exit with 1 when |z| > 4 anywhere without a note that says why"
)
@_problem_options
@simulation_options
@curve_options
def compare(
    check: bool, over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any
) -> None:
    """Theory against the real network: prediction, simulation and their distance.

    For every point: what `predict` says, the mean of `simulate` ± its standard error over the
    seeds, their difference in standard errors (z) and in per cent of the prediction (gap). Notes
    say where an approximation leaves its range or the simulation leaves the theory's assumptions.
    --plot draws the theory's curve with the simulated points, or the gaps of a single problem.
    With 8 seeds chance alone gives |z| > 4 once in 200 rows, with 24 once in 1800: --check wants
    the larger number.

    \b
    Examples
      featurestep compare
      featurestep compare --over step_exponent=0:0.45:10 --plot agreement.pdf
      featurestep compare --activation relu --centre --target "H1 + H2/sqrt(2)" --seeds 24 --check
      featurestep compare --inputs student_t(5) --over ridge=log:0.001:1:7 --json
    """
    run = read_run(options, over)
    enough_seeds(run.arguments["seeds"])
    check_path(plot)
    found = _found(run, compare_problems, draw_comparisons, plot)
    if as_json:
        show_json(comparisons_json(run, found))
    else:
        show_comparisons(run, found)
        mention(plot)
    failure = failed_check(found) if check else None
    if failure is not None:
        click.echo(failure, err=True)
        raise click.exceptions.Exit(1)


def _found(
    run: Run,
    work: Callable[..., Found],
    draw: Callable[[Run, Sequence[Found]], Axes],
    plot: str | None,
) -> list[Found]:
    """Compute and write the figure; interrupted before that, nothing is left."""
    with all_or_nothing():
        found = run.execute(work)
        if plot:
            save(plot, draw(run, found))
    return found
