"""What every verb answers with: numbers with their meaning, notes, tables."""

from .contract import Result, same
from .notes import OK, Note, allowance, grouped, status_of, where
from .over_grid import GridResult, Point, Progress, collected, over_grid, point_of
from .quantities import QUANTITIES
from .tables import Table, cell, plain, plus_minus
from .words import describe, shared_fields

__all__ = [
    "OK",
    "QUANTITIES",
    "GridResult",
    "Note",
    "Point",
    "Progress",
    "Result",
    "Table",
    "allowance",
    "cell",
    "collected",
    "describe",
    "grouped",
    "over_grid",
    "plain",
    "plus_minus",
    "point_of",
    "same",
    "shared_fields",
    "status_of",
    "where",
]
