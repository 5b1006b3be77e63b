"""Running a plan: what is missing goes to an engine, and what comes back to the store."""

from __future__ import annotations

from contextlib import closing

from ..core.checks import check_file
from .engines import Engine
from .plan import Plan
from .spec import Sweep
from .store import MISSING, Store
from .verb import Progress, Watcher


def open_store(sweep: Sweep) -> Store:
    """The sweep's store, for its one driver."""
    if sweep.store is None:
        return Store.in_memory()
    check_file("store", sweep.store)
    return Store.for_writing(sweep.store)


def execute(
    plan: Plan, store: Store, engine: Engine, *, retry: bool = False, watch: Watcher | None = None
) -> Progress:
    """Compute and store the missing units; with `retry` also those that failed."""
    descriptions = {unit.key: unit.description for unit in plan.units}
    wanted = (MISSING, "failed") if retry else (MISSING,)
    missing = {unit.key for unit, row in store.of(plan.units) if row.status in wanted}
    progress = Progress(len(descriptions), len(descriptions) - len(missing))
    if watch is not None:
        watch(progress)
    if not missing:
        return progress
    with closing(engine(plan.jobs(missing))) as reports:
        for report in reports:
            store.record(report, descriptions)
            progress = progress.after(report)
            if watch is not None:
                watch(progress)
    return progress
