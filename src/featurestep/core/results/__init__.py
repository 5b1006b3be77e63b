"""What every verb answers with: numbers with their meaning, notes, tables."""

from .contract import QUANTITIES, Result, same
from .over_grid import GridResult, Progress, arrays_over, over_grid, verb
from .tables import Table, cell, plain, plus_minus
from .words import OK, Note, allowance, describe, grouped, shared_fields, status_of, where
