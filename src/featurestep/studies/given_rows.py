"""Rows of a study's own: real images; one step and a ridge readout by the simulation's parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem, install_command
from ..core.problem import Problem
from ..core.types import FloatArray
from ..simulation import NetworkOnRows, make_backend, ridge_readouts, sum_of_squares

RIDGES = tuple(10.0 ** np.arange(-5.0, 1.1, 0.5))  # times the mean eigenvalue over n


@dataclass(frozen=True)
class Layer:
    """A first layer after its step: W = W0 + ηG."""

    network: NetworkOnRows
    W: FloatArray  # (N, d)
    beta: FloatArray  # (d,)

    def features(self, X: FloatArray) -> FloatArray:
        """σ(XWᵀ), (n, N)."""
        return np.asarray(self.network.features_of(X, self.network.backend.put(self.W)))


def network_of(d: int, *, width: int, activation: str, seed: int) -> NetworkOnRows:
    """A centred network on d inputs with a Gaussian readout at the start."""
    problem = Problem(
        activation=activation, n=1, d=d, width=width, step_size=0.0, ridge=1.0, centre=True
    )
    return NetworkOnRows(problem, make_backend("cpu", "float64"), seed=seed, outputs=1)


def stepped(network: NetworkOnRows, X: FloatArray, y: FloatArray, *, size: float) -> Layer:
    """After one step on these rows, with the labels as residual.

    `size` is that of the change of the pre-activations in units of themselves; 0 is no step.
    """
    step = network.step(network.W0, X, y[:, None])
    before = sum_of_squares(network.project(X, network.W0))
    change = sum_of_squares(network.project(X, step.G))
    eta = size * float(np.sqrt(before / change))
    return Layer(network, np.asarray(network.W0 + eta * step.G), step.beta[0])


@dataclass(frozen=True)
class BestReadout:
    """The fitted readout with the smallest error on the test rows."""

    error: float  # mean square of what is missed there
    a_hat: FloatArray  # (N,)
    offset: float
    guess: FloatArray  # of the test rows


def best_readout(
    train: tuple[FloatArray, FloatArray], test: tuple[FloatArray, FloatArray]
) -> BestReadout:
    """Ridge regression with a free intercept; the best of several ridges, on the test rows.

    Every model of a study has its best ridge, so that none wins by the choice of it.
    """
    backend = make_backend("cpu", "float64")
    F, y = train
    mean, offset = F.mean(axis=0), float(y.mean())
    centred = np.ascontiguousarray(F - mean)
    scale = sum_of_squares(centred) / min(F.shape) / len(F)
    labels = backend.put((y - offset)[:, None])
    found = []
    for a in ridge_readouts(backend, centred, labels, [r * scale for r in RIDGES]):
        a_hat = np.asarray(a[:, 0])
        guess = (test[0] - mean) @ a_hat + offset
        error = float(np.mean((guess - test[1]) ** 2))
        found.append(BestReadout(error, a_hat, offset - float(mean @ a_hat), guess))
    return min(found, key=lambda one: one.error)


def left_vectors(F: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The largest singular values of centred features over √n, and their left vectors as rows."""
    centred = F - F.mean(axis=0)
    gram = centred.T @ centred / len(F)
    values, Q = np.linalg.eigh(gram)
    left = (centred @ Q[:, ::-1][:, :count]).T
    return np.sqrt(values[::-1][:count]), left / np.linalg.norm(left, axis=1, keepdims=True)


def overlap(vector: FloatArray, function: FloatArray) -> float:
    """Squared cosine with a function's values, less their mean."""
    centred = function - function.mean()
    return float((vector @ centred) ** 2 / (vector @ vector) / (centred @ centred))


def digits(study: str) -> tuple[FloatArray, Any]:
    """Pixels (1797, 64) and classes; without scikit-learn the study is refused in one line."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        rule = f"needs scikit-learn: {install_command('sklearn')}"
        raise InvalidProblem("NAME", rule, study) from None
    X, y = load_digits(return_X_y=True)
    return np.asarray(X, dtype=np.float64), y
