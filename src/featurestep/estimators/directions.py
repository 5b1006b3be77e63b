"""Which directions the step found, and how far other rows would have given the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import FloatArray

SPLITS = 20
DEGREES = 4  # highest polynomial degree that is told from the rest


@dataclass(frozen=True)
class Stability:
    """Cosines of the directions that two halves of the step's rows give, for each output."""

    mean: FloatArray  # (outputs,), over the splits
    spread: FloatArray  # (outputs,): standard deviation over the splits

    @property
    def cosine(self) -> FloatArray:
        """Estimated cosine γ of β with the direction that endless rows would give.

        β is a signal plus noise of size ∝ 1/n0 (eq. 1), so two halves agree by ρ = γ² of a half,
        and the whole has γ² = 2ρ/(1 + ρ).
        """
        rho = np.clip(self.mean, 0.0, 1.0)
        return np.asarray(np.sqrt(2.0 * rho / (1.0 + rho)))


def stability(X: Any, R: FloatArray, seed: int) -> Stability:
    """From β = Xᵀr/n0 of random halves of the step's rows."""
    rng = np.random.default_rng(seed)
    X, cosines = np.asarray(X, dtype=np.float64), []
    for _ in range(SPLITS):
        order = rng.permutation(len(X))
        first, second = (R[half].T @ X[half] for half in np.array_split(order, 2))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        inner = np.sum(first * second, axis=1)
        cosines.append(np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0))
    return Stability(np.mean(cosines, axis=0), np.std(cosines, axis=0, ddof=1))


@dataclass(frozen=True)
class Along:
    """Rows along one direction: κ with mean 0 and variance 1 over them."""

    beta: FloatArray  # (d,)
    mean: float
    spread: float

    def __call__(self, X: Any) -> FloatArray:
        """κ of some rows."""
        return np.asarray((X @ self.beta.astype(X.dtype) - self.mean) / self.spread, dtype=float)


def along(beta: FloatArray, X: Any) -> Along:
    """κ = x·β, standardised over these rows."""
    values = np.asarray(X @ beta.astype(X.dtype), dtype=np.float64)
    return Along(beta, float(values.mean()), float(values.std()) or 1.0)


def orthonormal_polynomials(kappa: FloatArray, degree: int = DEGREES) -> FloatArray:
    """Columns of degree 0 … degree, orthonormal over these rows: H_k/√(n·k!) for Gaussian κ."""
    powers = np.polynomial.hermite_e.hermevander(kappa, degree)
    basis, R = np.linalg.qr(powers)
    return np.asarray(basis * np.sign(np.where(np.diagonal(R) == 0, 1.0, np.diagonal(R))))
