"""What a neuron's own overlap with the target does to its shift and norm, step by step (151).

A neuron whose initial weights have the overlap ε with β⋆ is moved by every batch a little otherwise
than its group: along the members u of the frame by A1ε + A2ε², in its squared norm by N1ε + N2ε².
At finite d, ε² = 1/d, this is seen. As in (151) for one step, what the noise of a batch adds is
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..labels import moments_at
from .batches import Batch


class OwnMotion(NamedTuple):
    """A neuron's motion beside its group's, to second order in its overlap ε with β⋆."""

    first: FloatArray  # (S, K) A1, of the initial overlap with what became of it
    second: FloatArray  # (S, K) A2
    norm_first: FloatArray  # (K,) N1
    norm_second: FloatArray  # (K,) N2


def own_motion(star: Nonlinearity, batches: Sequence[Batch]) -> OwnMotion:
    """The motion after all batches, for a target of one direction."""
    norm = np.sqrt(batches[0].before.norm2)  # of a row, that has ε times its norm
    none = np.zeros_like(norm)
    motion = OwnMotion(norm[None], none[None], none, none)
    for batch in batches:
        motion = _after(star, batch, motion)
    return motion


def _after(star: Nonlinearity, batch: Batch, motion: OwnMotion) -> OwnMotion:
    """The motion after one batch: its gradient at a neuron, expanded in ε."""
    frame, law, e, v = batch.before, batch.law, batch.e, batch.before.norm2
    xi = law.xi
    share = np.bincount(law.place, weights=law.weight, minlength=len(xi))
    at = batch.tables
    m1, mu, mu1 = at.mean_change, at.slope, at.slope_change  # (X, K)
    y = moments_at(star, frame.across, (xi @ frame.gamma.T).T).by_degree[0]
    powers = np.stack(
        [y[0], y[1], np.sqrt(2.0) * y[2] + y[0], np.sqrt(6.0) * y[3] + 3.0 * y[1]]
    )  # E[y s^k|ξ]
    moments = (share * powers)[:, :, None]  # (4, X, 1)

    def mean(*by_power: FloatArray) -> FloatArray:
        """E[y Σ_k f_k s^k] for functions of ξ, (X, K)."""
        return np.asarray(sum((m * f).sum(axis=0) for m, f in zip(moments, by_power, strict=False)))

    def along(*by_power: FloatArray) -> FloatArray:
        """E[y u Σ_k f_k s^k] for all members u, (S, K)."""
        none = np.zeros_like(by_power[0])
        found = [mean(*(xi[:, i, None] * f for f in by_power)) for i in range(xi.shape[1])]
        return np.stack([*found, mean(none, *by_power)])

    n1, n2 = motion.norm_first, motion.norm_second
    a, a2 = xi @ motion.first[:-1], xi @ motion.second[:-1]
    b, b2 = motion.first[-1], motion.second[-1]  # A1·u = a + bs
    square = a**2 - (motion.first**2).sum(axis=0)
    linear = mu * a + m1 * n1, mu * b
    quadratic = (
        m1 * (square + n2) + mu * a2 + mu1 * a * n1,
        2.0 * m1 * a * b + mu * b2 + mu1 * b * n1,
        m1 * b**2,
    )
    kept = 1.0 + e * mean(mu)
    turned = e * mean(2.0 * m1 * a + mu1 * n1, 2.0 * m1 * b)
    bent = e * mean(
        mu1 * (square + n2) + 2.0 * m1 * a2, 2.0 * mu1 * a * b + 2.0 * m1 * b2, mu1 * b**2
    )
    return OwnMotion(
        batch.members @ (motion.first + e * along(*linear)),
        batch.members @ (motion.second + e * along(*quadratic)),
        n1 * kept**2 + 2.0 * v * kept * turned,
        n2 * kept**2 + 2.0 * n1 * kept * turned + v * (turned**2 + 2.0 * kept * bent),
    )
