"""Where spikes begin: one rule, for predicted eigenvalues and for simulated ones.

The largest eigenvalue of a bulk fluctuates about its edge on the scale of Tracy and Widom, and
single large entries or samples push eigenvalues further. What lies beyond both is a spike.
"""

from __future__ import annotations

from dataclasses import dataclass

from .checks import positive
from .errors import InvalidProblem

MARGIN = 3.0  # Tracy–Widom scales; the largest of a bulk exceeds its edge by as much once in 1,000


@dataclass(frozen=True)
class Border:
    """The edge of a bulk and a margin beyond it, as eigenvalues: a spike lies beyond both."""

    edge: float
    margin: float

    def __post_init__(self) -> None:
        positive("edge", self.edge)
        if not self.margin >= 0.0:
            raise InvalidProblem("margin", "must be >= 0", self.margin)

    @property
    def place(self) -> float:
        """The eigenvalue from which on a spike is one."""
        return self.edge + self.margin


def border_of(edge: float, scale: float, reach: float = 0.0) -> Border:
    """The border of a bulk with an edge that fluctuates on a scale, and strays up to a reach."""
    return Border(edge, max(MARGIN * scale, reach - edge))
