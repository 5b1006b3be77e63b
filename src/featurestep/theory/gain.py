"""Y = (I + S)⁻¹ and what goes with it (eq. 9), in three ways that give the same numbers.

S = √D V̂1 √D comes as S = CᵀC with C the scaled directions, one row a node. In these terms
V1 = d·√D Y √D and ρ_g²Λ_gg V2_g = d·(SY)_gg.
"""

from __future__ import annotations

import numpy as np

from ..types import FloatArray

Gain = tuple[FloatArray, FloatArray, FloatArray]


def gain_by_lu(scaled: FloatArray, direction: FloatArray) -> Gain:
    """Y = (I + S)⁻¹, S Y and bY by one factorisation.

    Solving for bY instead of multiplying by Y keeps b·bY accurate when S is large along b.
    """
    k = scaled.shape[-1]
    s = np.matmul(scaled.transpose(0, 2, 1), scaled)
    if k == 1:
        gain = 1.0 / (1.0 + s)
        return gain, s * gain, direction * gain
    unit = np.eye(k)
    right = np.concatenate([s, direction.transpose(0, 2, 1)], axis=2)
    solved = np.linalg.solve(s + unit, right)
    loss = solved[:, :, :k]
    return unit - loss, loss, solved[:, :, k:].transpose(0, 2, 1)


def gain_by_parity(scaled: FloatArray, direction: FloatArray) -> Gain:
    """The same for mirrored groups: S falls into two blocks, even and odd under g → −g.

    b(κ, g) = b(−κ, −g), so the even part of b in g is even in κ and the odd part odd.
    """
    size, q, k = scaled.shape
    if k < 6:
        return gain_by_lu(scaled, direction)
    rows, middle = q // 2, q % 2
    half = np.full(q - rows, np.sqrt(2.0))  # each node stands for its mirror image too
    half[:middle] = 1.0
    loss = np.zeros((size, k, k), dtype=scaled.dtype)
    mixed = np.zeros((size, q, k), dtype=scaled.dtype)
    for sign in (1.0, -1.0):
        even = _parity_part(scaled[:, rows:] * half[:, None], sign)
        s = np.matmul(even.transpose(0, 2, 1), even)
        part = _parity_part(direction[:, rows:], sign)
        right = np.concatenate([s, part.transpose(0, 2, 1)], axis=2)
        solved = np.linalg.solve(s + np.eye(s.shape[-1]), right)
        loss += _parity_spread(_parity_spread(solved[:, :, : s.shape[-1]], k, sign), k, sign, 1)
        upper = _parity_spread(solved[:, :, s.shape[-1] :].transpose(0, 2, 1), k, sign)
        mixed[:, rows:] += upper
        mixed[:, :rows] += (sign * upper[:, ::-1])[:, :rows]
    return np.eye(k) - loss, loss, mixed


def _parity_part(columns: FloatArray, sign: float) -> FloatArray:
    """Coordinates along (e_g ± e_−g)/√2, g > 0, and along e_0 in the even part."""
    k = columns.shape[2]
    half = k // 2
    upper, lower = columns[:, :, k - half :], columns[:, :, half - 1 :: -1]
    pairs = (upper + sign * lower) / np.sqrt(2.0)
    if k % 2 and sign > 0:
        return np.concatenate([columns[:, :, half : half + 1], pairs], axis=2)
    return np.asarray(pairs)


def _parity_spread(columns: FloatArray, k: int, sign: float, axis: int = 2) -> FloatArray:
    """Back from those coordinates to the groups, along one axis."""
    if axis == 1:
        spread = _parity_spread(columns.transpose(0, 2, 1), k, sign)
        return spread.transpose(0, 2, 1)
    half = k // 2
    out = np.zeros((*columns.shape[:2], k), dtype=columns.dtype)
    pairs = columns[:, :, columns.shape[2] - half :] / np.sqrt(2.0)
    out[:, :, k - half :] = pairs
    out[:, :, half - 1 :: -1] = sign * pairs
    if k % 2 and sign > 0:
        out[:, :, half] = columns[:, :, 0]
    return out


def gain_by_qr(scaled: FloatArray, direction: FloatArray) -> Gain:
    """The same from the triangular factor of [scaled; I]: errors grow with √‖S‖, not ‖S‖."""
    size, _, k = scaled.shape
    unit = np.broadcast_to(np.eye(k), (size, k, k))
    triangle = np.linalg.qr(np.concatenate([scaled, unit], axis=1), mode="r")
    inverse = np.linalg.solve(triangle, unit)  # Y = inverse inverseᵀ
    inverse_t = inverse.transpose(0, 2, 1)
    gain = np.matmul(inverse, inverse_t)
    loss = np.matmul(scaled.transpose(0, 2, 1), np.matmul(np.matmul(scaled, inverse), inverse_t))
    return gain, loss, np.matmul(np.matmul(direction, inverse), inverse_t)
