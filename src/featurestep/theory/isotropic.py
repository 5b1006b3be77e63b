"""Isotropic weights (sections 2, 3): the published picture of the step, as a `Step`.

What a neuron keeps beside its shift u_g is taken for an isotropic vector of norm ρ_g (4): it keeps
(1 + k_gm_1) of its initial weights, and the rest of its square is noise without structure. Then
(22) has no r in it (φ0 → 0: T = N, Ξ = diag(0, ρ² − (1 + k m_1)²)), C of the fields is
blockdiag(V2, X, X), and own overlaps, norms and terms of order 1/d are left out. `predict` has it
for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.spiked import SpikedWeights, spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import coefficients
from ..functions.quadrature import Rule
from .exact.step import Row, Step, sees_output
from .labels import across_alignment

_DIRECTIONS = 2  # special ones: β itself, and what β⋆ has beside it


def isotropic_step(rows: Sequence[Row], groups: Rule) -> Step:
    """The constants of rows that share all but numbers, for isotropic weights (eqs. 1 to 4)."""
    g, share = groups
    problems = [row.problem for row in rows]
    weights = [spiked_weights(problem) for problem in problems]

    def of_problems(name: str) -> FloatArray:
        return np.array([float(getattr(problem, name)) for problem in problems])

    def of_groups(function: object) -> FloatArray:
        return np.stack([function(w, g) for w in weights])  # type: ignore[operator]

    width, alignment = of_problems("width"), np.array([w.alignment for w in weights])
    norm, kept = of_groups(SpikedWeights.norm), of_groups(SpikedWeights.kept)
    first = problems[0]
    lean = float(coefficients(first.sigma, 1)[1]) if sees_output(first) else 0.0
    count, size = norm.shape
    none, plain = np.zeros_like(norm), np.zeros(count)
    return Step(
        n=of_problems("n"),
        d=of_problems("d"),
        ridge=of_problems("ridge"),
        noise=of_problems("noise_std") ** 2,
        phi=plain,
        beta=np.array([w.beta_norm for w in weights]),
        alignment=alignment,
        across=across_alignment(alignment),
        lean=np.full(count, lean),
        neurons=width[:, None] * share,
        a=g / np.sqrt(width)[:, None],
        e=none,
        k=none,
        delta=np.maximum(norm**2 - kept**2, 0.0),
        kept=kept,
        norm=norm,
        shift=of_groups(SpikedWeights.shift),
        along_weights=np.zeros((count, size, 3)),
        along_noise=np.zeros((count, size, 3)),
        norm_variance=none,
        sample_norm=np.zeros((count, size, size)),
        longer=none,
        further=none,
        r=np.ones((count, 1)),
        r_weight=np.ones((count, 1)),
        r_first=np.zeros((count, _DIRECTIONS, 1)),
        r_second=np.tile(np.eye(_DIRECTIONS)[None, :, :, None], (count, 1, 1, 1)),
        r_moments=np.zeros((count, 7)),
        r_overlaps=np.zeros((count, _DIRECTIONS, 4)),
        is_full=False,
        is_gaussian=False,
        is_isotropic=True,
    )
