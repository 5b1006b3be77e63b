"""Solutions of the resolvent equations at several places z."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import NotConverged
from ...core.types import FloatArray

_BEYOND = 50.0
ComplexArray = npt.NDArray[Any]  # complex, or real where a problem's arrays are passed on


@dataclass(frozen=True)
class Branch:
    """Solutions at B places z."""

    z: ComplexArray  # (B,)
    v2: ComplexArray  # (B, K)
    chi: ComplexArray  # (B, Q)
    residual: FloatArray  # (B,)
    accepted: float = 1e-9  # residual of a solution

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Which places reached the accepted residual."""
        return np.asarray(self.residual <= self.accepted)

    def take(self, rows: Any) -> Branch:
        """Some of the places."""
        return Branch(
            self.z[rows], self.v2[rows], self.chi[rows], self.residual[rows], self.accepted
        )

    def resolved(self, otherwise: str) -> Branch:
        """The same if every place is a solution; `NotConverged` says what went wrong if not."""
        if not np.all(self.converged):
            raise NotConverged(otherwise, residual=float(self.residual.max()))
        return self

    def scaled_to(self, z: ComplexArray) -> Branch:
        """A guess for solutions at z: V2 falls like 1/z."""
        return replace(self, v2=self.v2 * (self.z / z)[:, None])

    def real(self) -> Branch:
        """Without the imaginary parts, as complex numbers."""
        z, v2, chi = (a.real.astype(np.complex128) for a in (self.z, self.v2, self.chi))
        return replace(self, z=z, v2=v2, chi=chi)

    def replaced(self, rows: Any, others: Branch) -> Branch:
        """With other solutions at some of the places."""
        v2, chi, residual = self.v2.copy(), self.chi.copy(), self.residual.copy()
        v2[rows], chi[rows], residual[rows] = others.v2, others.chi, others.residual
        return replace(self, v2=v2, chi=chi, residual=residual)


@dataclass(frozen=True)
class Nodes:
    """Where a branch has its unknowns."""

    kappa: FloatArray  # (Q,)
    g: FloatArray  # (K,)
    neurons: FloatArray  # (K,)

    def moved(self, branch: Branch, new: Nodes) -> Branch:
        """A branch interpolated to other nodes; V2 counts neurons, so V2/N_g is a function of g."""
        if np.array_equal(self.kappa, new.kappa) and np.array_equal(self.g, new.g):
            return branch
        v2 = between(self.g, branch.v2 / self.neurons, new.g) * new.neurons
        return replace(branch, v2=v2, chi=between(self.kappa, branch.chi, new.kappa))

    @property
    def has_weights(self) -> bool:
        """Whether some stand for the exact weights' own unknowns, beyond all that κ may be."""
        return bool(self.kappa[-1] > _BEYOND)

    def lead_to(self, new: Nodes) -> bool:
        """Whether they do."""
        pairs = ((self.kappa, new.kappa), (self.g, new.g))
        return all(np.array_equal(*pair) or _increase(*pair) for pair in pairs)


def _increase(*nodes: FloatArray) -> bool:
    return all(bool(np.all(np.diff(each) > 0.0)) for each in nodes)


def between(old: FloatArray, values: ComplexArray, new: FloatArray) -> ComplexArray:
    """Values (B, old) at new places, linearly, and constant beyond the ends."""
    if old.size == 1:
        return np.repeat(values, new.size, axis=1)
    index = np.clip(np.searchsorted(old, new), 1, old.size - 1)
    share = np.clip((new - old[index - 1]) / (old[index] - old[index - 1]), 0.0, 1.0)
    return np.asarray((1.0 - share) * values[:, index - 1] + share * values[:, index])


@dataclass
class Trail:
    """Solutions that were met, from which those of a similar problem are not far."""

    at: Nodes | None = None
    upper: Branch | None = None  # at the upper edge of the bulk
    lower: Branch | None = None  # at the lower one
    nodes: Branch | None = None  # at nodes of the bulk
    views: tuple[float, FloatArray, Branch] | None = None  # above the axis, see `draft`
    blurred: int = 0  # drafts for which they are to be enough

    def moved(self, new: Nodes, settled: Callable[[Branch], Branch]) -> Trail:
        """The same on the nodes of another problem; empty if that has nodes of another kind."""
        old = self.at
        if old is None or not old.lead_to(new):
            return Trail(new)

        def move(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(move, value))
            return settled(old.moved(value, new)) if isinstance(value, Branch) else value

        return Trail(new, *(move(getattr(self, field.name)) for field in fields(self)[1:]))


def joined(parts: list[Branch]) -> Branch:
    """One branch of all places, from the highest to the lowest."""
    arrays = zip(*((part.z, part.v2, part.chi, part.residual) for part in parts), strict=True)
    z, v2, chi, residual = map(np.concatenate, arrays)
    whole = Branch(z, v2, chi, residual, max(part.accepted for part in parts))
    return whole.take(np.argsort(-whole.z.real, kind="stable"))
