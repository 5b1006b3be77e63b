"""From which eigenvalue on an outlier counts as a spike: one rule for theory and simulation.

The largest eigenvalue of a bulk fluctuates about the bulk's edge on the Tracy–Widom scale, and
single large entries or samples can move eigenvalues further out. A spike lies beyond both.
"""

from __future__ import annotations

from dataclasses import dataclass

from .checks import positive
from .errors import InvalidProblem

MARGIN = 3.0  # Tracy–Widom scales: the largest eigenvalue of a bulk is beyond once in 1,000


@dataclass(frozen=True)
class Border:
    """The edge of a bulk and the margin beyond it that a spike must exceed, as eigenvalues."""

    edge: float
    margin: float

    def __post_init__(self) -> None:
        positive("edge", self.edge)
        if not self.margin >= 0.0:
            raise InvalidProblem("margin", "must be >= 0", self.margin)

    @property
    def place(self) -> float:
        """edge + margin: larger eigenvalues are spikes."""
        return self.edge + self.margin


def border_of(edge: float, scale: float, reach: float = 0.0) -> Border:
    """The border of a bulk: MARGIN Tracy–Widom scales above its edge, and at least `reach`.

    reach: the largest eigenvalue that a single entry or sample is expected to make.
    """
    return Border(edge, max(MARGIN * scale, reach - edge))
