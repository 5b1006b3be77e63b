"""What every answer has, for one problem or a grid: the contract of results.

Numbers are attributes with one name everywhere; `.dataset` has them in xarray; `.notes` says how
far to trust them; `.as_dict()` is ready for JSON; `==` compares values; `repr` is a few lines, and
a notebook shows the table that the command line prints; `.plot()` draws.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..problem import Problem
from ..types import Axes, xarray
from .tables import Table, cell, plain
from .words import describe

# What prediction and simulation both measure: one name and one meaning for each.
QUANTITIES = {
    "test_error": "test error E(y − âᵀσ(Wx))², noise included",
    "train_loss": "ridge objective at its minimum, (1/n)‖y − Fâ‖² + λ‖â‖²",
    "train_mse": "training error (1/n)‖y − Fâ‖²",
    "readout_norm": "norm of the fitted readout ‖â‖",
}
_MOST_SHOWN = 6  # numbers in a `repr`


class Result:
    """The contract. A subclass is a frozen dataclass that says what its numbers mean."""

    MEANINGS: ClassVar[Mapping[str, str]] = {}  # of its numbers, which are attributes
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # of those that are arrays
    COLUMNS: ClassVar[tuple[str, ...]] = ()  # of a grid's table; all but arrays if empty
    RAGGED: ClassVar[str | None] = None  # a number whose length differs between problems

    if TYPE_CHECKING:

        @property
        def problem(self) -> Any:
            """The problem or grid that was asked about."""

        @property
        def notes(self) -> tuple[str, ...]:
            """How far to trust the numbers, in words; empty where nothing is left out."""

    def __init_subclass__(cls) -> None:
        """Document the numbers where `help` shows them."""
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
        """Of the dimensions of numbers that are arrays."""
        return {}

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The numbers with their meanings."""
        arrays = {
            name: (self.DIMS.get(name, ()), _entry(value), {"long_name": self.MEANINGS[name]})
            for name, value in self.numbers.items()
        }
        return xarray.Dataset(arrays, self.coordinates, attrs={"problem": repr(self.problem)})

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        return {**plain(self.numbers), "notes": list(map(str, self.notes))}

    def heading(self) -> list[str]:
        """The problem in a few lines of words and symbols."""
        return describe(self.problem)

    def tables(self) -> list[Table]:
        """What the command line prints and a notebook shows."""
        shown = [name for name in self.MEANINGS if name not in self.DIMS]
        rows = [(n.replace("_", " "), getattr(self, n), self.MEANINGS[n]) for n in shown]
        return [Table.of(("", "value", "meaning"), rows)]

    def closing(self) -> list[str]:
        """Lines below the tables and notes."""
        return []

    def plot(self, **options: Any) -> Axes:
        """Draw it: `featurestep.plots` has the pieces, and takes the options."""
        # By name: a room to the right, which no result needs before it is drawn.
        drawn: Axes = import_module("featurestep.plots.answers").draw(self, **options)
        return drawn

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and same(self, other)

    def __hash__(self) -> int:
        return hash((type(self), self.problem))

    def __repr__(self) -> str:
        shown = [f"{n} = {cell(v)}" for n, v in self.numbers.items() if n not in self.DIMS]
        more = ", …" if len(shown) > _MOST_SHOWN else ""
        lines = [", ".join(shown[:_MOST_SHOWN]) + more, *(f"note: {n}" for n in self.notes)]
        return "\n    ".join([f"{type(self).__name__} of {self.problem!r}", *filter(None, lines)])

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(line)}</p>" for line in self.heading()]
        parts += [table.html() for table in self.tables()]
        lines = [*(f"Note: {note}." for note in self.notes), *self.closing()]
        return "".join([*parts, *(f"<p>{html.escape(line)}</p>" for line in lines)])


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, arrays entry by entry and NaN equal to itself."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            return False
        if a.dtype.kind == "O":
            return all(same(x, y) for x, y in zip(a.flat, b.flat, strict=True))
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a) and type(a) is type(b) and not isinstance(a, (Problem, type)):
        names = [f.name for f in fields(a) if f.compare]
        return all(same(getattr(a, name), getattr(b, name)) for name in names)
    return bool(a == b) or (a != a and b != b)


def _entry(value: Any) -> Any:
    """A number as an entry of a dataset: tuples and mappings stay whole."""
    if not isinstance(value, (tuple, list, Mapping)):
        return np.nan if value is None else value
    whole = np.empty((), dtype=object)
    whole[()] = value
    return whole
