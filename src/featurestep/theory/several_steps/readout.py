"""What the readout's samples show of the weights after the last step, and the regression (180).

A fresh row has the coordinates ξ in the frame of the weights, and s. Fields are A (means),
τ_1 … τ_Q and ψ_1 … ψ_r (bulk directions along the frame) and Δ (norms), K of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..exact.columns import Columns
from ..exact.regression import misfit, solve_fields
from ..labels import Labels, pairs
from .batches import Frame
from .laws import Target, label_rule, target_at

_CHUNK = 1_000_000  # values of a target at a time


@dataclass(frozen=True)
class Readout:
    """Columns of the regression, labels and sample norms at nodes of ξ: one problem, B = 1."""

    n: float
    d: float
    ridge: float
    neurons: FloatArray  # (K,) N_g
    xi: FloatArray  # (X, Q)
    weight: FloatArray  # (X,)
    columns: Columns
    labels: Labels
    sample_norm: FloatArray  # (K, K) s_gh


def build_columns(
    sigma: Nonlinearity,
    frame: Frame,
    d: float,
    covariance: FloatArray,
    xi: FloatArray,
    initial: FloatArray | None = None,
) -> Columns:
    """Columns of all fields at ξ (X, Q); `covariance` is that of τ, ψ, Δ without readout (eq. 180).

    `initial` is what the norms of initial rows that are not normalised add to it.
    """
    size, axes = frame.norm2.size, frame.axes
    norm = np.sqrt(frame.norm2 + frame.left)
    mean, slope, second, spread = sigma.averages(norm, xi @ frame.shift.T, 2)  # (X, K)
    curvature = 0.5 * second
    r = frame.directions
    own = _by_group(covariance, size)  # (Q + r + 1, Q + r + 1, K)
    inner = np.einsum("xi,xk,ikg->xg", xi, xi, own[:axes, :axes])
    inner -= np.einsum("iig->g", own[:axes, :axes])
    bend = curvature / d
    fields = axes + r + 2
    plain = np.zeros((fields, *mean.shape))  # (fields, X, K)
    plain[0], plain[-1] = mean + bend * inner, curvature
    plain[1 : 1 + axes] = xi.T[:, :, None] * slope
    linear = np.zeros((r, *plain.shape))
    square = np.zeros((len(pairs(r)), *plain.shape))
    for k in range(r):
        linear[k, 0] = 2.0 * bend * (xi @ own[:axes, axes + k])
        linear[k, 1 + axes + k] = slope
    for place, (i, k) in enumerate(pairs(r)):
        square[place, 0] = (1.0 + float(i != k)) * bend * own[axes + i, axes + k]
    if initial is not None:
        change = sigma.derivative_means(norm, xi @ frame.shift.T, 4) / d
        _bend(change, 0.5 * _by_group(initial, size), xi, (plain[0], linear[:, 0], square[:, 0]))
    return Columns(
        slope[None],
        spread[None],
        spread[None],
        curvature[None],
        *(_flat(part)[None] for part in (plain, linear, square)),
    )


def _by_group(covariance: FloatArray, size: int) -> FloatArray:
    """Covariances of the fields of each group, (fields, fields, K)."""
    count = len(covariance) // size
    return np.asarray(np.einsum("igkg->ikg", covariance.reshape(count, size, count, size)))


def _bend(
    change: FloatArray, own: FloatArray, xi: FloatArray, parts: tuple[FloatArray, ...]
) -> None:
    """Add (1/d)∂²m/∂ω² to the column of A, for (40b) after several steps.

    `own` (fields, fields, K) are products of the derivatives of τ, ψ and Δ by ω, `change` (5, X, K)
    the means of σ's derivatives over d, `parts` the column's parts along 1, s_k and s_is_k − δ_ik.
    """
    plain, linear, square = parts
    axes, r = xi.shape[1], len(linear)
    inner = np.einsum("xi,xk,ikg->xg", xi, xi, own[:axes, :axes])
    inner += np.einsum("iig->g", own[axes:-1, axes:-1])
    plain += 0.25 * change[4] * own[-1, -1] + change[3] * (xi @ own[:axes, -1]) + change[2] * inner
    for k in range(r):
        linear[k] += change[3] * own[axes + k, -1] + 2.0 * change[2] * (xi @ own[:axes, axes + k])
    for place, (i, k) in enumerate(pairs(r)):
        square[place] += (1.0 + float(i != k)) * change[2] * own[axes + i, axes + k]


def _flat(fields: FloatArray) -> FloatArray:
    """Columns (…, fields, X, K) as (…, X, fields·K)."""
    moved = np.moveaxis(fields, -3, -2)
    return np.asarray(moved.reshape(*moved.shape[:-2], -1))


def build_labels(star: Target, frame: Frame, noise_std: float, xi: FloatArray) -> Labels:
    """Moments of the label given ξ: (6), (50) with Γξ and R for γκ and q."""
    centre, across = xi @ frame.gamma.T, frame.across
    if isinstance(star, Nonlinearity):
        q = np.full(len(xi), across[0, 0])
        y0, slope, rest = star.moments(q, centre[:, 0])
        first = (q * slope)[None]
        second = (q**2 * star.derivative_means(q, centre[:, 0], 2)[2])[None]
    else:
        y0, first, second, rest = _label_moments(star, centre, across)
    return Labels(y0[None], first[None], second[None], (rest + noise_std**2)[None])


def _label_moments(star: Target, centre: FloatArray, across: FloatArray) -> tuple[FloatArray, ...]:
    """E y, E[s_ky], E[(s_is_k − δ_ik)y] and the rest of E y² at centres (X, r)."""
    s, w = label_rule(star, centre[:1], across)
    s, w = s[0], w[0]
    both = pairs(s.shape[1])
    products = np.stack([s[:, i] * s[:, k] - float(i == k) for i, k in both], axis=1)
    functions = np.concatenate([np.ones((len(s), 1)), s, products], axis=1) * w[:, None]
    found, rest = [], []
    rows = max(1, _CHUNK // len(s))
    for start in range(0, len(centre), rows):
        part = centre[start : start + rows]
        y = target_at(star, part, across, np.broadcast_to(s, (len(part), *s.shape)))
        moments = y @ functions
        left = y - moments[:, :1] - moments[:, 1 : 1 + s.shape[1]] @ s.T
        found.append(moments)
        rest.append((left * left) @ w)
    table = np.concatenate(found).T
    r = s.shape[1]
    return table[0], table[1 : 1 + r], table[1 + r :], np.concatenate(rest)


@dataclass(frozen=True)
class Fit:
    """The solution of (29) for the fields A, τ_1 … τ_Q, ψ, Δ."""

    dual: FloatArray  # (f,) x̂
    coefficients: FloatArray  # (f,) X
    misfit: FloatArray  # (X,) E[(y − B·X)²|ξ]
    train_loss: float


def gram(readout: Readout, mass: FloatArray) -> FloatArray:
    """𝒢 of (29), (f, f), with the weights n w/(1 + χ) of the nodes in `mass`."""
    columns, xi = readout.columns, readout.xi
    size, axes = columns.slope.shape[2], readout.xi.shape[1]
    plain = columns.plain[0]
    slope, curvature = columns.slope[0], columns.curvature[0]

    def product(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
        return np.asarray(left.T @ (right * weight[:, None]))

    total = product(plain, plain, mass)
    for linear in columns.linear[0]:
        total += product(linear, linear, mass)
    # Blocks in which parts cancel, or belong to the sample norms, are written by themselves.
    own = plain[:, :size]
    total[:size, :size] = product(own, own, mass)
    total[:size, :size] += readout.sample_norm * product(curvature, curvature, mass)
    for i in range(axes):
        along = slice((1 + i) * size, (2 + i) * size)
        total[along, along] = product(slope, slope, mass * (xi[:, i] ** 2 - 1.0))
    for i in range(columns.linear.shape[1]):
        rest = slice((1 + axes + i) * size, (2 + axes + i) * size)
        total[rest, rest] = 0.0
    return total


def field_covariance(readout: Readout, v2: FloatArray, special: FloatArray) -> FloatArray:
    """C of (A, τ, ψ, Δ), (f, f), for that of (τ, ψ, Δ) in scaled units in `special`."""
    size, count = v2.size, readout.columns.plain.shape[2]
    c = np.zeros((count, count))
    c[np.arange(size), np.arange(size)] = readout.d
    c[size:, size:] = special
    root = np.tile(np.sqrt(v2 / readout.d), count // size)
    return np.asarray(root[:, None] * c * root)


def fit(
    readout: Readout, v2: FloatArray, mass: FloatArray, information: FloatArray, special: FloatArray
) -> Fit:
    """Solve (29) with the covariance of (τ, ψ, Δ) in scaled units in `special`."""
    columns, labels, size = readout.columns, readout.labels, v2.size
    c = field_covariance(readout, v2, special)
    root = np.tile(np.sqrt(v2 / readout.d), len(c) // size)
    right = columns.plain[0].T @ (mass * labels.mean[0])
    for of, seen in ((columns.linear, labels.linear), (columns.square, labels.square)):
        for part, moment in zip(of[0], seen[0], strict=True):
            right += part.T @ (mass * moment)
    found = solve_fields(c[None], gram(readout, mass)[None], right[None])
    dual, coefficients = found[0][0], found[1][0]
    missed = misfit(columns, labels, readout.sample_norm[None], coefficients[None])[0]
    bulk = (coefficients / root)[size:-size].reshape(-1, size)
    penalty = dual @ coefficients - np.sum((bulk @ information) * bulk)
    loss = float(mass @ missed + penalty) / readout.n
    return Fit(dual, coefficients, missed, loss)
