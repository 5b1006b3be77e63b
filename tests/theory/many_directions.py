"""Equation (53): several directions and n_step/d → ∞, as it stands.

Nothing is shared with the exact weights but the activation's own moments: one field p_{g,k} for
each direction, seen through F_g, and averages over the directions by a product rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featurestep import Problem
from featurestep.functions.nonlinearity import coefficients
from tests.theory.roads import Literal, Numbers

NODES = {2: 151, 3: 41}
REACH = 8.5


class ManyDirections(Literal):
    """The isotropic engine with the columns of (53) for g(z), z in the directions as given."""

    def __init__(self, problem: Problem, g: Callable[[np.ndarray], np.ndarray], r: int) -> None:
        x = np.linspace(-REACH, REACH, NODES[r])
        w = np.exp(-0.5 * x * x)
        z = np.stack(np.meshgrid(*[x] * r, indexing="ij"), -1).reshape(-1, r)
        weight = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * r, indexing="ij"), -1), -1).ravel()
        linear = (weight * g(z)) @ z
        size = float(np.linalg.norm(linear))
        turn = np.linalg.svd(linear[None])[2]  # rows: C first
        turn[0] = linear / size

        def framed(points: np.ndarray) -> np.ndarray:
            return g(points @ turn)

        values = framed(z)
        mean = float(weight @ values)
        second = z.T @ ((weight * values)[:, None] * z) - mean * np.eye(r)  # M2
        c = coefficients(problem.sigma, 3)
        values_g, share = np.array(problem.law.values), np.array(problem.law.probabilities)
        e = problem.step_size / np.sqrt(problem.width) * values_g
        kept = 1.0 + 2.0 * c[2] * e * mean
        self.n, self.d, self.ridge = float(problem.n), float(problem.d), problem.ridge
        self.kappa = np.linspace(-8.5, 8.5, 241)
        self.weight = np.exp(-0.5 * self.kappa**2)
        self.weight /= self.weight.sum()
        self.rho, self.neurons = np.abs(kept), problem.width * share
        place = c[1] * e * size * self.kappa[:, None]
        self.mean, self.mu, self.nu2 = problem.sigma.moments(self.rho, place)
        bend = 0.5 * problem.sigma.derivative_means(self.rho, place, 2)[2]  # m′
        self._labels(framed, z, weight, r, problem.noise_std)
        self.plain = [self.mean]
        self.beside = [[np.zeros_like(self.mean)] for _ in range(r - 1)]
        gain = kept[:, None, None] * np.eye(r) + (2.0 * c[2] * e)[:, None, None] * second  # F_g
        for k in range(r):
            column = self.mu * self.kappa[:, None] * gain[:, 0, k]
            if k == 0:
                column = column + 12.0 * e * c[3] * size * kept * bend
            self.plain.append(column)
            for i in range(1, r):
                self.beside[i - 1].append(self.mu * gain[:, i, k])

    def _labels(
        self,
        g: Callable[[np.ndarray], np.ndarray],
        z: np.ndarray,
        weight: np.ndarray,
        r: int,
        noise: float,
    ) -> None:
        """y_0, y_1i for i ≥ 2 and E y², given κ = z_1."""
        rest, index = np.unique(z[:, 1:], axis=0, return_inverse=True)
        share = np.bincount(index.ravel(), weight)
        points = np.empty((self.kappa.size, len(rest), r))
        points[:, :, 0], points[:, :, 1:] = self.kappa[:, None], rest
        y = g(points.reshape(-1, r)).reshape(points.shape[:2])
        self.y0, self.square = y @ share, (y * y) @ share + noise**2
        self.y_beside = [y @ (share * rest[:, i]) for i in range(r - 1)]

    def train_loss(self, ridge: complex, source: np.ndarray) -> complex:
        v2, chi = self.resolvent(ridge, source)
        mass = self.weight * (1.0 / (1.0 + chi) + source)
        plain = np.concatenate(self.plain, axis=1)
        variance = np.concatenate([v2, *[v2 / self.d] * (len(self.plain) - 1)])
        matrix = self.n * plain.T @ (mass[:, None] * plain) + np.diag(1.0 / variance)
        right = self.n * plain.T @ (mass * self.y0)
        for parts, y in zip(self.beside, self.y_beside, strict=True):
            columns = np.concatenate(parts, axis=1)
            matrix = matrix + self.n * columns.T @ (mass[:, None] * columns)
            right = right + self.n * columns.T @ (mass * y)
        loss = mass @ self.square - right @ np.linalg.solve(matrix, right) / self.n
        return complex(loss)


def many_samples(problem: Problem, g: Callable[[np.ndarray], np.ndarray], r: int) -> Numbers:
    """Errors and norm for n_step/d → ∞, without terms of order 1/d."""
    return ManyDirections(problem, g, r).numbers()
