"""Moments of features and labels given κ (eqs. 5 and 6), for many problems of one shape.

They are the arrays that the equations of section 3 are written in. Axes are named in every comment:
B problems, Q nodes in κ, K groups of neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.spiked import SpikedWeights
from ..core.types import FloatArray, IntArray
from ..functions.quadrature import Rule
from .labels import label_moments

SHARED = ("kappa", "weight", "g", "mirrored", "exact")  # by all problems of a batch


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


def build_batch(
    problems: Sequence[Problem],
    weights: Sequence[SpikedWeights],
    groups: Rule,
    nodes: Rule,
) -> Batch:
    """Moments of problems that share activation, target, groups and nodes."""
    g, share = groups
    kappa, weight = nodes
    sigma, star = problems[0].sigma, problems[0].sigma_star
    steps, of = _distinct(weights)
    shift, norm, kept = (  # (steps, K)
        np.stack([f(w, g) for w in steps])
        for f in (SpikedWeights.shift, SpikedWeights.norm, SpikedWeights.kept)
    )
    alignment = np.array([w.alignment for w in steps])
    correlation = np.array([w.correlation for w in steps])
    noise = np.array([p.noise_std for p in problems])
    mirrored = bool(
        np.array_equal(g, -g[::-1])
        and np.array_equal(kappa, -kappa[::-1])
        and np.array_equal(norm, norm[:, ::-1])
    )
    moments = sigma.moments(norm[:, None, :], shift[:, None, :] * kappa[:, None])  # (eq. 5)
    mean, slope, spread = (np.take(moment, of, axis=0) for moment in moments)
    labels = label_moments(star, alignment, kappa)
    y0, y1, rest = (x[of] for x in (labels.mean, labels.linear[:, 0], labels.rest))
    return Batch(
        n=np.array([float(p.n) for p in problems]),
        d=np.array([float(p.d) for p in problems]),
        ridge=np.array([p.ridge for p in problems]),
        kappa=kappa,
        weight=weight,
        g=g,
        neurons=np.array([float(p.width) for p in problems])[:, None] * share,
        shift=shift[of],
        norm=norm[of],
        lean=(correlation[:, None] * kept * g)[of],
        alignment=alignment[of],
        mean=mean,
        linear=norm[of][:, None, :] * slope,
        spread=spread,
        target_mean=y0,
        target_linear=y1,
        target_rest=rest + noise[:, None] ** 2,
        mirrored=mirrored,
    )


def _distinct(weights: Sequence[SpikedWeights]) -> tuple[list[SpikedWeights], list[int]]:
    """The different steps, and which of them each problem takes: ridges may share one."""
    first: dict[SpikedWeights, int] = {}
    of = [first.setdefault(step, len(first)) for step in weights]
    return list(first), of
