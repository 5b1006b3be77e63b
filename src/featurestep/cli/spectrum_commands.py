"""The commands about spectra: `spectrum`, `critical` and `phase`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from .. import theory
from ..axes import number
from ..errors import InvalidProblem
from ..grid import Grid
from ..meeting import spectra
from ..meeting.phase import EXPONENTS, phase_diagram
from ..simulation import Estimate, estimate_spectrum
from ..simulation.arguments import checked_seeds
from .answers import Found, answer, check_plot, report
from .options import DEFAULTS, Request, curve_options, problem_options
from .progress import all_or_nothing
from .run import ran, read_run, scheduler_option, simulation_options

_STEP = ("step_exponent", "step_size")
_networks = partial(simulation_options, seeds=0, without=("n_test", "dtype", "drawn"))


@click.command()
@scheduler_option
@problem_options
@_networks
@curve_options
def spectrum(scheduler: str | None, **options: Any) -> None:
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
    rest, arguments = _read(options)
    request = Request(**rest)
    if not arguments:
        if scheduler is not None:
            raise InvalidProblem("--scheduler", "needs --seeds: it shares simulations", scheduler)
        answer(theory.spectrum, request, fields=1)
        return
    check_plot(request, 1)
    work = partial(spectra.spectrum_beside, request.target, scheduler=scheduler, **arguments)
    found = _simulated(work, request, ("trained", "weights"), arguments)
    report(found, request, seeds=list(arguments["seeds"]))


def _read(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The problem's options, and the arguments of a simulation; none without seeds."""
    asked = options.get("seeds") not in (None, "0")
    rest, arguments = read_run(options)
    if not asked:
        return rest, {}
    return rest, {**arguments, "seeds": checked_seeds(arguments["seeds"])}


def _simulated(
    work: Callable[..., Found],
    request: Request,
    variants: tuple[str, ...],
    arguments: dict[str, Any],
) -> Found:
    """Simulate a problem, or every point of a grid under a bar over points."""
    target = request.target
    known = {k: v for k, v in arguments.items() if k in ("seeds", "setting", "max_memory")}
    with all_or_nothing():
        costs = [
            estimate_spectrum(p, variants=variants, top=spectra.top(p), **known)
            for p in (target if isinstance(target, Grid) else [target])
        ]
        points = len(costs) if isinstance(target, Grid) else None
        return ran(work, Estimate.of_all(costs), request.plot, points=points)


@click.command()
@click.option("--degrees", metavar="k", default="4", show_default=True, help="from 1 to k, 6 most")
@partial(problem_options, without=_STEP)
@curve_options
def critical(degrees: str, **options: Any) -> None:
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
    answer(theory.critical_steps, Request(**options), fields=1, degrees=number(degrees))


# ReLU: tanh is odd and has no second spike at any step.
PHASE_DEFAULTS = {**DEFAULTS, "activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)"}


@click.command()
@partial(problem_options, without=_STEP, defaults=PHASE_DEFAULTS)
@_networks
@curve_options
def phase(over: tuple[str, ...], **options: Any) -> None:
    """How many spikes, and which degrees are learned, over the step exponent and a field.

    Three answers for every point: the published limit n → ∞, the prediction at this n and, with
    --seeds, the mean over real networks. --over step_exponent=… sets the exponents (25 in
    (0, 1/2) if not given), and another --over adds a field. At the ends of the published
    intervals the limit is undefined, shown as –.

    \b
    Examples
      featurestep phase --activation gelu --centre
      featurestep phase --over readout=gaussian,rademacher,constant --plot laws.pdf
      featurestep phase --over step_exponent=0.02:0.48:24 --over n_step=log:1000:64000:7 --json
      featurestep phase --phi 0.5 --psi 0.7 --over n=250,500,1000 --seeds 2 --plot sizes.png
    """
    rest, arguments = _read(options)
    request = Request(**rest, over=_exponents_first(over), defaults=PHASE_DEFAULTS)
    check_plot(request, 2)
    if "step_exponent" not in request.axes:
        rule = "must name step_exponent and one further field at most"
        raise InvalidProblem("--over", rule, over)
    if not arguments:
        answer(phase_diagram, request)
        return
    arguments.pop("max_memory", None)
    work = partial(phase_diagram, request.target, **arguments)
    report(_simulated(work, request, ("trained",), arguments), request)


def _exponents_first(over: tuple[str, ...]) -> tuple[str, ...]:
    """The fields to vary, with the step exponent among them."""
    names = [text.partition("=")[0].strip().replace("-", "_") for text in over]
    if "step_exponent" in names or len(over) > 1:
        return over
    return (f"step_exponent={','.join(map(repr, EXPONENTS))}", *over)
