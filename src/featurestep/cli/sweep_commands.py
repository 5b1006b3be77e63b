"""`featurestep sweep`: resumable sweeps from a file, their state, data and plots."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..core.axes import read_number
from ..core.display import Table
from ..core.errors import InvalidProblem
from ..sweeps import (
    STATES,
    Plan,
    Store,
    SweepProgress,
    SweepStatus,
    current_plan,
    execute,
    load_sweep,
    make_plan,
    make_status,
    open_store,
    under_numerics,
)
from . import INTERRUPTED
from .options import Command, file_names, json_option
from .output import (
    check_path,
    mention,
    save,
    show_json,
    show_notes,
    show_table,
    watched,
)

_MAX_REASONS = 5


def planned(file: str, *, workers: str | None = None, **asked: str | None) -> Plan:
    """The plan of a file, with the options of the command line in place of its own."""
    sweep = load_sweep(Path(file))
    try:
        sweep = sweep.override(workers=None if workers is None else read_number(workers), **asked)
    except InvalidProblem as error:
        option = "engine" if error.parameter == "kind" else error.parameter
        raise InvalidProblem(f"--{option}", error.rule, error.value) from None
    return make_plan(sweep)


def store_path(plan: Plan) -> Path:
    """Where its results are."""
    assert plan.sweep.store is not None
    return plan.sweep.store


@contextmanager
def stored(file: str, store: str | None, numerics: tuple[str, ...]) -> Iterator[tuple[Plan, Store]]:
    """The open store, and the plan with its results as the numerics asked for have stored them."""
    plan = planned(file, store=store)
    with Store.for_reading(store_path(plan)) as opened:
        try:
            plan = under_numerics(current_plan(plan, opened), opened, numerics)
        except InvalidProblem as error:
            raise InvalidProblem("--numerics", error.rule, error.value) from None
        yield plan, opened


def show_status(plan: Plan, *, as_json: bool) -> None:
    """Print how far a sweep is, and why some units have no number."""
    found = _status(plan)
    if as_json:
        _show_json(plan, found)
        return
    click.echo(f"sweep {plan.sweep.name}, {found.total} units; store {store_path(plan)}")
    rows = [[name, *(str(states[s]) for s in STATES)] for name, states in found.by_task.items()]
    show_table(Table.of(["", *STATES], rows))
    show_notes([*_reasons(found), *_earlier(found)])
    named = ", ".join(f"{task} {tag}" for task, tag in found.numerics.items())
    click.echo(f"numerics: {named}")
    for origin in found.origins:
        click.echo("computed by " + ", ".join(f"{k} {v}" for k, v in origin.items()))


def _status(plan: Plan) -> SweepStatus:
    """What the store has by now."""
    path = store_path(plan)
    with Store.for_reading(path) if path.exists() else Store.in_memory() as opened:
        return make_status(current_plan(plan, opened), opened)


def compute(plan: Plan, *, retry: bool, as_json: bool) -> None:
    """Run what is missing under a progress bar, and report; exit code 1 if anything failed."""
    started = time.perf_counter()
    engine = plan.sweep.engine.make()
    latest = SweepProgress(len({unit.key for unit in plan.units}), 0)

    def watch(progress: SweepProgress) -> None:
        nonlocal latest
        latest = progress
        if advance is not None:
            advance(progress.done, progress.total)

    try:
        with open_store(plan.sweep) as opened:
            plan = current_plan(plan, opened)
            with watched(latest.total, lambda done: _bar(latest)) as advance:
                execute(plan, opened, engine, retry=retry, watch=watch)
            found = make_status(plan, opened)
    except KeyboardInterrupt:
        kept = _status(plan)
        told = f"{kept.total - kept.count('missing')} of {kept.total} units are kept"
        again = f"in {store_path(plan)}; run it again to go on"
        click.echo(f"interrupted: {told} {again}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    computed, seconds = latest.done - latest.known, time.perf_counter() - started
    if as_json:
        _show_json(plan, found, known=latest.known, computed=computed, wall_time=seconds)
    else:
        before = f"{latest.total} units, {latest.known} stored before"
        click.echo(f"sweep {plan.sweep.name}: {before}, {computed} computed in {seconds:.3g} s")
        states = ", ".join(f"{found.count(state)} {state}" for state in STATES[:3])
        click.echo(f"now {states}; store {store_path(plan)}")
        show_notes([*_reasons(found), *_earlier(found)])
    if found.count("failed"):
        raise click.exceptions.Exit(1)


def _bar(progress: SweepProgress) -> str:
    failed = f", {progress.failed} failed" if progress.failed else ""
    refused = f", {progress.refused} refused" if progress.refused else ""
    return f"{progress.done} of {progress.total} units{refused}{failed}"


def _show_json(plan: Plan, found: SweepStatus, **run: float) -> None:
    where = {"sweep": plan.sweep.name, "store": str(store_path(plan))}
    show_json({**where, **run, **found.as_dict()})


def _earlier(found: SweepStatus) -> list[str]:
    """What other numerics have left in the store."""
    use = "not used here; export and plot read them with --numerics"
    return [f"{each}: {use} {each.numerics}" for each in found.earlier]


def _reasons(found: SweepStatus) -> list[str]:
    """Why units have no number: the most frequent reasons."""
    told = [
        f"{units} of {task} {state}: {error}"
        for (task, state, error), units in found.reasons.items()
    ]
    more = len(told) - _MAX_REASONS
    return told[:_MAX_REASONS] + ([f"{more} more reasons; --json has all"] if more > 0 else [])


def _file(command: Command) -> Command:
    store = click.option("--store", metavar="PATH", help="the SQLite file with the results")
    return click.argument("file", metavar="FILE", shell_complete=file_names)(store(command))


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


@click.group(invoke_without_command=True)
@click.pass_context
def sweep(ctx: click.Context) -> None:
    """Compute large grids; store, resume, export and plot them.

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
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


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
    from .sweep_commands import compute, planned

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
    from .sweep_commands import compute, planned

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
    from .sweep_commands import planned, show_status

    show_status(planned(**asked), as_json=as_json)


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT", shell_complete=file_names)
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
    from ..sweeps import check_target
    from ..sweeps import export as write

    check_target(Path(output))
    with stored(**where) as (plan, opened):
        write(plan, opened, output, provenance=provenance)
    click.echo(f"wrote {output}")


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT", shell_complete=file_names)
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
    from ..plots.simulation import sweep_curves
    from ..sweeps import make_dataset

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
