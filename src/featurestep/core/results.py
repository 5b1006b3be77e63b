"""Results: what every answer has, for one problem or for a grid.

Numbers are attributes with one name everywhere; `.dataset` has them in xarray; `.notes` says how
far to trust them; `.as_dict()` is ready for JSON; `==` compares values; `repr` is a few lines, and
a notebook shows the table that the command line prints; `.plot()` draws.

A plain problem takes one step on rows of its own and fits its readout by ridge regression, on
isotropic inputs. Every verb states which other fields it knows; the rest is refused here.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, wraps
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

import numpy as np

from .display import Table, cell, describe, json_value, point_in_words
from .errors import FeaturestepError, InconsistentSolution, InvalidProblem, NotConverged
from .grid import Grid
from .problem import Problem
from .types import Axes, xarray

# What prediction and simulation both measure: one name and one meaning for each.
QUANTITIES = {
    "test_error": "test error E(y − âᵀσ(Wx))², noise included",
    "train_loss": "ridge objective at its minimum, (1/n)‖y − Fâ‖² + λ‖â‖²",
    "train_mse": "training error (1/n)‖y − Fâ‖²",
    "readout_norm": "norm of the fitted readout ‖â‖",
}
LOSS_QUANTITIES = {  # with another loss than the square, or an intercept
    "test_loss": "mean loss on fresh samples, E ℓ(y, f)",
    "train_loss": "mean loss on the training samples",
    "train_objective": "what the readout minimises, train loss + (λ/2)‖â‖²",
    "test_error": "share of wrong signs on fresh samples; for real labels E(y − f)²",
    "train_error": "the same on the training samples",
    "readout_norm": "norm of the fitted readout ‖â‖",
    "intercept": "fitted intercept b; 0 where none is fitted",
}
OK = "ok"  # the status of a grid's point that has its numbers
_MAX_NUMBERS = 6  # numbers in a `repr`
_MAX_REASONS = 10  # reasons, in a grid's notes, why points have no numbers

Progress = Callable[[int, int], None]
Array = np.ndarray[Any, Any]
P = ParamSpec("P")
Answer = TypeVar("Answer", bound="Result")
Answer_co = TypeVar("Answer_co", bound="Result", covariant=True)


def quantities_of(problem: Problem | Grid) -> dict[str, str]:
    """What is measured of a problem, or of a grid's points: names and meanings."""
    if all_square(list(problem) if isinstance(problem, Grid) else [problem]):
        return dict(QUANTITIES)
    varied = problem.axes if isinstance(problem, Grid) else {}  # an axis may be the intercept
    return {name: text for name, text in LOSS_QUANTITIES.items() if name not in varied}


def all_square(points: Sequence[Problem]) -> bool:
    """True if all problems have the square loss without intercept, False if none has.

    InvalidProblem where some have it and others another: `train_loss` is the objective of the one
    and the mean loss of the other.
    """
    square = {point.has_square_loss for point in points}
    if len(square) > 1:
        other = next(point for point in points if not point.has_square_loss)
        if other.loss == "square":
            rule = "must be the same at every point of a grid with loss square"
            raise InvalidProblem("intercept", rule, other.intercept)
        rule = "must be square (without intercept) at all points of a grid or at none"
        raise InvalidProblem("loss", rule, other.loss)
    return True in square


class Note(str):
    """A note on the validity of a result: text, with the kind of approximation and its size.

    `size` is the relative error that the approximation may cause; infinite if it is not known.
    """

    kind: str
    size: float

    def __new__(cls, text: str, kind: str = "", size: float = math.inf) -> Note:
        note = super().__new__(cls, text)
        note.kind, note.size = kind or text.split(":")[0], size
        return note


def allowance(notes: Iterable[str]) -> float:
    """The relative error that notes allow in all: a larger disagreement is a failure."""
    return sum((getattr(note, "size", math.inf) for note in notes), 0.0)


def status_of(error: FeaturestepError) -> str:
    """The status of a grid point without numbers: the kind of error and its message."""
    kind = "refused"
    if isinstance(error, NotConverged):
        kind = "inconsistent" if isinstance(error, InconsistentSolution) else "not converged"
    return f"{kind}: {' '.join(str(error).split())}"


def grouped_notes(noted: Iterable[tuple[Mapping[str, Any], Iterable[str]]]) -> list[str]:
    """Each kind of note once: the number of points that have it, and the note of the last."""
    by_kind: dict[str, dict[str, str]] = {}  # kind → point → note
    count = 0
    for point, notes in noted:
        count += 1
        for note in notes:
            by_kind.setdefault(_kind(note), {})[point_in_words(point)] = note
    lines = []
    for notes_of in by_kind.values():
        place, note = list(notes_of.items())[-1]
        head = f"{len(notes_of)} of {count} points, the last at {place}: " if place else ""
        lines.append(head + note)
    return lines


def _kind(note: str) -> str:
    """The kind of a note, or, of plain text, the text up to the first number."""
    return getattr(note, "kind", None) or re.split(r"[0-9]", note, maxsplit=1)[0]


class Result:
    """Base of all results. A subclass is a frozen dataclass that says what its numbers mean."""

    MEANINGS: ClassVar[Mapping[str, str]] = {}  # of the numbers, which are attributes, by name
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # dimensions of the numbers that are arrays
    COLUMNS: ClassVar[tuple[str, ...]] = ()  # of a grid's table; all but arrays if empty
    RAGGED: ClassVar[str | None] = None  # an array whose length differs between problems

    if TYPE_CHECKING:

        @property
        def problem(self) -> Any:
            """The problem or grid that the numbers are about."""

        @property
        def notes(self) -> tuple[str, ...]:
            """What the numbers leave out, and how much that may matter; empty if nothing."""

    def __init_subclass__(cls) -> None:
        """Add the meanings of the numbers to the docstring, for `help`."""
        super().__init_subclass__()
        if cls.MEANINGS and "MEANINGS" in vars(cls):
            lines = [f"    {name}\n        {text}." for name, text in cls.MEANINGS.items()]
            cls.__doc__ = "\n".join([f"{(cls.__doc__ or '').rstrip()}\n", *lines])

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers by name."""
        return {name: getattr(self, name) for name in self.MEANINGS}

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates of the arrays' dimensions, by dimension."""
        return {}

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The numbers with their meanings, as an xarray.Dataset."""
        arrays = {
            name: (self.DIMS.get(name, ()), _entry(value), {"long_name": self.MEANINGS[name]})
            for name, value in self.numbers.items()
        }
        return xarray.Dataset(arrays, self.coordinates, attrs={"problem": repr(self.problem)})

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        return {**json_value(self.numbers), "notes": list(map(str, self.notes))}

    def heading(self) -> list[str]:
        """A few lines on the problem, above the tables."""
        return describe(self.problem)

    def tables(self) -> list[Table]:
        """The tables that the command line prints and a notebook shows."""
        shown = [name for name in self.MEANINGS if name not in self.DIMS]
        rows = [(n.replace("_", " "), getattr(self, n), self.MEANINGS[n]) for n in shown]
        return [Table.of(("", "value", "meaning"), rows)]

    def closing(self) -> list[str]:
        """Lines below the tables and the notes."""
        return []

    def plot(self, **options: Any) -> Axes:
        """Plot it and return the Axes; options are those of the function in `featurestep.plots`."""
        # Imported by name: results do not depend on plots, and Matplotlib is slow to import.
        drawn: Axes = import_module("featurestep.plots.answers").draw(self, **options)
        return drawn

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and equal_values(self, other)

    def __hash__(self) -> int:
        return hash((type(self), self.problem))

    def __repr__(self) -> str:
        shown = [f"{n} = {cell(v)}" for n, v in self.numbers.items() if n not in self.DIMS]
        more = ", …" if len(shown) > _MAX_NUMBERS else ""
        lines = [", ".join(shown[:_MAX_NUMBERS]) + more, *(f"note: {n}" for n in self.notes)]
        return "\n    ".join([f"{type(self).__name__} of {self.problem!r}", *filter(None, lines)])

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(line)}</p>" for line in self.heading()]
        parts += [table.html() for table in self.tables()]
        lines = [*(f"Note: {note}." for note in self.notes), *self.closing()]
        return "".join([*parts, *(f"<p>{html.escape(line)}</p>" for line in lines)])


def equal_values(a: Any, b: Any) -> bool:
    """True if two values are equal: arrays entry by entry, NaN equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            return False
        if a.dtype.kind == "O":
            return all(equal_values(x, y) for x, y in zip(a.flat, b.flat, strict=True))
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal_values(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal_values, a, b))
    if is_dataclass(a) and type(a) is type(b) and not isinstance(a, (Problem, type)):
        names = [f.name for f in fields(a) if f.compare]
        return all(equal_values(getattr(a, name), getattr(b, name)) for name in names)
    return bool(a == b) or (a != a and b != b)


def _entry(value: Any) -> Any:
    """A value as an entry of a dataset: tuples and mappings as one object."""
    if not isinstance(value, (tuple, list, Mapping)):
        return np.nan if value is None else value
    whole = np.empty((), dtype=object)
    whole[()] = value
    return whole


@dataclass(frozen=True, eq=False, repr=False)
class GridResult(Result):
    """The results of one kind at every point of a grid.

    The numbers have the names of a single result and are arrays over the grid's fields:
    `predict(grid).test_error`. `status` is "ok" or the reason why a point has no numbers, and
    `dataset.notes` has the notes of each point. It has all methods of an `xarray.Dataset`.
    """

    kind: type[Result]
    problem: Grid
    columns: Mapping[str, Array]  # (points, …) by name
    statuses: tuple[str, ...]
    noted: tuple[tuple[str, ...], ...]  # the notes of each point
    inner: Mapping[str, Any]  # coordinates of further dimensions

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The numbers over the grid's fields, with status, notes and the error the notes allow."""
        grid = self.problem
        texts = {"status": self.statuses, "notes": ["\n".join(notes) for notes in self.noted]}
        arrays = arrays_over(grid, self.kind, self.columns, texts)
        allowed = np.array([allowance(notes) for notes in self.noted]).reshape(grid.shape)
        arrays["allowance"] = (grid.dims, allowed, {"long_name": "relative error of the notes"})
        coords = {**grid.coordinates(), **self.inner}
        return xarray.Dataset(arrays, coords, attrs={"base": repr(grid.base)})

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers by name, one entry for each point."""
        return dict(self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why points have no numbers, then each kind of note once, see `grouped_notes`."""
        refused = [s for s in self.statuses if s != OK]
        reasons = [
            f"no number at {point_in_words(point)}: {status}"
            for point, status in zip(self.problem.points(), self.statuses, strict=True)
            if status != OK
        ][:_MAX_REASONS]
        more = len(refused) - len(reasons)
        reasons += [f"{more} more points have no number; --json has all"] if more else []
        return (*reasons, *grouped_notes(zip(self.problem.points(), self.noted, strict=True)))

    def points(self) -> Iterator[dict[str, Any]]:
        """Each point as JSON values: coordinates, numbers, status and notes."""
        for i, point in enumerate(self.problem.points()):
            numbers = {name: json_value(self._entry(name, i)) for name in self.columns}
            rest = {"status": self.statuses[i], "notes": list(map(str, self.noted[i]))}
            yield {**point, **numbers, **rest}

    def _entry(self, name: str, i: int) -> Any:
        """A number at a point; of a ragged array the entries that it has."""
        value, ragged = _item(self.columns[name][i]), self.kind.RAGGED
        if ragged is None or self.kind.DIMS.get(name, ())[:1] != self.kind.DIMS[ragged][:1]:
            return value
        return value[: int((self.columns[ragged][i] >= 0).sum())]

    def as_dict(self) -> dict[str, Any]:
        """The varied fields and every point, ready for JSON."""
        return {"over": json_value(self.problem.coordinates()), "points": list(self.points())}

    def tables(self) -> list[Table]:
        """A row for each point, with a status if some point has no numbers."""
        shown = dict(self._table_columns())
        refused = any(status != OK for status in self.statuses)
        if refused:
            texts = [OK if status == OK else "see below" for status in self.statuses]
            shown["status"] = np.array(texts, dtype=object)
        rows = [
            [*point.values(), *(_item(column[i]) for column in shown.values())]
            for i, point in enumerate(self.problem.points())
        ]
        return [Table.of([*self.problem.dims, *shown], rows)]

    def _table_columns(self) -> Iterator[tuple[str, Array]]:
        """Names and values of the table's columns; an array gives one for each entry."""
        for name in self.kind.COLUMNS or self.columns:
            inner, column = self.kind.DIMS.get(name, ()), self.columns.get(name)
            if column is None or len(inner) > 1:
                continue
            if not inner:
                yield name, column
            for j, value in enumerate(self.inner.get(inner[0], ()) if inner else ()):
                yield f"{name}_{value}", column[:, j]

    def __getitem__(self, name: Any) -> Any:
        return self.dataset[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in {f.name for f in fields(self)}:
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __contains__(self, name: object) -> bool:
        return name in self.dataset

    def __repr__(self) -> str:
        refused = sum(status != OK for status in self.statuses)
        what = f"{len(self.problem)} points, {refused} without a number"
        noted = sum(map(bool, self.noted))
        names = ", ".join(self.columns)
        return f"{self.kind.__name__} of {self.problem!r}\n    {what}, {noted} noted\n    {names}"


def arrays_over(
    grid: Grid, kind: type[Result], columns: Mapping[str, Array], texts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Variables of a dataset over a grid's fields: numbers with their meanings, and texts."""
    arrays: dict[str, Any] = {}
    for name, column in columns.items():
        dims = (*grid.dims, *kind.DIMS.get(name, ()))
        shaped = column.reshape(*grid.shape, *column.shape[1:])
        arrays[name] = (dims, shaped, {"long_name": kind.MEANINGS.get(name, name)})
    for name, texts_of in texts.items():
        arrays[name] = (grid.dims, np.array(texts_of, dtype=object).reshape(grid.shape))
    return arrays


def over_grid(
    kind: type[Result],
    grid: Grid,
    one: Callable[[Problem], Result],
    progress: Progress | None = None,
    problems: Sequence[Problem] | None = None,
) -> GridResult:
    """The results one(problem) at every point of a grid; an error becomes the point's status.

    `problems` are the grid's points where they are known.
    """
    points, inner = list[tuple[Mapping[str, Any], str, tuple[str, ...]]](), dict[str, Any]()
    for problem in list(grid) if problems is None else problems:
        try:
            found = one(problem)
        except FeaturestepError as error:
            points.append(({}, status_of(error), ()))
        else:
            points.append((found.numbers, OK, found.notes))
            inner.update(
                {k: v for k, v in found.coordinates.items() if len(v) >= len(inner.get(k, ()))}
            )
        if progress is not None:
            progress(len(points), len(grid))
    numbers, statuses, noted = zip(*points, strict=True)
    columns = {
        name: _column([each.get(name) for each in numbers], kind.DIMS.get(name, ()))
        for name in kind.MEANINGS
        if name not in grid.axes
    }
    return GridResult(kind, grid, columns, statuses, noted, inner)


class Verb(Protocol[P, Answer_co]):
    """The type of `predict`, `limit`, …: a result for a problem, a GridResult for a grid."""

    @overload
    def __call__(self, problem: Problem, *args: P.args, **options: P.kwargs) -> Answer_co: ...
    @overload
    def __call__(self, problem: Grid, *args: P.args, **options: P.kwargs) -> GridResult: ...


def verb(
    *known: Collection[str],
) -> Callable[[Callable[Concatenate[Problem | Grid, P], Answer | GridResult]], Verb[P, Answer]]:
    """Decorate a function of a problem or a grid: it refuses fields that are not plain.

    `known` are sets of fields that it knows beside, as for `require_known`.
    """

    def decorate(
        work: Callable[Concatenate[Problem | Grid, P], Answer | GridResult],
    ) -> Verb[P, Answer]:
        @wraps(work)
        def checked(
            problem: Problem | Grid, *args: P.args, **options: P.kwargs
        ) -> Answer | GridResult:
            require_known(require_problem(problem), work.__name__, *known)
            return work(problem, *args, **options)

        return cast("Verb[P, Answer]", checked)

    return decorate


def require_problem(problem: Problem | Grid) -> Problem | Grid:
    """The problem or the grid itself; anything else is refused."""
    if not isinstance(problem, (Problem, Grid)):
        raise InvalidProblem("problem", "must be a Problem or a Grid", problem)
    return problem


def _column(values: Sequence[Any], dims: tuple[str, ...]) -> Array:
    """Values of the points as an array: NaN for missing numbers, objects if not numbers."""
    known = next((value for value in values if value is not None), None)
    if known is None and dims:  # no point has numbers
        return np.empty((len(values), *(0 for _ in dims)))
    if isinstance(known, np.ndarray):
        return _stacked([known[:0] if value is None else value for value in values])
    if all(type(value) is int for value in values):
        return np.array(values)
    if all(value is None or isinstance(value, float) for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    column = np.empty(len(values), dtype=object)
    column[:] = [tuple(value) if isinstance(value, list) else value for value in values]
    return column


def _stacked(arrays: Sequence[Array]) -> Array:
    """Arrays of different lengths as rows of one, padded with NaN, −1 or False."""
    longest = max(len(array) for array in arrays)
    empty = {"f": np.nan, "i": -1, "b": False}[arrays[0].dtype.kind]
    shape = (len(arrays), longest, *arrays[0].shape[1:])
    column = np.full(shape, empty, dtype=arrays[0].dtype)
    for row, array in zip(column, arrays, strict=True):
        row[: len(array)] = array
    return column


def _item(value: Any) -> Any:
    """An entry of a column as a Python object."""
    return value.item() if isinstance(value, np.generic) else value


PLAIN: dict[str, tuple[Any, str]] = {  # value of each field in a plain problem, and the rule
    "loss": ("square", "must be square"),
    "intercept": (False, "must be False"),
    "rows": ("fresh", "must be fresh"),
    "steps": (1, "must be 1"),
    "batches": ("fresh", "must be fresh"),
    "covariance": (None, "must be None"),
}
ALL = frozenset(PLAIN)
LOSS = frozenset({"loss", "intercept"})
_OF_FEATURES = (
    "features do not depend on the readout's loss: leave it out; labels ±1 are not supported here"
)
_WHY_FRESH = {"critical_steps": "spectra on rows of the step are for one step; use spectrum"}
_WHY_SQUARE = {  # why a verb knows the square loss only
    "limit": "other losses have no closed form as n → ∞; use predict at finite n",
    "learnable": "its floors are bounds on squared errors",
    "phase_diagram": _OF_FEATURES,
    "spectrum": _OF_FEATURES,
    "critical_steps": _OF_FEATURES,
    "simulated_spectrum": _OF_FEATURES,
}


def require_known(problem: Problem | Grid, what: str, *known: Collection[str]) -> None:
    """Refuse fields that are not plain, unless all of them are in one of the `known` sets.

    `require_known(p, "predict", {"loss", "intercept"}, {"rows"})` lets pass another loss, or rows
    that are used twice, but not both. A grid is refused if one of its values is.
    """
    found = departing(problem)
    sets = [frozenset(names) for names in (*known, ())]
    if any(found.keys() <= names for names in sets):
        return
    nearest = min(sets, key=lambda names: len(found.keys() - names))
    name = next(name for name in found if name not in nearest)
    rest = [f"{each} {found[each]}" for each in found if each in nearest]
    beside = f" with {' and '.join(rest)}" if rest else ""
    reasons = {"rows": _WHY_FRESH, "loss": _WHY_SQUARE, "intercept": _WHY_SQUARE}.get(name, {})
    reason = reasons.get(what.removeprefix("the task "))
    why = f" ({reason})" if reason else ""
    raise InvalidProblem(name, f"{PLAIN[name][1]} for {what}{beside}{why}", found[name])


def has_other_loss(problem: Problem | Grid) -> bool:
    """True if a problem, or a point of a grid, has another loss than the square or an intercept."""
    return not departing(problem).keys().isdisjoint(LOSS)


def departing(problem: Problem | Grid) -> dict[str, Any]:
    """The fields that are not plain, each with a value of it."""
    base: object = problem.base if isinstance(problem, Grid) else problem
    axes = problem.axes if isinstance(problem, Grid) else {}
    if "step_sizes" in axes:
        axes = {**axes, "steps": tuple(len(sizes) or 1 for sizes in axes["step_sizes"])}
    found = {}
    for name, (plain, _) in PLAIN.items():
        for value in axes.get(name, (getattr(base, name, plain),)):
            if value != plain:
                found[name] = value
                break
    return found
