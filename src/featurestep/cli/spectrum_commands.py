"""The commands about spectra: `spectrum`, `critical` and `phase`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .. import theory
from ..errors import InvalidProblem
from ..meeting.phase import EXPONENTS, PhaseDiagram, phase_diagram
from ..problem import Grid, Problem
from ..results import GridResult, describe, shared_fields
from ..simulation.arguments import checked_seeds
from .answers import check_plot, report
from .files import check_path, mention, save
from .options import Request, curve_options, output_options, problem_options
from .output import show_json, show_notes
from .progress import all_or_nothing, shifted
from .spectrum_output import (
    followed_points,
    phase_points,
    show_critical,
    show_spectrum,
    spectrum_record,
)
from .spectrum_run import announce, bar, follow, simulate_all, simulate_one
from .values import number, one_or_list

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

_TRACK = tuple(i / 80 for i in range(41))  # exponents of the figure of `critical`
_STEP = ("step_exponent", "step_size")
_seeds_option = click.option(
    "--seeds",
    metavar="K",
    default="0",
    help="networks to simulate, or their seeds as 3,5,8  [default: 0]",
)


@click.command()
@_seeds_option
@problem_options
@curve_options
def spectrum(
    seeds: str, over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any
) -> None:
    """Singular values of features and weights: bulks, spikes, and what spikes carry.

    After the step some singular values of F/√n leave the bulk. Each carries a polynomial of
    κ = x·β/‖β‖, the input along the learned direction: the table has the squared overlap of its
    left vector with every H_k(κ). A spike nearer to the edge than the edge itself fluctuates is
    shown and not counted. With --seeds real networks are drawn and set beside it. --plot draws
    the densities and overlaps; with --over it draws edge and spikes against the field.

    \b
    Examples
      featurestep spectrum --activation relu --centre --target "H1 + H2/sqrt(2)" --plot s.pdf
      featurestep spectrum --activation gelu --centre --step-exponent 0.4 --seeds 4
      featurestep spectrum --over step_exponent=0:0.5:26 --plot tracks.pdf
      featurestep spectrum --over width=500,1000,2000 --over readout=gaussian,constant --json
    """
    request, drawn = Request(options, over), _read_seeds(seeds)
    check_plot(plot, request, 1)
    target = request.target
    if isinstance(target, Problem):
        _one_spectrum(target, drawn, as_json, plot)
    else:
        _many_spectra(target, drawn, as_json, plot)


def _one_spectrum(
    problem: Problem, seeds: tuple[int, ...], as_json: bool, plot: str | None
) -> None:
    with all_or_nothing():
        found = theory.spectrum(problem)
        simulated = simulate_one(problem, seeds) if seeds else None
        if plot:
            from ..plots.spectra import panels

            save(plot, panels(found, simulated)[0])
    if as_json:
        show_json(spectrum_record(found, simulated))
        return
    show_spectrum(found, simulated)
    mention(plot)


def _many_spectra(grid: Grid, seeds: tuple[int, ...], as_json: bool, plot: str | None) -> None:
    with all_or_nothing():
        results = follow(grid)
        simulated = simulate_all(grid, seeds) if seeds else None
        table = followed_points(grid, results, simulated)
        if plot:
            save(plot, _draw_tracks(grid, results, table))
    report(table, as_json=as_json, plot=plot, seeds=seeds)
    near = sum(not all(resolved or ()) for resolved in table.columns["resolved"])
    if near and not as_json:
        rest = "within the fluctuations of the edge: listed, not counted"
        show_notes([f"{near} of {len(grid)} points have a spike {rest}"])


def _read_seeds(text: str) -> tuple[int, ...]:
    value = one_or_list(text)
    return () if value == 0 else checked_seeds(value)


def _draw_tracks(grid: Grid, results: xarray.Dataset, table: GridResult) -> Axes:
    """Edge and spikes against the field, with births over the step exponent."""
    from ..plots import tracks

    births = theory.critical_steps(grid.base).steps if "step_exponent" in grid.axes else ()
    simulated = table.columns.get("simulated_values")
    return tracks(results, births, None if simulated is None else list(simulated))


@click.command()
@click.option("--degrees", metavar="k", default="4", show_default=True, help="from 1 to k, 6 most")
@partial(problem_options, without=_STEP)
@output_options
def critical(degrees: str, as_json: bool, plot: str | None, **options: Any) -> None:
    """How large must the step be to learn features of degree 1, 2, …?

    For each degree: the step at which its spike leaves the bulk, and the step at which half of
    the target's part of that degree, as seen along the learned direction, is learned; both as η
    and as the exponent α at this n. Beside them the published exponent, for n → ∞. --plot draws
    the spikes against the exponent, each marked where it is born.

    \b
    Examples
      featurestep critical --activation relu --centre --target "H1 + H2/sqrt(2)"
      featurestep critical --activation gelu --centre --degrees 6 --plot births.pdf
      featurestep critical --n 20000 --d 10000 --width 15000 --json
    """
    check_path(plot)
    request = Request(options, _exponents_first((), _TRACK))
    grid = request.target
    assert isinstance(grid, Grid)
    with all_or_nothing():
        found = theory.critical_steps(request.problem, degrees=number(degrees))
        if plot:
            from ..plots import tracks

            save(plot, tracks(follow(grid), found))
    if as_json:
        show_json({"problem": shared_fields(grid), "status": "ok", **found.as_dict()})
        return
    click.echo("\n".join(describe(grid)))
    show_critical(found)
    mention(plot)


@click.command()
@_seeds_option
@partial(problem_options, without=_STEP)
@curve_options
def phase(
    seeds: str, over: tuple[str, ...], as_json: bool, plot: str | None, **options: Any
) -> None:
    """How many spikes, and which degrees are learned, over the step exponent and a field.

    Three answers for every point: the published limit n → ∞, the prediction at this n and, with
    --seeds, the mean over real networks. --over step_exponent=… sets the exponents (25 in
    (0, 1/2) if not given), and another --over adds a field. At the ends of the published
    intervals the limit is undefined, shown as –.

    \b
    Examples
      featurestep phase --activation relu --centre
      featurestep phase --over readout=gaussian,rademacher,constant --plot laws.pdf
      featurestep phase --over step_exponent=0.02:0.48:24 --over n_step=log:1000:64000:7 --json
      featurestep phase --phi 0.5 --psi 0.7 --over n=250,500,1000 --seeds 2 --plot sizes.png
    """
    request, drawn = Request(options, _exponents_first(over, EXPONENTS)), _read_seeds(seeds)
    check_path(plot)
    if "step_exponent" not in request.axes:
        rule = "must name step_exponent and one further field at most"
        raise InvalidProblem("--over", rule, over)
    with all_or_nothing():
        found = _diagram(request, drawn)
        if plot:
            from ..plots import phase as draw

            save(plot, draw(found.dataset)[0])
    report(phase_points(found), as_json=as_json, plot=plot, seeds=drawn)


def _exponents_first(over: tuple[str, ...], exponents: Sequence[float]) -> tuple[str, ...]:
    """The fields to vary, with the step exponent among them."""
    names = [text.partition("=")[0].strip().replace("-", "_") for text in over]
    if "step_exponent" in names or len(over) > 1:
        return over
    return (f"step_exponent={','.join(map(repr, exponents))}", *over)


def _diagram(request: Request, seeds: tuple[int, ...]) -> PhaseDiagram:
    grid = request.target
    assert isinstance(grid, Grid)
    if seeds:
        announce(list(grid), seeds, ("trained",))
    with bar(len(grid), "points", wanted=bool(seeds)) as advance:
        return phase_diagram(grid, seeds=seeds or 0, progress=shifted(advance, 0))
