"""A sweep as it was asked for: base problem, grid, tasks, store and engine.

The dimensions of the grid are lists, ranges, zipped fields, and designs over a box.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.axes import (
    MAX_POINTS,
    NAMES,
    SCALES,
    axis_values,
    check_log_ends,
    field_values,
    finite,
    point_count,
)
from ..core.checks import filled_table, from_table, known_keys, listed, one_of, table, text
from ..core.errors import InvalidProblem
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from ..core.types import FloatArray
from .engines import EngineChoice
from .identity import portable
from .tasks import Task, read_tasks

DESIGN = "sample"  # the dimension of a design
RESERVED = (DESIGN, "seed", "variant")


@dataclass(frozen=True)
class Dimension:
    """One dimension of the grid: the fields that vary along it, value by value."""

    name: str
    fields: Mapping[str, tuple[Any, ...]]
    path: str  # of its key, for refusals

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def path_of(self, field: str) -> str:
        """The path of one of its fields."""
        return self.path if self.name == field else f"{self.path}.{field}"


def read_grid(value: Any) -> tuple[Dimension, ...]:
    """The dimensions of a `grid` table, in the order written."""
    dimensions: list[Dimension] = []
    for key, content in filled_table("grid", value).items():
        if key == "zip":
            for name, fields in filled_table("grid.zip", content).items():
                dimensions.append(_zipped(f"grid.zip.{name}", name, fields))
        elif key == "design":
            dimensions.append(_design("grid.design", table("grid.design", content)))
        else:
            known_keys("grid", {key: content}, (*NAMES, "zip", "design"))
            path = f"grid.{key}"
            dimensions.append(Dimension(key, {key: axis_values(path, key, content)}, path))
    return _checked(tuple(dimensions))


def _checked(dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """Refuse a field varied twice, rivals, and grids beyond measure."""
    paths: dict[str, str] = {}
    for dimension in dimensions:
        for name, values in dimension.fields.items():
            where = dimension.path_of(name)
            if name in paths:
                rule = f"must not be varied twice (also in {paths[name]})"
                raise InvalidProblem(where, rule, list(values))
            paths[name] = where
    for name, rivals in _RIVALS.items():
        for rival in rivals:
            if name in paths and rival in paths:
                rule = f"must not be varied together with {paths[rival]}"
                raise InvalidProblem(paths[name], rule, f"both {name} and {rival}")
    size = math.prod(len(dimension) for dimension in dimensions)
    if size > MAX_POINTS:
        raise InvalidProblem("grid", f"must have at most {MAX_POINTS:.0e} points", size)
    return dimensions


_RIVALS = {
    "step_size": ("step_exponent", "step_scale"),
    "step_sizes": ("step_size", "step_exponent", "step_scale", "steps"),
    "phi": ("d",),
    "psi": ("width",),
    "phi_step": ("n_step",),
}


def _zipped(path: str, name: str, value: Any) -> Dimension:
    """Fields that vary together, along a dimension of their own."""
    if not name.isidentifier() or name in (*NAMES, *RESERVED):
        rule = f"must be named by a word that is no field and not {', '.join(RESERVED)}"
        raise InvalidProblem(path, rule, name)
    lists = filled_table(path, value)
    known_keys(path, lists, NAMES)
    fields = {
        field: axis_values(f"{path}.{field}", field, each, distinct=False)
        for field, each in lists.items()
    }
    lengths = {field: len(values) for field, values in fields.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidProblem(path, "must have lists of equal length", lengths)
    return Dimension(name, fields, path)


def _design(path: str, value: dict[str, Any]) -> Dimension:
    """Random or Sobol points of a box; a longer design begins with the shorter one."""
    known_keys(path, value, ("kind", "points", "seed", "box"))
    kind = one_of(f"{path}.kind", value.get("kind"), ("sobol", "random"))
    count = point_count(f"{path}.points", value.get("points"))
    seed = value.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidProblem(f"{path}.seed", "must be a whole number >= 0", seed)
    box = filled_table(f"{path}.box", value.get("box"))
    known_keys(f"{path}.box", box, NAMES)
    unit = _sobol(len(box), count, seed) if kind == "sobol" else _random(len(box), count, seed)
    fields = {
        field: field_values(field, _along(f"{path}.box.{field}", side, column))
        for (field, side), column in zip(box.items(), unit.T, strict=True)
    }
    return Dimension(DESIGN, fields, f"{path}.box")


def _along(path: str, value: Any, unit: FloatArray) -> FloatArray:
    """Numbers in [0, 1] on one side of a design's box: [low, high], or a table with a scale."""
    if not isinstance(value, Mapping):
        ends = listed(path, value)
        if len(ends) != 2:
            raise InvalidProblem(path, "must be [low, high]", ends)
        value = {"low": ends[0], "high": ends[1]}
    side = table(path, value)
    known_keys(path, side, ("low", "high", "scale"))
    low, high = (finite(f"{path}.{end}", side.get(end)) for end in ("low", "high"))
    if not low < high:
        raise InvalidProblem(path, "must have low < high", [low, high])
    if one_of(f"{path}.scale", side.get("scale", "linear"), SCALES) == "linear":
        return low + (high - low) * unit
    check_log_ends(path, low, high)
    return np.asarray(low * (high / low) ** unit)


def _sobol(sides: int, count: int, seed: int) -> FloatArray:
    from scipy.stats import qmc

    # Whole powers of two keep the sequence balanced, and a longer design extends a shorter one.
    power = max(0, math.ceil(math.log2(count)))
    sequence = qmc.Sobol(sides, scramble=True, seed=seed)
    return np.asarray(sequence.random_base2(power)[:count], dtype=np.float64)


def _random(sides: int, count: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).random((count, sides))


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
    fields = portable(grid.base).given
    given = {name: value for name, value in fields.items() if value is not None and value != ()}
    dimensions = tuple(Dimension(name, {name: values}, name) for name, values in grid.axes.items())
    return Sweep("sweep", given, dimensions, read_tasks(tasks), grid=grid)
