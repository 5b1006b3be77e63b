"""What every verb answers with: numbers with their meaning, notes, tables."""

from .contract import QUANTITIES, Result, same
from .over_grid import GridResult, Progress, arrays_over, over_grid, verb
from .tables import Table, cell, plain, plus_minus
from .words import OK, Note, allowance, describe, grouped, shared_fields, status_of, where

__all__ = [
    "OK",
    "QUANTITIES",
    "GridResult",
    "Note",
    "Progress",
    "Result",
    "Table",
    "allowance",
    "arrays_over",
    "cell",
    "describe",
    "grouped",
    "over_grid",
    "plain",
    "plus_minus",
    "same",
    "shared_fields",
    "status_of",
    "verb",
    "where",
]
