"""What the gradient step does to the weights: every neuron becomes a spiked random feature.

After the step neuron j sees σ(ρ_j z + u_j κ): κ is the input along the learned direction β,
u_j the shift along it and ρ_j the norm of what is left (theory, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .hermite import coefficients
from .problem import Problem
from .quadrature import FloatArray

_SMALLEST_NORM = 1e-6


@dataclass(frozen=True)
class SpikedWeights:
    """Scalars of the step that every group of neurons shares."""

    residual_mean: float  # E r
    residual_square: float  # E r²
    beta_norm: float  # ‖β‖
    alignment: float  # γ
    unit_shift: float  # u of a neuron with g = 1
    unit_drift: float  # 2c_2 η E r/√N: first-order change of the remaining norm
    unit_growth: float  # η² φ0 E r² Var σ′/N: second-order growth of its square
    correlation: float  # k/√N = c_1/(‖β‖√N) for the full residual, 0 for labels

    def shift(self, g: FloatArray) -> FloatArray:
        """u_g = c_1 η ‖β‖ g/√N (eq. 3)."""
        return self.unit_shift * g

    def kept(self, g: FloatArray) -> FloatArray:
        """1 + 2c_2 η a E r, the factor on the initial weights (first term of eq. 4)."""
        return 1.0 + self.unit_drift * g

    def norm(self, g: FloatArray) -> FloatArray:
        """ρ_g (eq. 4)."""
        square = self.kept(g) ** 2 + self.unit_growth * g**2
        return np.maximum(np.sqrt(square), _SMALLEST_NORM)


def beta_norm_squared(
    c_star_1: float, c_1: float, phi_step: float, residual_square: float, full: bool
) -> float:
    """‖β‖² (eq. 1)."""
    return c_star_1**2 + (c_1**2 if full else 0.0) + phi_step * residual_square


def spiked_weights(problem: Problem) -> SpikedWeights:
    """The step's scalars for one problem (eqs. 1 to 4)."""
    sigma, star = problem.sigma, problem.sigma_star
    c = coefficients(sigma, 2)
    c_star = coefficients(star, 1)
    full = problem.residual == "full"
    square = star.second_moment + problem.noise_std**2 + (sigma.second_moment if full else 0.0)
    norm = float(np.sqrt(beta_norm_squared(c_star[1], c[1], problem.phi_step, square, full)))
    root_width = problem.width**0.5
    step = problem.eta / root_width  # η a_j for g = 1
    return SpikedWeights(
        residual_mean=float(c_star[0]),
        residual_square=square,
        beta_norm=norm,
        alignment=float(c_star[1]) / norm,
        unit_shift=float(c[1]) * step * norm,
        unit_drift=2.0 * float(c[2]) * step * float(c_star[0]),
        unit_growth=step**2 * problem.phi_step * square * sigma.slope_variance,
        correlation=float(c[1]) / (norm * root_width) if full else 0.0,
    )


def validity(problem: Problem, weights: SpikedWeights) -> tuple[str, ...]:
    """Plain-language notes on approximations that are outside their range here, and by how much."""
    return (*_step_notes(problem, weights), *_residual_notes(problem), *_size_notes(problem))


def _step_notes(problem: Problem, weights: SpikedWeights) -> list[str]:
    """Equation (4) treats what the step adds beside β as isotropic."""
    notes = []
    samples = problem.step_samples / problem.d
    share = weights.unit_growth / float(weights.norm(np.ones(1))[0]) ** 2
    if share > 0.02:
        notes.append(
            f"large step: {share:.0%} of a typical neuron's squared norm beside the learned "
            "direction comes from the step and is treated as isotropic (eq. 4), exact only when "
            f"this share is small or n_step/d is large (here {samples:.3g}); compare with a "
            "simulation before relying on the last few per cent"
        )
    step = abs(2.0 * float(coefficients(problem.sigma, 2)[2])) * problem.eta / problem.width**0.5
    turned = step * (problem.phi_step * weights.residual_square) ** 0.5
    if turned > 0.1:
        notes.append(
            "large step and c_2 ≠ 0: the step also turns each neuron by a fraction "
            f"{turned:.2g} of its norm along the sample covariance, which is left out (it fades "
            f"when n_step/d is large, here {samples:.3g})"
        )
    own = _own_turn(problem)
    if own > 0.3:
        notes.append(
            f"large step: a turn of size {own:.2g} of each neuron in proportion to its own overlap "
            "with the target's direction is left out, whatever n_step is"
        )
    exponent = problem.regime.exponent
    if exponent is not None and exponent > 0.5 + 1e-9:
        notes.append(f"step exponent {exponent:.3g} is beyond 1/2, the largest the theory covers")
    return notes


def _own_turn(problem: Problem) -> float:
    """η/√N times the larger of |4c_2c⋆_2| and |6c_3c⋆_1|.

    The mean of yσ′(w·x)x is c_1c⋆_1β⋆ + (β⋆·w)(4c_2c⋆_2β⋆ + 6c_3c⋆_1w) + …; (3) keeps the first
    term.
    """
    c, c_star = coefficients(problem.sigma, 3), coefficients(problem.sigma_star, 2)
    terms = (4.0 * float(c[2]) * float(c_star[2]), 6.0 * float(c[3]) * float(c_star[1]))
    return float(problem.eta / problem.width**0.5 * max(map(abs, terms)))


def _residual_notes(problem: Problem) -> list[str]:
    c = coefficients(problem.sigma, 2)
    if problem.residual != "full" or c[2] == 0.0:
        return []
    if problem.law.mean:
        return [
            "full residual, c_2 ≠ 0 and a readout law with non-zero mean: fluctuations of ‖x‖ "
            "enter the initial output and are left out"
        ]
    if c[0] != 0.0:
        return [
            "full residual with an uncentred activation: terms from fluctuating norms are left out"
        ]
    return []


def _size_notes(problem: Problem) -> list[str]:
    smallest = min(problem.n, problem.d, problem.width, problem.step_samples)
    if smallest >= 50:
        return []
    return [
        f"small sizes: the smallest dimension is {smallest}, and corrections of order "
        f"1/{smallest} are left out"
    ]
