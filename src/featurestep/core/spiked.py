"""The gradient step's effect on the weights: spiked random features (eqs. 1 to 4).

After the step the feature of neuron j is σ(ρ_j z + u_j κ): κ is the input along the learned
direction β, u_j the weight along it (the shift) and ρ_j the norm of the rest of the weights
(theory, section 2).

From which eigenvalue on an outlier counts as a spike is one rule for theory and simulation: the
largest eigenvalue of a bulk fluctuates about the bulk's edge on the Tracy–Widom scale, single large
entries or samples can move eigenvalues further out, and a spike lies beyond both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..functions.nonlinearity import Nonlinearity, coefficients
from ..functions.targets import AlignedTarget
from .checks import positive
from .errors import InvalidProblem
from .problem import Problem
from .types import FloatArray

_KEPT = "_spiked_weights"  # where a problem keeps them
_MIN_NORM = 1e-6  # of ρ


@dataclass(frozen=True)
class SpikedWeights:
    """Scalars of the step, common to all neurons; a neuron's a_j = g/√N sets its u and ρ."""

    residual_square: float  # E r²
    beta_norm: float  # ‖β‖
    alignment: float  # γ
    unit_shift: float  # u of a neuron with g = 1
    unit_drift: float  # 2c_2 η E r/√N: first-order change of ρ at g = 1
    unit_growth: float  # η² φ0 E r² Var σ′/N: second-order growth of ρ² at g = 1
    correlation: float  # k/√N = c_1/(‖β‖√N) for the full residual, 0 for labels

    def shift(self, g: FloatArray) -> FloatArray:
        """u_g = c_1 η ‖β‖ g/√N (eq. 3)."""
        return self.unit_shift * g

    def kept(self, g: FloatArray) -> FloatArray:
        """1 + 2c_2 η a E r, the factor on the initial weights (the first term of eq. 4)."""
        return 1.0 + self.unit_drift * g

    def norm(self, g: FloatArray) -> FloatArray:
        """ρ_g (eq. 4)."""
        square = self.kept(g) ** 2 + self.unit_growth * g**2
        return np.maximum(np.sqrt(square), _MIN_NORM)


def beta_norm_squared(
    c_star_1: float, c_1: float, phi_step: float, residual_square: float, full: bool
) -> float:
    """‖β‖² (eq. 1)."""
    return c_star_1**2 + (c_1**2 if full else 0.0) + phi_step * residual_square


def covariance_averages(problem: Problem) -> tuple[float, float, float]:
    """Σ s_c²t_c, Σ s_ct_c and M_2, for ‖b‖² and γ of (91); 1 for isotropic inputs."""
    covariance = problem.input_covariance
    if covariance is None:
        return 1.0, 1.0, 1.0
    values, mass = covariance.eigenvalues, problem.target_law.class_mass(covariance)
    second = float(covariance.counts @ values**2 / problem.d)
    return float(mass @ values**2), float(mass @ values), second


def linear_part(star: Nonlinearity | AlignedTarget) -> tuple[float, float]:
    """c⋆_0 = E y, and c⋆_1 or, for several directions, ‖E[y z]‖ of (45)."""
    if isinstance(star, AlignedTarget):
        return star.mean, star.slope
    c = coefficients(star, 1)
    return float(c[0]), float(c[1])


def spiked_weights(problem: Problem) -> SpikedWeights:
    """The scalars of a problem's step, with γ = c⋆_1/‖β‖ (eqs. 2, 91).

    With a covariance ‖Σ^½β‖ takes the place of ‖β‖, and drift and growth are those of (93) to
    leading order. They are kept with the problem, and with copies of it at another ridge.
    """
    known: SpikedWeights | None = problem.__dict__.get(_KEPT)
    if known is None:
        known = problem.__dict__[_KEPT] = _spiked_weights(problem)
    return known


def _spiked_weights(problem: Problem) -> SpikedWeights:
    sigma, star = problem.sigma, problem.star
    c = coefficients(sigma, 2)
    mean, slope = linear_part(star)
    full = problem.residual == "full"
    square = star.second_moment + problem.label_variance + (sigma.second_moment if full else 0.0)
    along, overlap, spread = covariance_averages(problem)
    phi = problem.phi_step * spread
    norm = float(np.sqrt(beta_norm_squared(slope * along**0.5, c[1], phi, square, full)))
    root_width = problem.width**0.5
    step = problem.step_size / root_width  # η a_j for g = 1
    return SpikedWeights(
        residual_square=square,
        beta_norm=norm,
        alignment=slope * overlap / norm,
        unit_shift=float(c[1]) * step * norm,
        unit_drift=2.0 * float(c[2]) * step * mean * spread,
        unit_growth=step**2 * phi * square * sigma.slope_variance,
        correlation=float(c[1]) / (norm * root_width) if full else 0.0,
    )


MARGIN = 3.0  # Tracy–Widom scales: the largest eigenvalue of a bulk is beyond once in 1,000


@dataclass(frozen=True)
class Border:
    """The edge of a bulk and the margin beyond it that a spike must exceed, as eigenvalues."""

    edge: float
    margin: float

    def __post_init__(self) -> None:
        positive("edge", self.edge)
        if not self.margin >= 0.0:
            raise InvalidProblem("margin", "must be >= 0", self.margin)

    @property
    def place(self) -> float:
        """edge + margin: larger eigenvalues are spikes."""
        return self.edge + self.margin


def border_of(edge: float, scale: float, reach: float = 0.0) -> Border:
    """The border of a bulk: MARGIN Tracy–Widom scales above its edge, and at least `reach`.

    reach: the largest eigenvalue that a single entry or sample is expected to make.
    """
    return Border(edge, max(MARGIN * scale, reach - edge))
