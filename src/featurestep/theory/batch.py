"""Many problems of one shape, as arrays: what the equations of section 3 are written in.

Axes are named in every comment: B problems, Q nodes in κ, K groups of neurons.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ..types import FloatArray, IntArray

SHARED = ("kappa", "weight", "g", "mirrored", "exact")  # by all problems of a batch


class Pairs(NamedTuple):
    """The response of V1 in the unknowns Ξ_gh, g ≤ h, for few groups."""

    seen: FloatArray  # (B, Q, pairs) how Ξ enters χ
    felt: FloatArray  # (B, Q, pairs) how χ enters Ξ
    carried: FloatArray  # (B, pairs, K) how p enters Ξ


@dataclass(frozen=True)
class Batch:
    """Sizes, weights' statistics and moments of B problems that share nodes and groups."""

    n: FloatArray  # (B,)
    d: FloatArray  # (B,)
    ridge: FloatArray  # (B,)
    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,) probabilities of κ
    g: FloatArray  # (K,) readout values
    neurons: FloatArray  # (B, K) N_g
    shift: FloatArray  # (B, K) u_g
    norm: FloatArray  # (B, K) ρ_g
    lean: FloatArray  # (B, K) mean of a neuron's weight along −β: 0 for labels
    alignment: FloatArray  # (B,) γ
    mean: FloatArray  # (B, Q, K) m_g
    linear: FloatArray  # (B, Q, K) ρ_g μ_g
    spread: FloatArray  # (B, Q, K) ν_g²
    target_mean: FloatArray  # (B, Q) y0
    target_linear: FloatArray  # (B, Q) y1
    target_rest: FloatArray  # (B, Q) y2 − y0² − y1²
    mirrored: bool  # whether (g, κ) and (−g, −κ) have equal moments, with nodes to match
    exact: Any = None  # exact.spikes.ExactSide: one problem whose weights answer exactly
    felt: FloatArray | None = None  # (B, Q, K) ν_g² as it enters V̂2, where rows and columns vary

    @property
    def varies(self) -> bool:
        """Whether rows and columns vary by chance: ν_g² then enters χ and V̂2 differently."""
        return self.felt is not None

    @property
    def readout_nodes(self) -> int:
        """Nodes of κ: with exact weights those that stand for Ξ come after them."""
        return self.kappa.size - (0 if self.exact is None else self.exact.unknowns)

    def take(self, rows: IntArray) -> Batch:
        """The same arrays for some of the problems."""
        picked = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in picked:
            if name not in SHARED and picked[name] is not None:
                picked[name] = picked[name][rows]
        return Batch(**picked)

    def __len__(self) -> int:
        return int(self.n.size)
