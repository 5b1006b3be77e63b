"""The shape of the inputs' cloud: clusters, a covariance, and its eigenvectors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...errors import InvalidProblem
from ...types import FloatArray

_MIXTURE = re.compile(r"mixture\(\s*(?:([0-9]+)\s*,\s*)?([0-9.eE+-]+)\s*\)")
_NEGATIVE = 1e-10  # of the largest eigenvalue, that rounding may leave below 0


def parse_mixture(inputs: str) -> tuple[int, float] | None:
    """Clusters and separation behind `mixture(K, s)` or `mixture(s)`; None for another law."""
    match = _MIXTURE.fullmatch(inputs.strip())
    if match is None:
        return None
    rule = "mixture needs K >= 2 clusters and a finite separation >= 0"
    try:
        clusters, separation = int(match.group(1) or 2), float(match.group(2))
    except ValueError:
        raise InvalidProblem("inputs", rule, inputs) from None
    if clusters < 2 or not 0 <= separation < np.inf:
        raise InvalidProblem("inputs", rule, inputs)
    return clusters, separation


def corners(clusters: int, separation: float) -> FloatArray:
    """Centres (K, K − 1): a regular simplex of radius s around 0."""
    ranks = np.arange(1, clusters)
    helmert = np.tril(np.ones((clusters - 1, clusters)), 0)
    helmert[ranks - 1, ranks] = -ranks
    helmert /= np.sqrt(ranks * (ranks + 1.0))[:, None]  # orthonormal rows that sum to 0
    return np.asarray(helmert.T * separation * (clusters / (clusters - 1.0)) ** 0.5)


def borders(clusters: int) -> FloatArray:
    """Quantiles of a normal number that cut its law into equal parts, (K + 1,)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.linspace(0.0, 1.0, clusters + 1)))


def checked_covariance(covariance: Any) -> FloatArray:
    """A symmetric matrix without negative eigenvalues, or InvalidProblem."""
    rule = "must be a symmetric matrix (d, d) of finite numbers"
    try:
        matrix = np.array(covariance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidProblem("covariance", rule, covariance) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InvalidProblem("covariance", rule, matrix.shape)
    if not np.all(np.isfinite(matrix)) or not np.allclose(matrix, matrix.T):
        raise InvalidProblem("covariance", rule, "a matrix that is not")
    matrix.setflags(write=False)
    return matrix


def eigenpairs(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, descending, and eigenvectors as rows; InvalidProblem if one is negative."""
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < -_NEGATIVE * max(values[-1], 0.0) or values[-1] <= 0:
        rule = "must have eigenvalues >= 0, not all 0"
        raise InvalidProblem("covariance", rule, float(values[0]))
    return np.maximum(values, 0.0)[::-1], np.ascontiguousarray(vectors.T[::-1])
