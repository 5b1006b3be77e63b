"""`featurestep sweep`: resumable experiments from a file.

What sweeps need is loaded by the commands that run them, not for their help.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..core.axes import read_number
from ..core.errors import InvalidProblem
from .options import Command, json_option
from .output import check_path, mention, save


def _file(command: Command) -> Command:
    store = click.option("--store", metavar="PATH", help="the SQLite file with the results")
    return click.argument("file", metavar="FILE")(store(command))


def _engine(command: Command) -> Command:
    words = "processes, serial or dask  [default: processes]"
    kind = click.option("--engine", metavar="KIND", help=words)
    workers = click.option("--workers", metavar="K", help="worker processes  [default: all cores]")
    words = "address of a Dask scheduler, or its .json file"
    scheduler = click.option("--scheduler", metavar="ADDRESS", help=words)
    return kind(workers(scheduler(command)))


_numerics = click.option(
    "--numerics",
    multiple=True,
    metavar="TAG",
    help="also read results of another numerical environment, named as in `status`; may repeat",
)


@click.group()
def sweep() -> None:
    """Compute grids of problems and store the results: run, resume, export, plot.

    A sweep FILE (TOML) has a base problem, a grid over its fields and the tasks to compute at
    every point. Every result is stored at once (in an SQLite file beside FILE). After an
    interruption, or with a larger grid, running it again computes only what is missing.

    \b
    Example of a FILE
      [problem]
      n = 400
      d = 200
      width = 300
      noise_std = 0.1
      [grid]
      ridge = { start = 0.001, stop = 1.0, count = 7, scale = "log" }
      step_exponent = [0.1, 0.3, 0.45]
      [tasks.predict]
      [tasks.simulate]
      seeds = 4
    """


@sweep.command()
@_file
@_engine
@json_option
def run(as_json: bool, **asked: Any) -> None:
    """Compute what the store does not have yet.

    Ctrl-C keeps what is done. A unit (one task at one point) that fails is recorded with its
    traceback, and the others go on; the exit code is then 1. A point where the theory has no
    number is not a failure.

    \b
    Examples
      featurestep sweep run examples/ridge_sweep.toml
      featurestep sweep run examples/ridge_sweep.toml --engine processes --workers 4
      featurestep sweep run examples/ridge_sweep.toml --engine dask --scheduler tcp://10.0.0.1:8786
    """
    from .sweep_run import compute, planned

    compute(planned(**asked), retry=False, as_json=as_json)


@sweep.command()
@_file
@_engine
@json_option
def retry(as_json: bool, **asked: Any) -> None:
    """Compute again what failed, and what is missing.

    \b
    Example
      featurestep sweep retry examples/ridge_sweep.toml
    """
    from .sweep_run import compute, planned

    compute(planned(**asked), retry=True, as_json=as_json)


@sweep.command()
@_file
@json_option
def status(as_json: bool, **asked: Any) -> None:
    """Progress of a sweep, and why some results are missing.

    \b
    Examples
      featurestep sweep status examples/ridge_sweep.toml
      featurestep sweep status examples/ridge_sweep.toml --json
    """
    from .sweep_run import planned, show_status

    show_status(planned(**asked), as_json=as_json)


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT")
@click.option("--provenance", is_flag=True, help="add when, where and by what each was computed")
@_numerics
def export(output: str, provenance: bool, **where: Any) -> None:
    """Write what is stored to OUTPUT: .nc, .parquet, .csv or .json.

    CSV, JSON and Parquet have one row for each unit; netCDF has arrays over the grid.

    \b
    Examples
      featurestep sweep export examples/ridge_sweep.toml ridge.nc
      featurestep sweep export examples/ridge_sweep.toml ridge.csv --provenance
    """
    from ..sweeps.results import check_target
    from ..sweeps.results import export as write
    from .sweep_run import stored

    check_target(Path(output))
    with stored(**where) as (plan, opened):
        write(plan, opened, output, provenance=provenance)
    click.echo(f"wrote {output}")


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT")
@click.option("--quantity", metavar="NAME", default="test_error", show_default=True)
@click.option("--x", metavar="FIELD", help="the horizontal axis  [default: the first dimension]")
@click.option("--at", multiple=True, metavar="FIELD=VALUE", help="fix a dimension; may repeat")
@_numerics
def plot(output: str, quantity: str, x: str | None, at: tuple[str, ...], **where: Any) -> None:
    """Draw one quantity of every task to OUTPUT: .png, .pdf or .svg.

    Predictions are lines, limits dashed, simulations means with bars of two standard errors. A
    second dimension gives colours; --at fixes the others.

    \b
    Examples
      featurestep sweep plot examples/ridge_sweep.toml ridge.pdf --at variant=trained
      featurestep sweep plot examples/ridge_sweep.toml a.png --at variant=initial --x ridge
    """
    from ..plots.sweeps import sweep_curves
    from ..sweeps.results import make_dataset
    from .sweep_run import stored

    check_path(output)
    fixed = dict(map(_fixed, at))
    with stored(**where) as (plan, opened):
        results = make_dataset(plan, opened)
    try:
        save(output, sweep_curves(results, quantity, x=x, at=fixed))
    except InvalidProblem as error:
        if error.parameter in ("quantity", "x", "at"):
            raise InvalidProblem(f"--{error.parameter}", error.rule, error.value) from None
        raise
    mention(output)


def _fixed(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidProblem("--at", "must read FIELD=VALUE", text)
    known = {"true": True, "false": False}
    return name.strip(), known.get(value.strip(), read_number(value.strip()))
