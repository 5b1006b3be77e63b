"""Running a sweep for the command line: its plan, its progress and what it tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ..core.axes import read_number
from ..core.display import Table
from ..core.errors import InvalidProblem
from ..sweeps import Progress
from ..sweeps.plan import Plan, execute, make_plan, open_store
from ..sweeps.spec import load_sweep
from ..sweeps.status import STATES, SweepStatus, current_plan, make_status, under_numerics
from ..sweeps.store import Store
from .output import show_json, show_notes, show_table
from .progress import INTERRUPTED, watched

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
    latest = Progress(len({unit.key for unit in plan.units}), 0)

    def watch(progress: Progress) -> None:
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


def _bar(progress: Progress) -> str:
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
