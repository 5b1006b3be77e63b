"""The experiment written a second time, plainly: whole matrices, no sharing, explicit inverses.

It takes from the package only the drawn numbers, σ and σ⋆, and the published scalars of eq. 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featurestep import Setting
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import coefficients
from featurestep.simulation import Draw, Source, Streams, make_backend


@dataclass
class Dense:
    test_error: float
    train_loss: float
    train_mse: float
    readout_norm: float


def draw_of(problem, setting=None, *, seed=0, n_test=150, streams=None):
    backend = make_backend("cpu", "float64")
    source = Source([Streams(seed, streams or {})], backend)
    return Draw(problem, setting or Setting(), source, n_test)


def whole(draw, sample):
    """X, clean labels and unit noise of a sample, in one piece."""
    parts = [(b.X.copy(), b.clean, b.noise) for b in draw.blocks(sample, 10**6)]  # X is reused
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def gradient(problem, W, a, X0, y0):
    """G by a loop over samples: the sum of r_i σ′(w_j·x_i) a_j x_i over i, over n0."""
    G = np.zeros_like(W)
    for x, y in zip(X0, y0, strict=True):
        r = y - (a @ problem.sigma(W @ x) if problem.residual == "full" else 0.0)
        G += np.outer(a * problem.sigma.derivative(W @ x) * r, x) / len(X0)
    return G


def normals(draw, stream, part, rows, columns):
    """Rows of a stream as they are drawn, before anything is made of them."""
    Z = np.empty((rows, columns))
    draw.streams.rows(stream, part, 0, Z, lambda g, out: g.standard_normal(out=out))
    return Z


def initial_weights(problem, draw):
    """W0: each row divided by its norm, or all of them by √d."""
    Z = normals(draw, "initialisation", 0, problem.width, problem.d)
    if problem.initial == "gaussian":
        return Z / np.sqrt(problem.d)
    return np.stack([row / np.linalg.norm(row) for row in Z])


def trained_weights(problem, draw):
    W = initial_weights(problem, draw)
    path = [W]
    for step, size in enumerate(problem.step_sizes):
        X0, clean, noise = whole(draw, draw.step_sample(step))
        y0 = clean + problem.noise_std * noise
        W = W + size * gradient(problem, W, draw.readout, X0, y0)
        path.append(W)
    return path


def beta_of(problem, draw):
    X0, clean, noise = whole(draw, draw.step_sample(0))
    r = clean + problem.noise_std * noise
    if problem.residual == "full":
        r = r - problem.sigma(X0 @ initial_weights(problem, draw).T) @ draw.readout
    return X0.T @ r / len(X0)


def features(problem, draw, variant, X, part):
    sigma, W0, a = problem.sigma, initial_weights(problem, draw), draw.readout
    c = coefficients(sigma, 20)
    if variant == "trained":
        return sigma(X @ trained_weights(problem, draw)[-1].T)
    eta = problem.step_size
    if variant == "srf":
        rho = spiked_weights(problem).norm(a * np.sqrt(problem.width))
        W = rho[:, None] * W0 + c[1] * eta * np.outer(a, beta_of(problem, draw))
        return sigma(X @ W.T)
    if variant.startswith("gaussian"):
        rest = np.sqrt(sigma.second_moment - c[0] ** 2 - c[1] ** 2)
        Z = normals(draw, "equivalent", part, len(X), problem.width)
        F = c[0] + c[1] * X @ W0.T + rest * Z
    else:
        F = sigma(X @ W0.T)
    if "spiked:" in variant:
        along = X @ beta_of(problem, draw)
        for k in range(1, int(variant.split(":")[1]) + 1):
            F = F + c[1] ** k * c[k] * eta**k * np.outer(along**k, a**k)
    return F


def dense(problem, draw, variant="trained"):
    n, lam = problem.n, problem.ridge
    X, clean, noise = whole(draw, draw.readout_sample(n))
    y = clean + problem.noise_std * noise
    F = features(problem, draw, variant, X, 0)
    a_hat = F.T @ np.linalg.inv(F @ F.T + lam * n * np.eye(n)) @ y
    X_test, clean_test, _ = whole(draw, draw.test_sample())
    predicted = features(problem, draw, variant, X_test, 1) @ a_hat
    mse = np.mean((y - F @ a_hat) ** 2)
    return Dense(
        test_error=np.mean((clean_test - predicted) ** 2) + problem.noise_std**2,
        train_loss=mse + lam * a_hat @ a_hat,
        train_mse=mse,
        readout_norm=np.linalg.norm(a_hat),
    )
