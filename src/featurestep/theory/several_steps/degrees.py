"""Degrees 2 and 3 of the features after several steps, at finite d (sections 50–52, 66).

A sample's coordinates ξ take the place of κ. Tables depend on all of them; the coordinates κx_i and
the fields of degree 2 and 3 are those of κ, the target's direction within the frame's axes, and s:
of the other axes no label depends. For one step κ is the only axis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..exact.columns import Columns, columns_of_degrees
from ..exact.degrees import (
    FieldColumns,
    HigherFields,
    OwnShift,
    Parts,
    RadialNodes,
    Tables,
    split_by_degree,
    symmetric_cube,
    symmetric_square,
    towards_target,
)
from ..resolution import FEWEST_INPUTS
from .batches import Frame
from .own_shift import OwnMotion

_MOST_SHARED = 0.9  # by (κ, s) of what the directions beside them have
_LEAST_NODE = 0.05  # of K_g, relative to its mean
_NODES, _NODES_BY_SCALE = 40, 10.0  # of interpolated averages, and for every ρ of their range
_LARGEST_OVERLAP = 0.2  # share of a neuron's square along an axis up to which tables see it


def learned_axis(frame: Frame) -> FloatArray:
    """The axis of κ, (Q,), for a target of one direction: its projection on the axes."""
    size = float(np.linalg.norm(frame.gamma))
    return np.asarray(frame.gamma[0] / size if size > 0.0 else np.eye(frame.axes)[0])


class Axis(NamedTuple):
    """κ among the axes of a frame, and covariances of what neurons have along axes, κ and s."""

    direction: FloatArray  # (Q,) κ = direction·ξ
    on_axes: FloatArray  # (Q, Q, K)
    with_rest: FloatArray  # (Q, K) of the axes and s
    pair: FloatArray  # (K, 2, 2) 𝒦_g of (κ, s)

    @classmethod
    def of(cls, frame: Frame, own: FloatArray) -> Axis:
        """For the covariances of (τ, ψ, Δ) of each group without readout, (Q + 2, Q + 2, K)."""
        axes, direction = frame.axes, learned_axis(frame)
        on_axes, with_rest = own[:axes, :axes], own[:axes, axes]
        pair = np.empty((own.shape[2], 2, 2))
        pair[:, 0, 0] = np.einsum("i,ikg,k->g", direction, on_axes, direction)
        pair[:, 0, 1] = pair[:, 1, 0] = direction @ with_rest
        pair[:, 1, 1] = own[axes, axes]
        return cls(direction, on_axes, with_rest, pair)


class Higher(NamedTuple):
    """What columns have of degree 2 and 3 beside themselves."""

    fields: HigherFields
    tables: list[FloatArray]  # (X, K) all tables but t_c
    slopes: list[FloatArray]  # (X, K) their slopes in s² − 1 (152)
    spread: FloatArray  # (X, K) that of ν²


def special_covariance(
    axis: Axis, norm2: FloatArray, traces: FloatArray, products: FloatArray
) -> FloatArray:
    """K_g on κ, s and two directions beside them, (K, 4, 4), in the place of (146).

    The two are those that share most with κ and s in all K_g, by their products on the pair
    (K, K, 2, 2); among themselves they are directions of a bulk that varies by a gamma law, with
    tr(K_gK_h)/d in `traces`.
    """
    pair, size = axis.pair, len(norm2)
    own = np.einsum("gij,hjk->ghik", pair, pair)
    left = products - 0.5 * (own + np.swapaxes(own, 2, 3))
    left = left.transpose(0, 2, 1, 3).reshape(2 * size, 2 * size)
    values, vectors = np.linalg.eigh(0.5 * (left + left.T))
    cross = (vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))).reshape(size, 2, 2)
    own = norm2 + 2.0 * (np.diag(traces) / norm2 - norm2)
    # K_g must stay positive: BᵀP⁻¹B below what the two directions have themselves.
    shared = np.swapaxes(cross, 1, 2) @ np.linalg.solve(pair, cross)
    most = np.linalg.eigvalsh(shared)[:, -1] / own
    cross *= np.minimum(1.0, np.sqrt(_MOST_SHARED / np.maximum(most, 1e-300)))[:, None, None]
    found = np.zeros((size, 4, 4))
    found[:, :2, :2], found[:, :2, 2:], found[:, 2:, :2] = pair, cross, np.swapaxes(cross, 1, 2)
    found[:, 2, 2] = found[:, 3, 3] = own
    return found


def bulk_nodes(norm2: FloatArray, traces: FloatArray) -> tuple[FloatArray, FloatArray]:
    """p_a (1, a) and K_ga (1, a, K) in the place of (145), from tr(K_gK_h)/d (K, K).

    Two nodes for each of the two largest principal parts of the K_g: those of a gamma law where all
    groups vary alike, as squares do. Their mean is ρ_g².
    """
    values, vectors = np.linalg.eigh(traces - np.outer(norm2, norm2))
    share, bulk = np.ones(1), norm2[None]
    for value, vector in zip(values[:-3:-1], vectors.T[:-3:-1], strict=True):
        part = np.sqrt(max(float(value), 0.0)) * vector * np.copysign(1.0, vector.sum())
        skew = max(float((part**3 / norm2).sum() / max((part**2).sum(), 1e-300)), 0.0)
        root, sign = np.sqrt(1.0 + skew**2), np.array([1.0, -1.0])
        share = np.multiply.outer(share, 0.5 - 0.5 * skew / root * sign).ravel()
        bulk = (bulk[:, None] + (skew + root * sign)[:, None] * part).reshape(-1, part.size)
    bulk = np.maximum(bulk, _LEAST_NODE * norm2)
    return share[None], (bulk * (norm2 / (share @ bulk)))[None]


def higher_fields(d: float, special: FloatArray, norm2: FloatArray) -> HigherFields:
    """(139) for K_g on κ, s and directions beside them, (K, m, m)."""
    square, trace = symmetric_square(special)
    square = square - trace[:, :, None] * trace[:, None, :] / d
    cube = symmetric_cube(special[:, :2, :2]) / ((d + 2.0) * (d + 4.0))
    one, none = np.ones((1, 1)), np.zeros((1, norm2.size))
    return HigherFields(square[None] / (d + 2.0), cube[None], one, norm2[None, None], none)


def radial_columns(
    sigma: Nonlinearity,
    frame: Frame,
    d: float,
    own: FloatArray,
    xi: FloatArray,
    motion: OwnMotion,
    products: FloatArray | None = None,
) -> tuple[Columns, Higher]:
    """Columns of A, τ_1 … τ_Q, ψ, Δ and those of degree 2 and 3, at all ξ for h = 1, then −1.

    own: (Q + 2, Q + 2, K), covariances without readout; products: of `pair_products`.
    """
    axis, d = Axis.of(frame, own), max(d, float(FEWEST_INPUTS))
    inputs, norm = np.array([d]), np.sqrt(frame.norm2 + frame.left)[None]
    seen = split_by_degree(*_averages(sigma, norm[0], xi @ frame.shift.T), norm[:, None, :])
    nodes, pair = RadialNodes.of(xi @ axis.direction), axis.pair[None]
    bent = np.einsum("xi,xk,ikg->xg", xi, xi, axis.on_axes)
    bent = np.tile(bent - np.einsum("iig->g", axis.on_axes), (2, 1))  # ξᵀKξ − tr K
    beside = None
    if frame.axes > 1:
        largest = np.einsum("iig->ig", axis.on_axes).max(axis=0) / d
        kept = np.minimum(1.0, _LARGEST_OVERLAP * norm[0] ** 2 / np.maximum(largest, 1e-300))
        beside = (kept / d * (bent - (nodes.kappa**2 - 1.0) * axis.pair[:, 0, 0]))[None]
    tables = Tables(inputs, norm, seen, nodes, pair[:, :, 0, 0], beside)
    gamma = np.linalg.norm(frame.gamma, axis=1)
    towards = towards_target(pair, gamma, frame.across[:, 0])
    xi = np.tile(xi, (2, 1))
    moved = OwnShift(*_own_shift(motion, seen.s, xi), towards)
    found = FieldColumns(inputs, norm, seen, nodes, pair, moved)
    linear = _linear(found, axis, xi, bent)
    every = [_means(found, axis, xi, bent), *linear, found.norms()]
    every += [*found.square(), *found.cube()]
    share, bulk = np.ones((1, 1)), norm[:, None, :] ** 2
    if products is not None:
        share, bulk = bulk_nodes(norm[0] ** 2, frame.products)
    columns = columns_of_degrees(tables, every, share, bulk)
    across = pair[:, :, 1, 1]
    shown, slopes = ([part[0] for part in parts] for parts in tables.slopes_across(across))
    special = axis.pair
    if products is not None:
        special = special_covariance(axis, norm[0] ** 2, frame.products, products)
    fields = higher_fields(d, special, norm[0] ** 2)
    return columns, Higher(fields, shown, slopes, tables.spread_across(across)[0])


def _averages(
    sigma: Nonlinearity, norm: FloatArray, place: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means of derivatives and spreads (7, 1, X, K), and growths, for ρ_g (K,) and ω_g (X, K).

    They are functions of one place, smooth on the scale ρ_g: with many places, polynomials through
    Chebyshev's nodes take less time.
    """
    reach = np.abs(place).max(axis=0)
    count = int(_NODES + _NODES_BY_SCALE * float((reach / norm).max()))
    if len(place) <= 2 * count:
        return sigma.averages_with_growth(norm, place[None], 5)
    order = np.arange(count)[:, None]
    angle = np.pi * (np.arange(count) + 0.5) / count
    means, growth = sigma.averages_with_growth(norm, (np.cos(angle)[:, None] * reach)[None], 5)
    at = np.concatenate([means, growth[None]])[:, 0]  # (8, count, K)
    to_series = np.cos(order * angle) * (2.0 / count)
    to_series[0] *= 0.5
    found = np.empty((len(at), 1, *place.shape))
    for g, end in enumerate(reach):
        angles = np.arccos(np.clip(place[:, g] / max(float(end), 1e-300), -1.0, 1.0))
        found[:, 0, :, g] = at[:, :, g] @ to_series.T @ np.cos(order * angles)
    return found[:-1], found[-1]


def _own_shift(
    motion: OwnMotion, s: list[FloatArray], xi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x_0 + x_1·ξ and x_1 along s of (151), (1, 2X, K)."""
    first, second, n1, n2 = motion
    x0 = 0.5 * s[2] * n2 + s[4] * n1**2 / 8.0
    along = s[1] * (xi @ second[:-1]) + 0.5 * s[3] * n1 * (xi @ first[:-1])
    return x0 + along, s[1] * second[-1] + 0.5 * s[3] * n1 * first[-1]


def _means(found: FieldColumns, axis: Axis, xi: FloatArray, bent: FloatArray) -> Parts:
    """A of (141), with (150)."""
    bend = 0.5 * found.s[2] / found.d
    trace = np.einsum("...ij,...ji->...", found.own_norm, found.pair)
    return Parts(
        found.s[0] + bend * (found.radius * found.v + bent + trace) + found.plain / found.d,
        2.0 * bend * (xi @ axis.with_rest),
        math.sqrt(2.0) * bend * axis.pair[:, 1, 1],
    )


def _linear(found: FieldColumns, axis: Axis, xi: FloatArray, bent: FloatArray) -> list[Parts]:
    """τ_1 … τ_Q and ψ of (141)."""
    far = found.d + 2.0
    half, across = 0.5 * found.s[3], axis.pair[:, 1, 1] / far
    plain = found.s[1] + half * (found.radius * found.v + bent) / far
    turned = np.einsum("ikg,xk->ixg", axis.on_axes, xi)
    parts = [
        Parts(
            xi[:, i, None] * plain - half * 2.0 * turned[i] / far,
            b2=math.sqrt(2.0) * xi[:, i, None] * half * across,
        )
        for i in range(xi.shape[1])
    ]
    return [*parts, Parts(b1=plain, b3=math.sqrt(6.0) * half * across)]
