"""Which singular values have left the bulk, given where theory puts the bulk's edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...checks import positive, whole_number
from ...errors import InvalidProblem
from ...types import FloatArray

TRACY_WIDOM = 6.0  # margins in Tracy–Widom units; see `edge_margin`


@dataclass(frozen=True, eq=False)
class Spikes:
    """The eigenvalues beyond edge + margin, largest first, and what carries them."""

    locations: FloatArray  # (count,): eigenvalues of FᵀF/n, or of WᵀW
    edge: float  # of the bulk, as given
    margin: float  # added to it
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


def edge_margin(edge: float, *, n: int, width: int, constant: float = TRACY_WIDOM) -> float:
    """constant · edge · (√n + √N)^(−2/3) (nN)^(−1/6): of order n^(−2/3), in eigenvalues.

    Without the constant this is the Tracy–Widom scale of the largest eigenvalue of XᵀX/n for a
    matrix X (n × N) of independent entries, written in terms of its edge. The 99 % point of that
    law is 2.02 units above the edge. Features of a network have a softer edge than independent
    entries and fluctuate about 1.7 times as much, and where c_2 ≠ 0 the fluctuating norms of the
    inputs add to that at small n. With 6 units the largest eigenvalue of an untrained network
    passes the margin in fewer than 1 % of the draws, from n = 200 on.
    """
    return float(constant * edge * (n**0.5 + width**0.5) ** (-2 / 3) * float(n * width) ** (-1 / 6))


def find_spikes(
    values: Any,
    *,
    edge: float,
    n: int,
    width: int,
    constant: float = TRACY_WIDOM,
    overlaps: FloatArray | None = None,
    complete: bool = True,
) -> Spikes:
    """The eigenvalues (of FᵀF/n, not their roots) beyond a given right edge of the bulk.

    values
        Eigenvalues in any order, or the largest of them.
    edge
        Where the bulk ends, predicted or known, as an eigenvalue.
    n, width
        The two sizes of the matrix, for the margin (`edge_margin`).
    constant
        The margin in Tracy–Widom units.
    overlaps, complete
        Overlaps of the largest values, in order, and whether `values` are all there are.
    """
    edge, constant = positive("edge", edge), positive("constant", constant)
    sizes = {"n": whole_number("n", n), "width": whole_number("width", width)}
    listed = np.asarray(values, dtype=np.float64)
    if listed.ndim != 1 or not np.all(np.isfinite(listed)):
        raise InvalidProblem("values", "must be a list of finite numbers", values)
    margin = edge_margin(edge, **sizes, constant=constant)
    found = np.sort(listed[listed > edge + margin])[::-1]
    known = np.empty((0, 0)) if overlaps is None else overlaps[: len(found)]
    return Spikes(found, edge, margin, known, complete or len(found) < len(listed))
