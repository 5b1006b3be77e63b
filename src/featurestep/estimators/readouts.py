"""The readout on given features for every ridge, ridge or logistic; its leave-one-out errors."""

from __future__ import annotations

import numpy as np

from ..core.types import FloatArray
from ..simulation import (
    Array,
    Backend,
    Features,
    fit_readout,
    make_backend,
    ridge_readouts,
    smaller_gram,
    sum_of_squares,
)

LOSSES = ("square", "logistic")
Readouts = list[tuple[FloatArray, FloatArray]]  # (N, outputs) and intercepts (outputs,), by ridge


def centred(
    backend: Backend, F: Array, Y: FloatArray, w: FloatArray, *, intercept: bool
) -> tuple[Array, FloatArray, Array, FloatArray]:
    """√w(F − F̄) and √w(Y − Ȳ) with weighted means, and the means; F is used up.

    Least squares on these is weighted least squares with an unpenalised intercept.
    """
    even = bool(np.all(w == 1.0))
    column = backend.put(w[:, None])
    mean, offset = 0.0, np.zeros(Y.shape[1])
    if intercept:
        mean = F.mean(0) if even else (F * column).sum(0) / float(w.sum())
        offset = np.asarray(w @ Y / w.sum())
        F -= mean
    if not even:
        F *= column**0.5
    return F, np.sqrt(w)[:, None] * (Y - offset), mean, offset


def mean_eigenvalue(F: Array) -> float:
    """Of the smaller Gram matrix over n: the scale of a ridge; 1 where all features vanish."""
    return sum_of_squares(F) / min(F.shape) / F.shape[0] or 1.0


def outputs(backend: Backend, F: Array, a_hat: FloatArray) -> FloatArray:
    """Fa, (n, outputs)."""
    return np.asarray(backend.get(backend.product(F, backend.put(a_hat.T))))


def readouts(
    backend: Backend,
    F: Array,
    Y: FloatArray,
    w: FloatArray,
    multiples: FloatArray,
    *,
    scale: float | None,
    loss: str,
    intercept: bool,
) -> tuple[Readouts, float]:
    """â and the intercept for ridges that are multiples of a scale, and the scale; F is used up.

    By default the scale is the features' mean eigenvalue.
    """
    if loss == "logistic":
        return _logistic(backend, F, Y, w, multiples, scale, intercept)
    F, labels, mean, offset = centred(backend, F, Y, w, intercept=intercept)
    scale = mean_eigenvalue(F) if scale is None else scale
    found = []
    ridges = [float(ridge) for ridge in scale * multiples]
    for solved in ridge_readouts(backend, F, backend.put(labels), ridges):
        a_hat = backend.get(solved)
        shift = backend.get(mean) @ a_hat if intercept else 0.0
        found.append((a_hat, np.asarray(offset - shift)))
    return found, scale


def _logistic(
    backend: Backend,
    F: Array,
    Y: FloatArray,
    w: FloatArray,
    multiples: FloatArray,
    scale: float | None,
    intercept: bool,
) -> tuple[Readouts, float]:
    """One class against the others for each output, from the largest ridge to the smallest."""
    wide = make_backend("cpu", "float64")  # Newton's method needs the digits
    F = np.asarray(backend.get(F), dtype=np.float64)
    n, N = F.shape
    if scale is None:
        mean = w @ F / w.sum()
        scale = float(w @ ((F - mean) ** 2).sum(axis=1)) / min(n, N) / n or 1.0
    features = Features(wide, F, by_samples=n <= N)
    shape = (len(multiples), N, Y.shape[1])
    a_hat, offset = np.zeros(shape), np.zeros((shape[0], shape[2]))
    for k, y in enumerate(np.where(Y > 0, 1.0, -1.0).T):
        if abs(y.sum()) == n:  # one class alone: no finite intercept
            offset[:, k] = y[0] * np.log(2.0 * n + 1.0)
            continue
        fit = None
        for index in np.argsort(multiples)[::-1]:
            fit = fit_readout(
                features,
                y,
                loss="logistic",
                ridge=scale * float(multiples[index]),
                intercept=intercept,
                weights=w,
                start=fit,
            )
            a_hat[index, :, k], offset[index, k] = fit.a, fit.b
    return list(zip(a_hat, offset, strict=True)), scale


def held_out(
    backend: Backend,
    F: Array,
    Y: FloatArray,
    w: FloatArray,
    ridges: FloatArray,
    *,
    intercept: bool,
) -> FloatArray:
    """y_i − f_{−i}(x_i) for every ridge, row and output: (ridges, n, outputs).

    f_{−i} is fitted without row i, with the same penalty λn‖a‖² (and its own intercept): the
    residual over 1 − H_ii, H the map from labels to fitted values, in the eigenbasis of the
    smaller Gram matrix. F and Y are those of `centred`, for the weights w.
    """
    n, N = F.shape
    root = np.sqrt(w)
    constant = root / np.linalg.norm(root)  # what the intercept takes out of the space
    values, Q = backend.eigenbasis(smaller_gram(backend, F))
    values = np.maximum(backend.get(values), 0.0)  # rounding makes some < 0
    shifts = ridges[:, None] * n  # (ridges, 1)
    if n <= N:
        U = backend.get(Q)  # (n, n): of FFᵀ
        # The residual's own form, λn(FFᵀ + λn)⁻¹: nothing cancels when λ is small.
        weights = shifts / (values + shifts)  # (ridges, n)
        residual = _weighted(U, weights, Y)
        free = U - np.outer(constant, constant @ U) if intercept else U
        left = weights @ (free * free).T  # (ridges, n)
    else:
        U = backend.get(backend.product(F, backend.put(backend.get(Q).T)))  # FQ
        weights = 1.0 / (values + shifts)
        residual = Y - _weighted(U, weights, Y)
        left = 1.0 - weights @ (U * U).T - (constant**2 if intercept else 0.0)
    left = np.maximum(left, np.finfo(np.float64).tiny)
    return np.asarray(residual / (root * left)[..., None])


def _weighted(U: FloatArray, weights: FloatArray, Y: FloatArray) -> FloatArray:
    """U·diag(w)·UᵀY for every w, (ridges, n, outputs), in one product."""
    inside = U.T @ Y  # (rank, outputs)
    columns = weights.T[:, :, None] * inside[:, None, :]  # (rank, ridges, outputs)
    found = U @ columns.reshape(len(inside), -1)
    return np.moveaxis(found.reshape(len(U), len(weights), -1), 1, 0)
