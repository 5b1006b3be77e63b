"""A sweep as it was asked for: the base problem, the grid, the tasks, the store and the engine."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.axes import NAMES
from ..core.checks import from_table, known_keys, table, text
from ..core.errors import InvalidProblem
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from .axes import Dimension, read_grid
from .engines import EngineChoice
from .identity import portable
from .tasks import Task, read_tasks

_KEYS = ("name", "store", "problem", "grid", "tasks", "engine")


@dataclass(frozen=True)
class Sweep:
    """What to compute where; `problem` has the fields that do not vary."""

    name: str
    problem: Mapping[str, Any]
    dimensions: tuple[Dimension, ...]
    tasks: tuple[Task, ...]
    store: Path | None = None  # in memory when None
    engine: EngineChoice = field(default_factory=EngineChoice)
    grid: Grid | None = None  # made by `vary`: it knows which sizes follow its ratios

    def override(
        self,
        *,
        store: str | Path | None = None,
        engine: str | None = None,
        workers: int | None = None,
        scheduler: str | None = None,
    ) -> Sweep:
        """The same sweep with what was said later; another engine starts from its defaults."""
        kind = engine or ("dask" if scheduler else self.engine.kind)
        if kind == self.engine.kind and not scheduler:
            workers, scheduler = workers or self.engine.workers, self.engine.scheduler
        chosen = EngineChoice(kind, workers, scheduler)
        return replace(self, store=self.store if store is None else Path(store), engine=chosen)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of places along each dimension."""
        return tuple(map(len, self.dimensions))

    def changes(self, point: int) -> dict[str, Any]:
        """The varied fields at a point."""
        places = np.unravel_index(point, self.shape)
        return {
            name: values[place]
            for dimension, place in zip(self.dimensions, places, strict=True)
            for name, values in dimension.fields.items()
        }


def read_sweep(source: Any, tasks: Any = None) -> Sweep:
    """The sweep behind a file's path, a mapping of the same form, a grid or a problem.

    `tasks` goes with a grid or a problem, which have none of their own.
    """
    if isinstance(source, (Problem, Grid)):
        return _from_grid(source, ["predict"] if tasks is None else tasks)
    if tasks is not None:
        raise InvalidProblem("tasks", "goes with a Problem or a grid; a sweep has its own", tasks)
    if isinstance(source, (str, Path)):
        return load_sweep(Path(source))
    if isinstance(source, Mapping):
        return _from_mapping(source, name="sweep", folder=Path())
    rule = "must be a sweep file, a mapping, a grid made by vary, or a Problem"
    raise InvalidProblem("sweep", rule, source)


def load_sweep(path: Path) -> Sweep:
    """The sweep of a TOML file; its store stands beside it unless it says otherwise."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise InvalidProblem("FILE", f"must be readable ({error.strerror})", str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidProblem("FILE", f"must be valid TOML ({error})", str(path)) from None
    except RecursionError:
        raise InvalidProblem("FILE", "must not nest so deeply", str(path)) from None
    sweep = _from_mapping(content, name=path.stem, folder=path.parent)
    return sweep if sweep.store else replace(sweep, store=path.with_suffix(".sqlite"))


def _from_mapping(source: Mapping[str, Any], *, name: str, folder: Path) -> Sweep:
    content = table("sweep", source)
    known_keys("", content, _KEYS)
    for key in ("problem", "tasks"):
        if key not in content:
            raise InvalidProblem(key, "must be given", None)
    problem = table("problem", content["problem"])
    known_keys("problem", problem, NAMES)
    dimensions = read_grid(content["grid"]) if "grid" in content else ()
    store = folder / text("store", content["store"]) if "store" in content else None
    engine = content.get("engine", {})
    return Sweep(
        name=text("name", content.get("name", name)),
        problem=problem,
        dimensions=dimensions,
        tasks=read_tasks(content["tasks"]),
        store=store,
        engine=from_table(
            "engine", EngineChoice, {"kind": engine} if isinstance(engine, str) else engine
        ),
    )


def _from_grid(source: Problem | Grid, tasks: Any) -> Sweep:
    grid = as_grid(source)
    given = {name: value for name, value in portable(grid.base).given.items() if value is not None}
    dimensions = tuple(Dimension(name, {name: values}, name) for name, values in grid.axes.items())
    return Sweep("sweep", given, dimensions, read_tasks(tasks), grid=grid)
