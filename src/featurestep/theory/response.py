"""The linear response of the fixed point: one matrix serves Newton's method and the errors.

Write (7)–(10) as a map of the pair (V2, χ) into itself. Its linearisation at a point, in relative
changes p_g = δV2_g/V2_g and changes x_q = δχ(κ_q), is

    x_q − (n/d) Σ_p G_qp² w_p h_p² x_p − Σ_g R_qg p_g = r_q
    a_g p_g − d Σ_h (SY)_gh² p_h − n Σ_q w_q h_q² R_qg x_q = s_g

with h = 1/(1+χ), S = √D V̂1 √D, Y = (I + S)⁻¹, b_g = ρ_gμ_g√V2_g, U = bY, G = bYbᵀ and
R = ν²V2 + U². At the solution a_g = N_g and the same equations with (r, s) = (E0, source) give the
error E0 + v and P (eqs. 13–15). For few groups the nodes are eliminated first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..quadrature import FloatArray
from .batch import Batch, IntArray
from .gain import gain_by_lu, gain_by_parity, gain_by_qr


@dataclass(frozen=True)
class Point:
    """A point (V2, χ) with everything the map and its response need there."""

    batch: Batch
    v2: FloatArray  # (B, K) V2_g = tr over group g of (FᵀF + λn)⁻¹
    chi: FloatArray  # (B, Q)
    shrink: FloatArray  # (B, Q) h = 1/(1 + χ)
    direction: FloatArray  # (B, Q, K) b = ρμ√V2
    gain: FloatArray  # (B, K, K) Y = (I + S)⁻¹
    loss: FloatArray  # (B, K, K) S Y = I − Y
    mixed: FloatArray  # (B, Q, K) U = bY
    noise: FloatArray  # (B, Q, K) ν²V2
    demand: FloatArray  # (B, K) V2_g·(t_g + ρ_g²Λ_gg), N_g at the solution
    mapped_chi: FloatArray  # (B, Q) χ of eq. (7) for this V2 and h

    @property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        weights = np.abs(self.batch.neurons / self.demand - 1.0).max(axis=1)
        nodes = (np.abs(self.mapped_chi - self.chi) * self.shrink).max(axis=1)
        return np.asarray(np.maximum(weights, nodes))


def evaluate(batch: Batch, v2: FloatArray, chi: FloatArray, *, careful: bool = False) -> Point:
    """Equations (7)–(10) at one point; `careful` pays for a QR factorisation instead of S."""
    direction = batch.linear * np.sqrt(v2)[:, None, :]
    noise = batch.spread * v2[:, None, :]
    shrink = 1.0 / (1.0 + chi)
    mass = batch.n[:, None] * batch.weight * shrink  # (B, Q)
    method = gain_by_qr if careful else gain_by_parity if batch.mirrored else gain_by_lu
    gain, loss, mixed = method(linear_information(batch, direction, mass), direction)
    return Point(
        batch=batch,
        v2=v2,
        chi=chi,
        shrink=shrink,
        direction=direction,
        gain=gain,
        loss=loss,
        mixed=mixed,
        noise=noise,
        demand=demand(batch, v2, noise_information(noise, mass), loss),
        mapped_chi=fluctuation(mixed, direction, noise),
    )


def fluctuation(mixed: FloatArray, direction: FloatArray, noise: FloatArray) -> FloatArray:
    """χ(κ) = Σ μ_gμ_h V1_gh + Σ ν_g² V2_g (eq. 7)."""
    linear = np.maximum((mixed * direction).sum(axis=2), 0.0)
    return np.asarray(linear + noise.sum(axis=2))


def linear_information(batch: Batch, direction: FloatArray, mass: FloatArray) -> FloatArray:
    """C with CᵀC = √D V̂1 √D, V̂1_gh = n E[μ_gμ_h/(1+χ)] (eq. 8)."""
    return direction * np.sqrt(mass / batch.d[:, None])[:, :, None]


def noise_information(noise: FloatArray, mass: FloatArray) -> FloatArray:
    """V2_g V̂2_g, V̂2_g = n E[ν_g²/(1+χ)] (eq. 8)."""
    return np.asarray(np.matmul(mass[:, None, :], noise)[:, 0, :])


def demand(batch: Batch, v2: FloatArray, noise_part: FloatArray, loss: FloatArray) -> FloatArray:
    """V2_g times the denominator of (10): N_g at the solution."""
    ridge_part = (batch.n * batch.ridge)[:, None] * v2
    linear_part = batch.d[:, None] * np.diagonal(loss, axis1=1, axis2=2)
    return np.asarray(ridge_part + noise_part + linear_part)


def respond(
    point: Point, r: FloatArray, s: FloatArray, *, newton: bool
) -> tuple[FloatArray, FloatArray]:
    """Solve the response equations for x (B, Q) and p (B, K).

    `newton` keeps the diagonal of the map's own linearisation, (demand)²/N; without it the
    diagonal is N, as at the solution.
    """
    batch = point.batch
    k, q = batch.g.size, batch.kappa.size
    diagonal = point.demand**2 / batch.neurons if newton else batch.neurons
    if k * (k + 1) // 2 + k < 0.8 * (q + k) * (0.6 if batch.mirrored else 1.0):
        return _respond_by_pairs(point, r, s, diagonal)
    return _respond_by_nodes(point, r, s, diagonal)


def _respond_by_nodes(
    point: Point, r: FloatArray, s: FloatArray, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Dense solve in (x, p); with mirrored groups, in their parts even under (g, κ) → −(g, κ).

    Everything the solution is used for is even: χ and V2 are, and errors are averages over κ.
    """
    batch = point.batch
    q, k = batch.kappa.size, batch.g.size
    first_q, first_k = (q // 2, k // 2) if batch.mirrored else (0, 0)
    mass = batch.n[:, None] * batch.weight * point.shrink**2  # (B, Q)
    reach = point.noise + point.mixed**2  # R, (B, Q, K)
    mixed = point.mixed[:, first_q:]
    kernel = np.matmul(mixed, point.direction.transpose(0, 2, 1))  # G, (B, half Q, Q)
    np.square(kernel, out=kernel)
    kernel *= (mass / batch.d[:, None])[:, None, :]
    felt = (reach * mass[:, :, None])[:, :, first_k:].transpose(0, 2, 1)
    felt = felt / batch.neurons[:, first_k:, None]
    loss = point.loss[:, first_k:] ** 2 * (batch.d[:, None] / batch.neurons[:, first_k:])[..., None]
    fold = _fold if batch.mirrored else _unfolded
    top = np.concatenate([fold(kernel), fold(reach[:, first_q:])], axis=2)
    bottom = np.concatenate([fold(felt), fold(loss)], axis=2)
    matrix = np.concatenate([top, bottom], axis=1)
    np.negative(matrix, out=matrix)
    half_q, half_k = q - first_q, k - first_k
    index = np.arange(half_q)
    matrix[:, index, index] += 1.0
    index = np.arange(half_q, half_q + half_k)
    matrix[:, index, index] += (diagonal / batch.neurons)[:, first_k:]
    if batch.mirrored:
        r, s = 0.5 * (r + r[:, ::-1]), 0.5 * (s + s[:, ::-1])
    right = np.concatenate([r, s / batch.neurons], axis=1)
    right = np.concatenate([right[:, first_q:q], right[:, q + first_k :]], axis=1)
    solution = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    x, p = solution[:, :half_q], solution[:, half_q:]
    if batch.mirrored:
        x = np.concatenate([x[:, ::-1][:, :first_q], x], axis=1)
        p = np.concatenate([p[:, ::-1][:, :first_k], p], axis=1)
    return x, p


def _unfolded(columns: FloatArray) -> FloatArray:
    return columns


def _fold(columns: FloatArray) -> FloatArray:
    """Add to each column of the upper half its mirror image; a middle column is its own."""
    size = columns.shape[2]
    half = size // 2
    folded = columns[:, :, half:].copy()
    folded[:, :, size - 2 * half :] += columns[:, :, half - 1 :: -1] if half else 0.0
    return folded


@lru_cache(maxsize=64)
def _pairs(k: int) -> tuple[IntArray, IntArray, FloatArray]:
    rows, columns = np.triu_indices(k)
    return rows, columns, np.where(rows == columns, 1.0, 2.0)


def _respond_by_pairs(
    point: Point, r: FloatArray, s: FloatArray, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same equations in the unknowns δ(Y-like matrix), p: x = r + Σ b_g b_h Ξ_gh + ν²V2 p."""
    batch = point.batch
    k = batch.g.size
    rows, columns, multiplicity = _pairs(k)
    count = rows.size
    mass = batch.n[:, None] * batch.weight * point.shrink**2  # (B, Q)
    seen = np.concatenate(
        [point.direction[:, :, rows] * point.direction[:, :, columns] * multiplicity, point.noise],
        axis=2,
    )  # how (Ξ, p) enters χ
    felt = np.concatenate(
        [
            point.mixed[:, :, rows] * point.mixed[:, :, columns] / batch.d[:, None, None],
            (point.noise + point.mixed**2) / batch.neurons[:, None, :],
        ],
        axis=2,
    )  # how χ enters (Ξ, p)
    felt *= mass[:, :, None]
    felt_t = felt.transpose(0, 2, 1)
    matrix = -np.matmul(felt_t, seen)
    matrix[:, :count, count:] -= point.gain[:, rows, :] * point.gain[:, columns, :]
    matrix[:, count:, count:] -= (batch.d[:, None] / batch.neurons)[:, :, None] * point.loss**2
    index = np.arange(count)
    matrix[:, index, index] += 1.0
    index = np.arange(count, count + k)
    matrix[:, index, index] += diagonal / batch.neurons
    right = np.matmul(felt_t, r[:, :, None])[:, :, 0]
    right[:, count:] += s / batch.neurons
    solution = _solve(matrix, right)
    x = r + np.matmul(seen, solution[:, :, None])[:, :, 0]
    return x, solution[:, count:]


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    if matrix.shape[-1] == 2:  # by hand: the constant law is the fast path
        (a, b), (c, d) = (matrix[:, 0, 0], matrix[:, 0, 1]), (matrix[:, 1, 0], matrix[:, 1, 1])
        determinant = a * d - b * c
        first = (d * right[:, 0] - b * right[:, 1]) / determinant
        return np.stack([first, (a * right[:, 1] - c * right[:, 0]) / determinant], axis=1)
    return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])
