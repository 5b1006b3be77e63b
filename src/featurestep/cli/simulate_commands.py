"""The commands that run networks: `simulate`, `compare`, `equivalence`; requests with networks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import click

from .. import simulation
from ..core.axes import read_number
from ..core.display import Table, describe
from ..core.errors import InvalidProblem
from ..meeting.comparison import Z_LIMIT, Comparison, enough_seeds
from ..meeting.comparison import compare as compare_problems
from ..simulation import SEEDS, Setting
from ..theory.predict import require_predictable
from .options import DEFAULTS, Request, Rows, asking, read_array
from .output import Found, answer, check_folder, show_notes, show_table, watched_share, write_in

_MEMORY = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(?:([kmgt])(i)?)?b?", re.IGNORECASE)
SMALL = {**DEFAULTS, "n": 1000, "d": 500, "width": 750, "seeds": SEEDS}  # a few seconds


def numbers(text: str) -> list[Any]:
    """`v1,v2,…`, each as `number` reads it."""
    return [read_number(part.strip()) for part in text.split(",")]


def one_or_list(text: str) -> Any:
    """A number or a word, or a list of them."""
    return numbers(text) if "," in text else read_number(text)


def memory(text: str) -> float:
    """Bytes behind `2GB`, `500 MiB` or a plain number of them."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise InvalidProblem("max_memory", "must read as 2GB, 500MiB or a number of bytes", text)
    digits, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return float(digits) * float(base) ** " kmgt".index((prefix or " ").lower())


def _inputs(text: str) -> Any:
    """The name of a law, or the array in a .npy file."""
    return read_array("inputs", text) if text.endswith(".npy") else text


_READERS: Mapping[str, Callable[[str], Any]] = {  # of what is not a word, a number or a list
    "max_memory": memory,
    "inputs": _inputs,
}
_RUN = {
    "seeds": ("K", "number of networks to simulate, or a list of seeds such as 3,5,8"),
    "n_test": ("n_te", "number of test inputs  [default: 2n, from 4000 to 20000]"),
    "dtype": ("TYPE", "float64, float32, or mixed: features in float32  [default: float64]"),
    "device": ("NAME", "cpu, cuda, or torch (on the CPU)  [default: cpu]"),
    "drawn": ("WHERE", "draw random numbers on the host or the device  [default: device for cuda]"),
    "max_memory": (
        "SIZE",
        "largest memory to use, such as 2GB or 500MiB  [default: what is free]",
    ),
}
_SETTING = {
    "inputs": (
        "LAW",
        "distribution of the inputs: gaussian, rademacher, uniform, 'student_t(df)', sphere, "
        "'mixture(K,s)', or a .npy file with one input per row  [default: gaussian]",
    ),
    "corrupted": ("q", "fraction of training labels replaced by unrelated ones  [default: 0]"),
}
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="run on the workers of a Dask scheduler, given by its address or scheduler file",
)


class Run(Request):
    """A request that runs networks: also how many and where, and on what data.

    run
        The arguments of a verb that simulates, the scheduler aside.
    """

    OPTIONS: ClassVar[Rows] = {**_RUN, **_SETTING}

    def __init__(
        self, *, scheduler: str | None = None, defaults: Mapping[str, Any], **options: Any
    ) -> None:
        given, departed = (
            {
                name: _READERS.get(name, one_or_list)(text)
                for name in known
                if (text := options.pop(name, None)) is not None
            }
            for known in (_RUN, _SETTING)
        )
        fields = dict(defaults)
        self.run = {"seeds": fields.pop("seeds"), **given, "setting": Setting(**departed)}
        self.scheduler = scheduler
        if not self.run["seeds"] and "seeds" not in given:  # no network: no option is ignored
            unused = {**given, **departed, **({"scheduler": scheduler} if scheduler else {})}
            for name, value in unused.items():
                option = f"--{name.replace('_', '-')}"
                raise InvalidProblem(
                    option, "needs --seeds: it applies to simulated networks only", value
                )
        super().__init__(**options, defaults=fields)


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
@asking(Run, without=("n_test", "dtype", "device", "drawn"), unused=("ridge",), defaults=SMALL)
def equivalence(request: Run, degrees: str) -> None:
    """Distance of the trained features from the papers' F_ℓ.

    F_ℓ are the features before the step plus ℓ polynomials of the learned direction. The distance
    ‖F − F_ℓ‖_op/√n vanishes as n grows when ℓ is at least the degree of the step exponent's regime.
    For the errors of these feature maps on the same draws, see `simulate --variants`.

    \b
    Examples
      featurestep equivalence --n 400 --d 200 --width 300
      featurestep equivalence --phi 0.5 --psi 0.7 --over n=250,500,1000 --plot gaps.pdf
    """
    answer(simulation.feature_gap, request, fields=1, degrees=numbers(degrees), **request.run)


DEMO_OWN = {"activation": "relu", "centre": True, "d": 600, "width": 1000, "ridge": 0.1}
DEMO_FIXED = ("target", "noise_std", "step_exponent", "step_scale", "step_size")
DEMO_PLAIN = (
    *("loss", "intercept", "flip", "rows", "steps", "step_sizes", "batches"),
    *("covariance", "target_exponent", "target_mass", "target_direction"),
)


@click.command()
@click.option("--output", metavar="DIR", default="demo", show_default=True, help="for demo.png")
@click.option("--seeds", metavar="K", default="8", show_default=True, help="networks to simulate")
@asking(without=(*DEMO_FIXED, *DEMO_PLAIN), defaults={**DEFAULTS, **DEMO_OWN}, curve=False)
def demo(request: Request, output: str, seeds: str) -> None:
    """Two published targets, learned degree by degree.

    The settings of Moniri et al.: y = H₁ + ε with ε ~ N(0, 1), and y = H₁ + H₂/√2, the
    polynomials taken along β⋆. Draws train loss and test error against the step exponent, at
    finite n and in the limit n → ∞, with simulated networks as points, to DIR/demo.png.
    """
    from ..demo import EXPLANATION, SETTINGS, demo_notes, demo_rows, draw, run_demo
    from ..plots.style import figure_of, render

    base = request.problem
    check_folder(output)
    drawn = enough_seeds(one_or_list(seeds))
    with watched_share("simulating") as told:
        settings = run_demo(base, seeds=drawn, progress=told)
    rows = demo_rows(settings)
    path = write_in(output, "demo.png", render(figure_of(draw(base, settings)), "png"))
    click.echo("\n".join(describe(base, DEMO_FIXED)))
    header = ["step_exponent"]
    for which, (title, _) in enumerate(SETTINGS, 1):
        click.echo(title)
        header += [f"test error {which}", "simulated", "limit", "with norm growth"]
    show_table(Table.of(header, rows))
    click.echo(EXPLANATION)
    show_notes(demo_notes(settings))
    click.echo(f"Figure: {path}")
