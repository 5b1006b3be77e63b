"""What happens to the columns before the network sees them: centred, scaled, whitened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.types import FloatArray

_RANK = 1e-10  # variances below this share of the largest are directions without data


@dataclass(frozen=True)
class InputMap:
    """x ↦ ((x − mean)/scale) · basis: the network's inputs, in the dtype of x."""

    mean: FloatArray  # (columns,)
    scale: FloatArray  # (columns,)
    basis: FloatArray | None  # (columns, d), or None for the columns themselves

    @property
    def d(self) -> int:
        """How many inputs the network has."""
        return len(self.mean) if self.basis is None else self.basis.shape[1]

    def __call__(self, X: Any) -> Any:
        Z = X - self.mean.astype(X.dtype)
        Z /= self.scale.astype(X.dtype)
        return Z if self.basis is None else Z @ self.basis.astype(X.dtype)

    def on_columns(self, directions: FloatArray) -> FloatArray:
        """Directions (…, d) of network inputs as directions of the scaled columns."""
        return directions if self.basis is None else directions @ self.basis.T


def input_map(X: Any, w: FloatArray, *, standardise: bool, whiten: bool) -> InputMap:
    """The map that these rows ask for, with weights w (n,) of mean 1.

    A column without variance keeps the scale 1, so that it is 0 throughout. Whitening leaves out
    directions in which the rows do not vary.
    """
    columns = X.shape[1]
    mean, scale = np.zeros(columns), np.ones(columns)
    if standardise or whiten:
        mean = np.asarray(np.average(np.asarray(X, dtype=np.float64), axis=0, weights=w))
    if standardise:
        squares = (np.asarray(X, dtype=np.float64) - mean) ** 2
        scale = np.sqrt(np.average(squares, axis=0, weights=w))
        # A constant column can have a deviation of rounding errors.
        scale[scale <= 10 * np.finfo(X.dtype).eps * np.abs(mean)] = 1.0
    basis = _whitener(np.asarray(X, dtype=np.float64), w, mean, scale) if whiten else None
    return InputMap(mean, scale, basis)


def _whitener(X: FloatArray, w: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Principal directions over their standard deviations."""
    Z = (X - mean) / scale
    values, vectors = np.linalg.eigh((w[:, None] * Z).T @ Z / len(Z))
    kept = values > _RANK * max(float(values[-1]), np.finfo(np.float64).tiny)
    if not kept.any():
        return np.eye(X.shape[1])[:, :1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))
