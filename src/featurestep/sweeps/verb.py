"""`sweep`: compute what a store does not have yet, and return everything as one dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.types import xarray
from .engines import refuse_importing_workers
from .plan import Watcher, current_plan, execute, make_plan, open_store
from .results import make_dataset
from .spec import read_sweep


def sweep(
    source: Any,
    *,
    tasks: Any = None,
    store: str | Path | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Watcher | None = None,
) -> xarray.Dataset:
    """Compute tasks at every point of a grid, and keep every result in a store.

    source
        A sweep file (TOML), a mapping of the same form, or a grid made by `vary`.
    tasks
        For a grid: names, or options by name, as `{"predict": {}, "simulate": {"seeds": 8}}`.
    store
        The SQLite file with the results. What it has is not computed again. Without one, a sweep
        file's is beside it, and a grid's results are kept in memory only.
    engine, workers, scheduler
        `processes` (the default; so many workers, one core each), `serial`, or `dask` with the
        address of a scheduler.
    progress
        Called with a `SweepProgress` as results are stored.

    The dataset has the grid's dimensions, a variable `task_quantity` for each result and a
    `task_status` for each task; simulations have the dimensions `variant` and `seed` too.

    >>> from featurestep import Problem
    >>> base = Problem(n=200, d=100, width=150, step_exponent=0.3, ridge=0.01)
    >>> found = sweep(base.vary(ridge=[0.01, 0.1]), tasks=["predict"], engine="serial")
    >>> found.predict_status.values.tolist()
    ['ok', 'ok']
    """
    refuse_importing_workers()
    asked = read_sweep(source, tasks)
    plan = make_plan(
        asked.override(store=store, engine=engine, workers=workers, scheduler=scheduler)
    )
    chosen = plan.sweep.engine.make()
    with open_store(plan.sweep) as opened:
        plan = current_plan(plan, opened)
        execute(plan, opened, chosen, watch=progress)
        return make_dataset(plan, opened)
