"""Numbers that grow along the real solution outside the bulk, and smoothly through its edges.

z itself turns back at an edge; with one of these prescribed, and z among the unknowns, Newton's
method does not notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...types import FloatArray
from ..response import Point
from .branch import Branch, ComplexArray


def share(branch: Branch, weight: FloatArray) -> FloatArray:
    """Y = E[χ/(1+χ)], (B,)."""
    return np.asarray((branch.chi / (1.0 + branch.chi)).real @ weight)


class Gauge(Protocol):
    """A number that grows along the real solution, through an edge too, and is prescribed."""

    def gap(self, branch: Branch) -> float:
        """What is missing."""

    def relative(self, gap: float) -> float:
        """The same in units of what matters."""

    def change(self, point: Point, x: ComplexArray, p: ComplexArray) -> Any:
        """Its change with χ and log V2."""


@dataclass(frozen=True)
class Share:
    """Y of a solution."""

    weight: FloatArray  # (Q,) probabilities of κ
    level: float

    def gap(self, branch: Branch) -> float:
        """Of Y to the level."""
        return self.level - float(share(branch, self.weight)[0])

    def relative(self, gap: float) -> float:
        """To the level."""
        return gap / self.level

    def change(self, point: Point, x: ComplexArray, p: ComplexArray) -> Any:
        """Of Y."""
        return (x * point.shrink**2)[0] @ self.weight


@dataclass(frozen=True)
class Arc:
    """How far log|V2| has gone in a direction, 1 in the group that goes furthest."""

    way: FloatArray  # (K,)
    origin: FloatArray  # (K,)
    length: float

    def gap(self, branch: Branch) -> float:
        """To the length."""
        return self.length - self.place(branch)

    def relative(self, gap: float) -> float:
        """As it is."""
        return gap

    def place(self, branch: Branch) -> float:
        """How far a solution is."""
        return float((np.log(np.abs(branch.v2[0])) - self.origin) @ self.way)

    def change(self, point: Point, x: ComplexArray, p: ComplexArray) -> Any:
        """Of the length."""
        return p[0] @ self.way
