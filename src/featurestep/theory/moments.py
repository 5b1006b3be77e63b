"""Conditional moments of features and labels given κ (eqs. 5 and 6), as one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..functions.nonlinearity import Moments, Nonlinearity
from ..functions.quadrature import Rule
from ..problem import Problem
from ..spiked import SpikedWeights
from ..types import FloatArray
from .batch import Batch


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
    moments = feature_moments(sigma, norm, shift, kappa, mirrored=mirrored)
    mean, slope, spread = (np.take(moment, of, axis=0) for moment in moments)
    y0, y1, rest = (x[of] for x in target_moments(star, alignment, kappa))
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


def feature_moments(
    sigma: Nonlinearity, norm: FloatArray, shift: FloatArray, kappa: FloatArray, *, mirrored: bool
) -> Moments:
    """m, μ and ν² (eq. 5), (B, Q, K); with mirrored groups half of the nodes give the rest."""
    if not mirrored:
        return sigma.moments(norm[:, None, :], shift[:, None, :] * kappa[:, None])
    half = kappa.size // 2
    upper = sigma.moments(norm[:, None, :], shift[:, None, :] * kappa[half:, None])
    return Moments(*(np.concatenate([m[:, ::-1, ::-1][:, :half], m], axis=1) for m in upper))


def target_moments(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """y0, y1 and y2 − y0² − y1² without noise (eq. 6): moments of σ⋆(γκ + √(1−γ²)s)."""
    across = across_alignment(alignment)
    y0, slope, rest = star.moments(across[:, None], alignment[:, None] * kappa)
    return y0, across[:, None] * slope, rest


def across_alignment(alignment: FloatArray) -> FloatArray:
    """√(1 − γ²), kept away from 0 where it rounds to it."""
    return np.sqrt(np.maximum((1.0 - alignment) * (1.0 + alignment), 1e-16))
