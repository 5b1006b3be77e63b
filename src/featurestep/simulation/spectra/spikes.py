"""Which singular values have left the bulk, given where theory puts the bulk's border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...borders import Border
from ...errors import InvalidProblem
from ...types import FloatArray


@dataclass(frozen=True, eq=False)
class Spikes:
    """The eigenvalues beyond edge + margin, largest first, and what carries them."""

    locations: FloatArray  # (count,): eigenvalues of FᵀF/n, or of WᵀW
    border: Border  # of the bulk, as given
    overlaps: FloatArray  # (resolved, functions): squared overlaps, of those with vectors
    complete: bool  # False when every value looked at is a spike, so that there may be more

    @property
    def count(self) -> int:
        """How many."""
        return len(self.locations)

    @property
    def singular_values(self) -> FloatArray:
        """Their square roots."""
        return np.sqrt(self.locations)


def find_spikes(
    values: Any, border: Border, *, overlaps: FloatArray | None = None, complete: bool = True
) -> Spikes:
    """The eigenvalues (of FᵀF/n, not their roots) beyond the border of a bulk.

    values
        Eigenvalues in any order, or the largest of them.
    border
        Where spikes begin: `spectrum(problem).border`, or a `Border` of an edge and a margin.
    overlaps, complete
        Overlaps of the largest values, in order, and whether `values` are all there are.
    """
    if not isinstance(border, Border):
        raise InvalidProblem("border", "must be a Border, as a predicted spectrum has it", border)
    listed = np.asarray(values, dtype=np.float64)
    if listed.ndim != 1 or not np.all(np.isfinite(listed)):
        raise InvalidProblem("values", "must be a list of finite numbers", values)
    found = np.sort(listed[listed > border.place])[::-1]
    known = np.empty((0, 0)) if overlaps is None else overlaps[: len(found)]
    return Spikes(found, border, known, complete or len(found) < len(listed))
