"""The turn of each neuron in proportion to its own overlap with the target's direction.

The mean of yσ′(w·x)x is c_1c⋆_1β⋆ + (β⋆·w)(6c_3c⋆_1w + 4c_2c⋆_2β⋆) + …; section 2 keeps the first
term. The second changes the neuron's norm, and with it m_g by (β⋆·w) times
g(η/√N)·6c_3c⋆_1 ∂m_g/∂log ρ, the third its shift, and m_g by (β⋆·w) times g(η/√N)·4c_2c⋆_2 γκμ_g.
With β⋆·w of order 1/√d this fades in the bulk. Where E σ‴ is large it is seen in the spikes.
"""

from __future__ import annotations

import numpy as np

from ...hermite import coefficients
from ...problem import Problem
from ...quadrature import FloatArray
from ..batch import Batch

_LEAST = 0.5  # of η/√N·|6c_3c⋆_1| that is worth its columns
_STEP = 1e-3


def own_turn(problem: Problem, batch: Batch) -> FloatArray | None:
    """Change of m_g(κ) with β⋆·w, (Q, K), where it is large enough."""
    c, c_star = coefficients(problem.sigma, 3), coefficients(problem.sigma_star, 2)
    step = problem.eta / problem.width**0.5
    norm, shift = 6.0 * float(c[3] * c_star[1]) * step, 4.0 * float(c[2] * c_star[2]) * step
    if abs(norm) < _LEAST or problem.residual == "full":
        return None
    places = batch.shift * batch.kappa[:, None]
    longer, shorter = (
        problem.sigma.moments(factor * batch.norm, places).mean
        for factor in (1.0 + _STEP, 1.0 - _STEP)
    )
    slope = batch.linear[0] / batch.norm[0]  # μ
    along = float(batch.alignment[0]) * batch.kappa[:, None] * slope
    return np.asarray(batch.g * (norm * (longer - shorter) / (2.0 * _STEP) + shift * along))
