"""The commands about spectra: `spectrum`, `critical` and `phase`."""

from __future__ import annotations

from typing import ClassVar

import click

from .. import theory
from ..core.axes import read_number
from ..core.errors import InvalidProblem
from ..core.grid import as_grid
from ..meeting import spectra
from ..meeting.phase import EXPONENTS, phase_diagram
from ..simulation import Estimate, checked_seeds, estimate_spectrum
from .options import DEFAULTS, Request, asking
from .output import answer
from .simulate_commands import Run, scheduler_option

_STEP = ("step_exponent", "step_size")
_LEFT_OUT = ("n_test", "dtype", "drawn")  # of a run: spectra have none of it here


@click.command()
@scheduler_option
@asking(Run, without=_LEFT_OUT, unused=("ridge",), defaults={**DEFAULTS, "seeds": 0})
def spectrum(request: Run) -> None:
    """Singular values of the features: the bulk and the spikes.

    After the step some singular values of F/√n leave the bulk (the continuous density of the
    others). Each of these spikes is a learned feature, close to a polynomial of κ = x·β/‖β‖, the
    input along the learned direction: the table has the squared overlap of its left singular
    vector with every Hermite polynomial H_k(κ). A spike that is closer to the bulk's edge than
    the random fluctuations of that edge is listed, but not counted. With --seeds the singular
    values of simulated networks are shown as well. --plot draws the densities and overlaps; with
    --over it draws edge and spikes against the field.

    \b
    Examples
      featurestep spectrum --activation relu --centre --target "H1 + H2/sqrt(2)" --plot s.pdf
      featurestep spectrum --activation gelu --centre --step-exponent 0.4 --seeds 4
      featurestep spectrum --over step_exponent=0:0.5:26 --plot tracks.pdf
      featurestep spectrum --over width=500,1000,2000 --over readout=gaussian,constant --json
    """
    if not request.run["seeds"]:
        answer(theory.spectrum, request, fields=1)
        return
    answer(
        spectra.spectrum_beside,
        request,
        fields=1,
        cost=_cost(request, ("trained", "weights")),
        by_flops=not request.axes,
        asked={"seeds": list(checked_seeds(request.run["seeds"]))},
        scheduler=request.scheduler,
        **request.run,
    )


def _cost(request: Run, variants: tuple[str, ...]) -> Estimate:
    """Of the networks at all points together."""
    known = {k: v for k, v in request.run.items() if k in ("seeds", "setting", "max_memory")}
    costs = [
        estimate_spectrum(p, variants=variants, top=spectra.top(p), **known)
        for p in as_grid(request.target)
    ]
    return Estimate.of_all(costs)


@click.command()
@click.option(
    "--degrees", metavar="k", default="4", show_default=True, help="highest degree, up to 6"
)
@asking(without=_STEP)
def critical(request: Request, degrees: str) -> None:
    """Step sizes from which degrees 1, 2, … are learned.

    For each degree: the step at which its spike leaves the bulk, and the step at which half of
    the target's part of that degree along the learned direction is learned; both as η and as the
    exponent α at this n, next to the published exponent for n → ∞. --plot draws the spikes
    against the exponent and marks where each leaves the bulk.

    \b
    Examples
      featurestep critical --activation relu --centre --target "H1 + H2/sqrt(2)"
      featurestep critical --activation gelu --centre --degrees 6 --plot steps.pdf
      featurestep critical --n 20000 --d 10000 --width 15000 --json
    """
    answer(theory.critical_steps, request, fields=1, degrees=read_number(degrees))


# ReLU: tanh is odd and has no second spike at any step.
PHASE_OWN = {"activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)", "seeds": 0}


class Phases(Run):
    """A run over step exponents."""

    AXES: ClassVar = {"step_exponent": EXPONENTS}


@click.command()
@asking(Phases, without=(*_STEP, *_LEFT_OUT), unused=("ridge",), defaults={**DEFAULTS, **PHASE_OWN})
def phase(request: Phases) -> None:
    """Numbers of spikes and learned degrees over a grid.

    Three answers for every point: the published limit n → ∞, the prediction at this n and, with
    --seeds, the mean over simulated networks. --over step_exponent=… sets the exponents (25 in
    (0, 1/2) if not given), and another --over adds a field. At the ends of the published
    intervals the limit is undefined, shown as –.

    \b
    Examples
      featurestep phase --activation gelu --centre
      featurestep phase --over readout=gaussian,rademacher,constant --plot laws.pdf
      featurestep phase --over step_exponent=0.02:0.48:24 --over n_step=log:1000:64000:7 --json
      featurestep phase --phi 0.5 --psi 0.7 --over n=250,500,1000 --seeds 2 --plot sizes.png
    """
    if "step_exponent" not in request.axes:
        rule = "must name step_exponent and one further field at most"
        raise InvalidProblem("--over", rule, request.over)
    cost = _cost(request, ("trained",)) if request.run["seeds"] else None
    run = {name: value for name, value in request.run.items() if name != "max_memory"}
    answer(phase_diagram, request, cost=cost, **run)
