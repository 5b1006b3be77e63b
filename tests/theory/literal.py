"""Section 3 transcribed letter by letter, one problem, damped iteration: slow and independent.

It shares the conditional moments with the package and nothing else: no scaling, no folding, no
Newton, no response matrix. P and Q come from (15) by differentiating the weight side numerically
by complex steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.theory.roads import Arrays


@dataclass
class Literal:
    test_error: float
    train_loss: float
    train_mse: float
    norm_squared: float
    v2: np.ndarray


class Equations:
    """The arrays of one problem, and equations (7) to (15) as they stand."""

    def __init__(self, arrays: Arrays) -> None:
        self.n, self.d, self.lam = arrays.n, arrays.d, arrays.ridge
        self.w, self.kappa = arrays.weight, arrays.kappa
        self.rho, self.N = arrays.norm, arrays.neurons
        self.m, self.nu2, self.mu = arrays.mean, arrays.spread, arrays.slope
        self.y0, self.y1 = arrays.y0, arrays.y1
        self.y2 = arrays.rest + self.y0**2 + self.y1**2
        self.lean, self.gamma = arrays.overlap, arrays.alignment
        self.q = np.sqrt(1 - self.gamma**2)

    def expect(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(self.w, values, axes=(0, 0))

    def chi(self, V1: np.ndarray, V2: np.ndarray) -> np.ndarray:
        return np.einsum("qg,qh,gh->q", self.mu, self.mu, V1) + self.nu2 @ V2  # (7)

    def information(self, chi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs = self.mu[:, :, None] * self.mu[:, None, :]
        V1_hat = self.n * self.expect(pairs / (1 + chi)[:, None, None])  # (8)
        return V1_hat, self.n * self.expect(self.nu2 / (1 + chi)[:, None])

    def weight_side(self, t: np.ndarray, V1_hat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """V2 and X as functions of (t, V̂1): iterate (9)–(10)."""
        eye = np.eye(len(self.N))
        V2 = (self.N / t).astype(t.dtype)
        for _ in range(4000):
            D = np.diag(self.rho**2 * V2 / self.d)
            Lam = np.linalg.solve(eye + V1_hat @ D, V1_hat)
            new = self.N / (t + self.rho**2 * np.diagonal(Lam))  # (10)
            if np.max(np.abs(new - V2) / np.abs(V2)) < 1e-15:
                break
            V2 = new
        D = np.diag(self.rho**2 * V2 / self.d)
        return V2, D @ np.linalg.inv(eye + V1_hat @ D)  # (9), X = V1/d

    def covariance(self, V2: np.ndarray, X: np.ndarray) -> np.ndarray:
        """C of (A, τ, ψ), with the correlation of the full residual (weights of norm 1)."""
        k, zero = len(V2), np.zeros_like(X)
        ratio = self.gamma / self.q
        with_a = -self.d * X * self.lean  # cov(τ, A)
        extra = (self.d**2 / V2) * self.lean**2
        dX = X @ np.diag(extra) @ X
        C = np.block(
            [
                [np.diag(V2), with_a.T, -ratio * with_a.T],
                [with_a, X + dX, -ratio * dX],
                [-ratio * with_a, -ratio * dX, X + ratio**2 * dX],
            ]
        )
        return (
            C
            if np.any(self.lean)
            else np.block([[np.diag(V2), zero, zero], [zero, X, zero], [zero, zero, X]]).reshape(
                3 * k, 3 * k
            )
        )

    def fixed_point(self) -> tuple[np.ndarray, np.ndarray]:
        V2 = self.N / (self.lam * self.n)
        V1 = np.diag(self.rho**2 * V2)
        for _ in range(20000):
            V1_hat, V2_hat = self.information(self.chi(V1, V2))
            new_V2, X = self.weight_side(self.lam * self.n + V2_hat, V1_hat)
            change = np.max(np.abs(new_V2 / V2 - 1))
            V2, V1 = 0.5 * (V2 + new_V2), 0.5 * (V1 + self.d * X)
            if change < 1e-14:
                break
        return V1, V2


def solve_literally(arrays: Arrays) -> Literal:
    eq = Equations(arrays)
    k = len(eq.N)
    V1, V2 = eq.fixed_point()
    chi = eq.chi(V1, V2)
    V1_hat, V2_hat = eq.information(chi)
    t = eq.lam * eq.n + V2_hat
    C = eq.covariance(V2, V1 / eq.d)
    zero = np.zeros((k, k))
    penalty = np.linalg.inv(C) - np.block(
        [[zero, zero, zero], [zero, V1_hat, zero], [zero, zero, V1_hat]]
    )
    along = np.concatenate([eq.m, eq.kappa[:, None] * eq.mu, np.zeros_like(eq.mu)], axis=1)
    across = np.concatenate([np.zeros_like(eq.m), np.zeros_like(eq.mu), eq.mu], axis=1)
    weight = eq.n * eq.w / (1 + chi)
    matrix = along.T @ (weight[:, None] * along) + across.T @ (weight[:, None] * across) + penalty
    right = along.T @ (weight * eq.y0) + across.T @ (weight * eq.y1)
    x = np.linalg.solve(matrix, right)  # (11)
    A, tau, psi = x[:k], x[k : 2 * k], x[2 * k :]
    M, S = along @ x, across @ x
    E0 = eq.y2 - 2 * M * eq.y0 + M**2 - 2 * S * eq.y1 + S**2  # (12)
    x_hat = np.linalg.solve(C, x)
    P, Q = _learned_squares(eq, t, V1_hat, x_hat, tau, psi, chi, E0)
    v = np.einsum("qg,qh,gh->q", eq.mu, eq.mu, Q) + eq.nu2 @ P  # (13)
    mse = float(eq.expect((E0 + v) / (1 + chi) ** 2))  # (14)
    assert A.shape == (k,)
    return Literal(
        test_error=float(eq.expect(E0 + v)),
        train_loss=mse + eq.lam * float(P.sum()),
        train_mse=mse,
        norm_squared=float(P.sum()),
        v2=V2,
    )


def _learned_squares(
    eq: Equations,
    t: np.ndarray,
    V1_hat: np.ndarray,
    x_hat: np.ndarray,
    tau: np.ndarray,
    psi: np.ndarray,
    chi: np.ndarray,
    E0: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve (13) and (15) for P, Q: the map v ↦ (P, Q) ↦ v is affine."""
    k = len(t)
    step = 1e-20

    def free(t_: np.ndarray, V_: np.ndarray, q1: np.ndarray, q2: np.ndarray) -> complex:
        V2, X = eq.weight_side(t_, V_)
        return V2 @ q2 + eq.d * np.sum(q1 * X) + x_hat @ eq.covariance(V2, X) @ x_hat

    def derivative(q1: np.ndarray, q2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        P, Q = np.zeros(k), np.zeros((k, k))
        for g in range(k):
            moved = t.astype(complex)
            moved[g] += 1j * step
            P[g] = -free(moved, V1_hat.astype(complex), q1, q2).imag / step
            for h in range(k):
                bent = V1_hat.astype(complex)
                bent[g, h] += 0.5j * step
                bent[h, g] += 0.5j * step
                Q[g, h] = -free(t.astype(complex), bent, q1, q2).imag / step
        return P, Q - np.outer(tau, tau) - np.outer(psi, psi)

    def response(e: np.ndarray) -> np.ndarray:
        scaled = e / (1 + chi) ** 2
        pairs = eq.mu[:, :, None] * eq.mu[:, None, :]
        q1 = eq.n * eq.expect(pairs * scaled[:, None, None])
        q2 = eq.n * eq.expect(eq.nu2 * scaled[:, None])
        P, Q = derivative(q1, q2)
        return np.concatenate([P, Q.ravel()])

    base = response(E0)
    features = np.concatenate(
        [eq.nu2, (eq.mu[:, :, None] * eq.mu[:, None, :]).reshape(len(chi), -1)], axis=1
    )
    columns = np.stack(
        [response(E0 + features[:, j]) - base for j in range(features.shape[1])], axis=1
    )
    solution = np.linalg.solve(np.eye(len(base)) - columns, base)
    return solution[:k], solution[k:].reshape(k, k)
