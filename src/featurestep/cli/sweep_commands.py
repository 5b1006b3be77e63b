"""`featurestep sweep`: resumable experiments from a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidProblem
from .files import check_path, mention, save
from .options import Command
from .output import show_json, show_notes, show_table
from .progress import INTERRUPTED, watched
from .values import number

if TYPE_CHECKING:  # what sweeps need is loaded by the commands that run them
    from ..sweep.plan import Plan
    from ..sweep.progress import Progress
    from ..sweep.status import SweepStatus

_STATES = ("ok", "refused", "failed", "missing")
_MOST_REASONS = 5


def _file(command: Command) -> Command:
    store = click.option("--store", metavar="PATH", help="the SQLite file with the results")
    return click.argument("file", metavar="FILE")(store(command))


def _json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="strict JSON, not a table")(command)


def _engine(command: Command) -> Command:
    options = (
        click.option(
            "--engine", metavar="KIND", help="processes, serial or dask  [default: processes]"
        ),
        click.option("--workers", metavar="K", help="worker processes  [default: one a core]"),
        click.option(
            "--scheduler", metavar="ADDRESS", help="of a Dask scheduler, or its .json file"
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def sweep() -> None:
    """Grids of problems, computed once and kept: run, look, go on, export, plot.

    A sweep FILE (TOML) has a base problem, a grid over its fields and the tasks to compute at
    every point. Every result goes to a store (an SQLite file beside FILE) the moment it arrives.
    Whatever stops a sweep, running it again computes only what is missing; so does a larger grid.

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
@_json
def run(file: str, store: str | None, as_json: bool, **engine: Any) -> None:
    """Compute what the store does not have yet.

    Ctrl-C keeps what is done. A unit that fails is recorded with its traceback, and the others
    go on; the exit code is then 1. A point where the theory has no number is not a failure.

    \b
    Examples
      featurestep sweep run study.toml
      featurestep sweep run study.toml --engine processes --workers 4
      featurestep sweep run study.toml --engine dask --scheduler tcp://10.0.0.1:8786
    """
    _compute(_planned(file, store, engine), retry=False, as_json=as_json)


@sweep.command()
@_file
@_engine
@_json
def retry(file: str, store: str | None, as_json: bool, **engine: Any) -> None:
    """Compute again what failed, and what is missing.

    \b
    Example
      featurestep sweep retry study.toml
    """
    _compute(_planned(file, store, engine), retry=True, as_json=as_json)


@sweep.command()
@_file
@_json
def status(file: str, store: str | None, as_json: bool) -> None:
    """How far a sweep is, and why some units have no number.

    \b
    Examples
      featurestep sweep status study.toml
      featurestep sweep status study.toml --json
    """
    plan = _planned(file, store)
    path, found = _path(plan), _status(plan)
    if as_json:
        show_json({"sweep": plan.sweep.name, "store": str(path), **found.as_dict()})
        return
    click.echo(f"sweep {plan.sweep.name}, {found.total} units; store {path}")
    rows = [[name, *(str(states[s]) for s in _STATES)] for name, states in found.by_task.items()]
    show_table(["", *_STATES], rows)
    show_notes(_reasons(found))
    for origin in found.origins:
        click.echo("computed by " + ", ".join(f"{k} {v}" for k, v in origin.items()))


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT")
@click.option("--provenance", is_flag=True, help="add when, where and by what each was computed")
def export(file: str, store: str | None, output: str, provenance: bool) -> None:
    """Write what is stored to OUTPUT: .nc, .parquet, .csv or .json.

    CSV, JSON and Parquet have one row for each unit; netCDF has arrays over the grid.

    \b
    Examples
      featurestep sweep export study.toml study.nc
      featurestep sweep export study.toml study.csv --provenance
    """
    from ..sweep.export import check_target
    from ..sweep.export import export as write
    from ..sweep.store import Store

    check_target(Path(output))
    plan = _planned(file, store)
    with Store.for_reading(_path(plan)) as opened:
        write(plan, opened, output, provenance=provenance)
    click.echo(f"wrote {output}")


@sweep.command()
@_file
@click.argument("output", metavar="OUTPUT")
@click.option("--quantity", metavar="NAME", default="test_error", show_default=True)
@click.option("--x", metavar="FIELD", help="the horizontal axis  [default: the first dimension]")
@click.option("--at", multiple=True, metavar="FIELD=VALUE", help="fix a dimension; may repeat")
def plot(
    file: str, store: str | None, output: str, quantity: str, x: str | None, at: tuple[str, ...]
) -> None:
    """Draw one quantity of every task to OUTPUT: .png, .pdf or .svg.

    Predictions are lines, limits dashed, simulations means with bars of two standard errors. A
    second dimension gives colours; --at fixes the others.

    \b
    Examples
      featurestep sweep plot study.toml study.pdf
      featurestep sweep plot study.toml loss.png --quantity train_loss --at variant=trained
    """
    from ..plots_sweep import sweep_curves
    from ..sweep.dataset import make_dataset
    from ..sweep.store import Store

    check_path(output)
    plan = _planned(file, store)
    fixed = dict(map(_fixed, at))
    with Store.for_reading(_path(plan)) as opened:
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
    return name.strip(), known.get(value.strip(), number(value.strip()))


def _planned(file: str, store: str | None, engine: dict[str, str | None] | None = None) -> Plan:
    """The plan of a file, with the options of the command line in place of its own."""
    from ..sweep.plan import make_plan
    from ..sweep.run import with_engine
    from ..sweep.spec import load_sweep

    asked = load_sweep(Path(file))
    if store is not None:
        asked = replace(asked, store=Path(store))
    if engine is not None:
        workers = engine["workers"]
        count = None if workers is None else number(workers)
        try:
            asked = with_engine(asked, engine["engine"], count, engine["scheduler"])
        except InvalidProblem as error:
            option = "engine" if error.parameter == "kind" else error.parameter
            raise InvalidProblem(f"--{option}", error.rule, error.value) from None
    return make_plan(asked)


def _path(plan: Plan) -> Path:
    assert plan.sweep.store is not None
    return plan.sweep.store


def _status(plan: Plan) -> SweepStatus:
    """What the store has by now."""
    from ..sweep.status import make_status
    from ..sweep.store import Store

    if not _path(plan).exists():
        return make_status(plan, None)
    with Store.for_reading(_path(plan)) as opened:
        return make_status(plan, opened)


def _compute(plan: Plan, *, retry: bool, as_json: bool) -> None:
    from ..sweep.progress import Progress
    from ..sweep.run import execute, open_store
    from ..sweep.status import make_status

    started = time.perf_counter()
    engine = plan.sweep.engine.make()
    latest = [Progress(len({unit.key for unit in plan.units}), 0)]
    try:
        with open_store(plan.sweep) as opened:
            with watched(latest[0].total, lambda done: _bar(latest[0])) as advance:
                execute(plan, opened, engine, retry=retry, watch=_watcher(latest, advance))
            found = make_status(plan, opened)
    except KeyboardInterrupt:
        kept = _status(plan)
        told = (
            f"{kept.total - kept.count('missing')} of {kept.total} units are kept in {_path(plan)}"
        )
        click.echo(f"interrupted: {told}; run it again to go on", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    _report(plan, found, latest[0], time.perf_counter() - started, as_json)
    if found.count("failed"):
        raise click.exceptions.Exit(1)


def _watcher(
    latest: list[Progress], advance: Callable[[int], None] | None
) -> Callable[[Progress], None]:
    def watch(progress: Progress) -> None:
        latest[0] = progress
        if advance is not None:
            advance(progress.done)

    return watch


def _bar(progress: Progress) -> str:
    failed = f", {progress.failed} failed" if progress.failed else ""
    refused = f", {progress.refused} refused" if progress.refused else ""
    return f"{progress.done} of {progress.total} units{refused}{failed}"


def _report(
    plan: Plan, found: SweepStatus, progress: Progress, seconds: float, as_json: bool
) -> None:
    computed = progress.done - progress.known
    if as_json:
        run = {"known": progress.known, "computed": computed, "wall_time": seconds}
        show_json({"sweep": plan.sweep.name, "store": str(_path(plan)), **run, **found.as_dict()})
        return
    click.echo(
        f"sweep {plan.sweep.name}: {progress.total} units, {progress.known} stored before, "
        f"{computed} computed in {seconds:.3g} s"
    )
    states = ", ".join(f"{found.count(state)} {state}" for state in _STATES[:3])
    click.echo(f"now {states}; store {_path(plan)}")
    show_notes(_reasons(found))


def _reasons(found: SweepStatus) -> list[str]:
    """Why units have no number: the most frequent reasons."""
    told = [
        f"{units} of {task} {state}: {error}"
        for (task, state, error), units in found.reasons.items()
    ]
    more = len(told) - _MOST_REASONS
    return told[:_MOST_REASONS] + ([f"{more} more reasons; --json has all"] if more > 0 else [])
