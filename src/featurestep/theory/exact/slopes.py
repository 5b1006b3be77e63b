"""Moments of the activation's slope: all that the step sees of σ (eqs. 19, 25–27, 38, 42)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients, gaussian_panels


class Slopes(NamedTuple):
    """Averages over z ~ N(0,1), with ψ = σ′ − c_1 and h = ψ − 2c_2z."""

    c0: float
    c1: float
    c2: float
    variance: float  # E ψ² = Var σ′
    rest: float  # v_h = E h²
    zz: float  # E[z²ψ] = 6c_3
    z_square: float  # E[zψ²]
    cube: float  # E ψ³
    norm_noise: tuple[float, float, float]  # E of [zψ]², [zψ][ψ²], [ψ²]², without parts 1 and z
    own: float  # E[(σ − c_0 − c_1z)zψ]
    own_square: float  # E[zψH_2]
    longer: float  # E[σ′(z³ − 2z)]
    longer_square: float  # E[σ′²H_2]

    @property
    def z_noise(self) -> float:
        """E[zψh] (eq. 26b)."""
        return self.z_square - 2.0 * self.c2 * self.zz

    @property
    def square_noise(self) -> float:
        """E[ψ²h] (eq. 26b)."""
        return self.cube - 2.0 * self.c2 * self.z_square


@lru_cache(maxsize=256)
def slopes(sigma: Nonlinearity) -> Slopes:
    """The moments of one activation."""
    z, w = gaussian_panels(sigma)
    slope = sigma.derivative(z)
    c = coefficients(sigma, 3)
    c0, c1, c2 = (float(value) for value in c[:3])
    psi = slope - c1
    variance = sigma.slope_variance
    first, second = _nonlinear(z, w, z * psi), _nonlinear(z, w, psi**2)
    centred = sigma(z) - c0 - c1 * z
    return Slopes(
        c0=c0,
        c1=c1,
        c2=c2,
        variance=variance,
        rest=max(variance - 4.0 * c2**2, 0.0),
        zz=6.0 * float(c[3]),
        z_square=float(w @ (z * psi**2)),
        cube=float(w @ psi**3),
        norm_noise=(
            float(w @ first**2),
            float(w @ (first * second)),
            float(w @ second**2),
        ),
        own=float(w @ (centred * z * psi)),
        own_square=float(w @ (z * psi * (z**2 - 1.0))),
        longer=float(w @ (slope * (z**3 - 2.0 * z))),
        longer_square=float(w @ (slope**2 * (z**2 - 1.0))),
    )


def _nonlinear(z: FloatArray, w: FloatArray, f: FloatArray) -> FloatArray:
    """f without its mean and its part linear in z."""
    return np.asarray(f - w @ f - z * (w @ (z * f)))
