"""Solutions of the resolvent equations at several places z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...quadrature import FloatArray

ComplexArray = npt.NDArray[Any]  # complex, or real where a problem's arrays are passed on
ACCEPTED = 1e-9


@dataclass(frozen=True)
class Branch:
    """Solutions at B places z."""

    z: ComplexArray  # (B,)
    v2: ComplexArray  # (B, K)
    chi: ComplexArray  # (B, Q)
    residual: FloatArray  # (B,)

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Which places reached the accepted residual."""
        return np.asarray(self.residual <= ACCEPTED)

    def take(self, rows: Any) -> Branch:
        """Some of the places."""
        return Branch(self.z[rows], self.v2[rows], self.chi[rows], self.residual[rows])


@dataclass
class Trail:
    """Solutions that were met, from which those of a similar problem are not far."""

    upper: Branch | None = None  # at the upper edge of the bulk
    lower: Branch | None = None  # at the lower one
    nodes: tuple[FloatArray, Branch] | None = None  # angles in the bulk, and the solution there


def joined(parts: list[Branch]) -> Branch:
    """One branch of all places, from the highest to the lowest."""
    z = np.concatenate([part.z for part in parts])
    order = np.argsort(-z.real, kind="stable")
    return Branch(
        z[order],
        np.concatenate([part.v2 for part in parts])[order],
        np.concatenate([part.chi for part in parts])[order],
        np.concatenate([part.residual for part in parts])[order],
    )
