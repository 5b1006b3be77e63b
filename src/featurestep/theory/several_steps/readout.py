"""What the readout's samples show of the weights after the last step, and the regression (180).

A fresh row has the coordinates ξ in the frame of the weights, and s. Fields are A (means),
τ_1 … τ_Q and ψ_1 … ψ_r (bulk directions along the frame) and Δ (norms), K of each.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..exact.columns import Columns
from ..exact.regression import (
    InfluenceAcross,
    QuadraticBlock,
    misfit,
    shown_by_degree,
    solve_fields,
)
from ..labels import Labels, LabelsAcross, labels_across, moments_at, pairs
from .batches import Frame
from .degrees import Higher
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
    higher: Higher | None = None  # of degree 2 and 3; their fields are behind Δ
    across: LabelsAcross | None = None  # labels with the weight s² − 1

    @cached_property
    def tables(self) -> list[FloatArray]:
        """What the resolvent sees, (X, K) each: μ, tables of blocks, that of coordinates κx_i."""
        found = [self.columns.slope, *(sector.table for sector in self.columns.sectors)]
        if self.columns.along_kappa is not None:
            found.append(self.columns.along_kappa.table)
        return [table[0] for table in found]

    @cached_property
    def dimensions(self) -> list[float]:
        """Numbers of coordinates of every table, and √ of both of the first and the last."""
        found = [self.d, *(float(sector.dimension[0]) for sector in self.columns.sectors)]
        if self.columns.along_kappa is not None:
            found.append(float(self.columns.along_kappa.dimension[0]))
        return [*found, math.sqrt(found[0] * found[-1])]

    @property
    def bulk(self) -> slice:
        """Fields τ and ψ among all."""
        return slice(1, 1 + self.xi.shape[1] + self.columns.linear.shape[1])

    @property
    def special(self) -> slice:
        """Fields τ, ψ and Δ."""
        return slice(1, self.bulk.stop + 1)

    @property
    def squares(self) -> slice:
        """Fields (κκ), (κs) and (ss), at finite d."""
        return slice(self.special.stop, self.special.stop + 3)


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
    own = by_group(covariance, size)  # (Q + r + 1, Q + r + 1, K)
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
        _bend(change, 0.5 * by_group(initial, size), xi, (plain[0], linear[:, 0], square[:, 0]))
    return Columns(
        slope[None],
        spread[None],
        spread[None],
        curvature[None],
        *(_flat(part)[None] for part in (plain, linear, square)),
    )


def by_group(covariance: FloatArray, size: int) -> FloatArray:
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
        found = moments_at(star, across, centre.T)
        return replace(found, rest=found.rest + noise_std**2)
    y0, first, second, rest = _label_moments(star, centre, across)
    return Labels(y0[None], first[None], second[None], (rest + noise_std**2)[None])


def radial_labels(
    star: Nonlinearity, frame: Frame, noise_std: float, xi: FloatArray
) -> tuple[Labels, LabelsAcross]:
    """The same, and moments with the weight s² − 1, at all ξ for each of two norms of samples."""
    size = float(np.linalg.norm(frame.gamma))
    kappa = xi @ (frame.gamma[0] / max(size, 1e-300))
    across, found = labels_across(star, np.array([size]), kappa)
    return replace(found, rest=found.rest + noise_std**2).twice(), across


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
    block: QuadraticBlock | None = None  # of degree 2
    across: InfluenceAcross | None = None  # of samples with large s
    misfit_across: FloatArray | None = None  # (X,) E[(s² − 1)(y − B·X)²|ξ]


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


def radial_gram(
    readout: Readout, mass: FloatArray, information: FloatArray, across: InfluenceAcross
) -> FloatArray:
    """The same with the norms of samples as a variable.

    −V̂1 (K, K) is on τ and ψ, −V̂_q on fields of degree 2.
    """
    columns, size = readout.columns, len(information)
    assert columns.by_degree is not None
    total = across.gram(columns.by_degree)[0]
    curvature = columns.curvature[0]
    bent = curvature.T @ (curvature * mass[:, None])
    total[:size, :size] += readout.sample_norm * bent
    for field in range(readout.bulk.start, readout.bulk.stop):
        own = slice(field * size, (field + 1) * size)
        total[own, own] -= information
    for field in range(readout.squares.start, readout.squares.stop):
        own = slice(field * size, (field + 1) * size)
        total[own, own] -= 4.0 * bent
    return np.asarray(total)


def field_covariance(
    readout: Readout, v2: FloatArray, special: FloatArray, block: QuadraticBlock | None = None
) -> FloatArray:
    """C of all fields, (f, f), for that of (τ, ψ, Δ) in scaled units in `special`."""
    size, count = v2.size, readout.columns.plain.shape[2]
    c, g = np.zeros((count, count)), np.arange(size)
    c[g, g] = readout.d
    end = size + len(special)
    c[size:end, size:end] = special
    if block is not None:
        c[end : end + 3 * size, end : end + 3 * size] = block.square[0]
        every = end + 3 * size + size * np.arange(4)
        for (i, row), (k, column) in itertools.product(enumerate(every), repeat=2):
            c[row + g, column + g] = block.higher.cube[0, :, i, k]
    root = np.tile(np.sqrt(v2 / readout.d), count // size)
    return np.asarray(root[:, None] * c * root)


def fit(
    readout: Readout,
    v2: FloatArray,
    mass: FloatArray,
    information: FloatArray,
    special: FloatArray,
    across: InfluenceAcross | None = None,
) -> Fit:
    """Solve (29) with the covariance of (τ, ψ, Δ) in scaled units in `special`.

    At finite d samples have the influence χ + (s² − 1)χ_s of (152), in `across`.
    """
    columns, labels, size = readout.columns, readout.labels, v2.size
    root, block = np.sqrt(v2 / readout.d), None
    if readout.higher is not None:
        second = 2.0 * columns.curvature[0] * root
        seen = second.T @ (second * mass[:, None])
        block = QuadraticBlock(readout.higher.fields, np.array([readout.d]), seen[None])
    c = field_covariance(readout, v2, special, block)
    if across is None:
        seen = gram(readout, mass)
        right = columns.plain[0].T @ (mass * labels.mean[0])
        for of, shown in ((columns.linear, labels.linear), (columns.square, labels.square)):
            for part, moment in zip(of[0], shown[0], strict=True):
                right += part.T @ (mass * moment)
    else:
        seen = radial_gram(readout, mass, information / (root[:, None] * root), across)
        values = mass * labels.by_degree + across.weight[:, None] * across.labels.parts
        parts = columns.by_degree
        assert parts is not None
        right = parts.reshape(-1, parts.shape[3]).T @ values.ravel()
    found = solve_fields(c[None], seen[None], right[None])
    dual, coefficients = found[0][0], found[1]
    missed = misfit(columns, labels, readout.sample_norm[None], coefficients)[0]
    every = coefficients.reshape(-1, size) / root
    bulk = every[readout.bulk]
    penalty = dual @ coefficients[0] - np.sum((bulk @ information) * bulk)
    if block is not None:
        squares = every[readout.squares]
        penalty -= np.sum((squares @ block.information[0]) * squares)
    total, missed_across = float(mass @ missed + penalty), None
    if across is not None:
        missed_across = across.misfit(shown_by_degree(columns, coefficients))[0]
        total += float(across.weight[0] @ missed_across)
    return Fit(dual, coefficients[0], missed, total / readout.n, block, across, missed_across)
