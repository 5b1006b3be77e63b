"""Degrees 2 and 3 of the features after several steps, at finite d (sections 50–52, 66).

A sample's coordinates ξ take the place of κ. Tables depend on all of them; the coordinates κx_i and
the fields of degree 2 and 3 are those of κ, the target's direction within the frame's axes, and s:
of the other axes no label depends. For one step κ is the only axis.

A neuron whose initial weights have the overlap ε with β⋆ is moved by every batch a little otherwise
than its group: along the members u of the frame by A1ε + A2ε², in its squared norm by N1ε + N2ε².
At finite d, ε² = 1/d, this is seen. As in (151) for one step, what the noise of a batch adds is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    at_radius,
    split_by_degree,
    square_beside,
    symmetric_cube,
    symmetric_square,
    towards_target,
)
from ..labels import moments_at
from ..resolution import FEWEST_INPUTS
from .batches import Batch, Frame
from .weight_nodes import WeightNodes, learned_axis

_NODES, _NODES_BY_SCALE = 40, 10.0  # of interpolated averages, and for every ρ of their range
_LARGEST_OVERLAP = 0.2  # share of a neuron's square along an axis up to which tables see it


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
    tables: list[FloatArray]  # (X, K) all tables, t_c the last
    slopes: list[FloatArray]  # (X, K) their slopes in s² − 1 (152)
    spread: FloatArray  # (X, K) that of ν²


def higher_fields(d: float, nodes: WeightNodes) -> HigherFields:
    """(139) for K_g on κ, s and directions beside them."""
    special = nodes.special
    square, trace = symmetric_square(special)
    square = square - trace[:, :, None] * trace[:, None, :] / d
    cube = symmetric_cube(special[:, :2, :2]) / ((d + 2.0) * (d + 4.0))
    norm2 = (nodes.share @ nodes.bulk)[None]
    isotropic = np.ones((1, 1)), norm2[:, None], np.zeros_like(norm2)  # (149) is left out
    return HigherFields(square[None] / (d + 2.0), cube[None], *isotropic)


def radial_columns(
    sigma: Nonlinearity,
    frame: Frame,
    d: float,
    own: FloatArray,
    xi: FloatArray,
    motion: OwnMotion,
    weights: WeightNodes,
) -> tuple[Columns, Higher]:
    """Columns of A, τ_1 … τ_Q, ψ, Δ and those of degree 2 and 3, at all ξ for h = 1, then −1.

    own: (Q + 2, Q + 2, K), covariances without readout.
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
    beside = square_beside(inputs, nodes)
    at_norms = [at_radius(seen.s, k, norm[:, None, :] ** 2, beside) for k in (1, 2, 3)]
    moved = OwnShift(*_own_shift(motion, at_norms, seen.s[4], beside, xi), towards)
    found = FieldColumns(inputs, norm, seen, nodes, pair, moved)
    linear = _linear(found, axis, xi, bent)
    every = [_means(found, axis, xi, bent), *linear, found.norms()]
    every += [*found.square(), *found.cube()]
    bulk = weights.bulk + frame.left
    columns = columns_of_degrees(tables, every, weights.share[None], bulk[None])
    across = pair[:, :, 1, 1]
    shown, slopes = ([part[0] for part in parts] for parts in tables.slopes_across(across))
    fields = higher_fields(d, weights)
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
    motion: OwnMotion, s: list[FloatArray], s4: FloatArray, beside: FloatArray, xi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x_0 + x_1·ξ and x_1 along s of (151), (1, 2X, K), for s_1 … s_3 at the norms of samples."""
    first, second = motion.first, motion.second
    s1, s2, s3 = s
    n1, n2 = beside * motion.norm_first, beside * motion.norm_second
    x0 = 0.5 * s2 * n2 + s4 * n1**2 / 8.0
    along = s1 * (xi @ second[:-1]) + 0.5 * s3 * n1 * (xi @ first[:-1])
    return x0 + along, s1 * second[-1] + 0.5 * s3 * n1 * first[-1]


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


class OwnMotion(NamedTuple):
    """A neuron's motion beside its group's, to second order in its overlap ε with β⋆."""

    first: FloatArray  # (S, K) A1, of the initial overlap with what became of it
    second: FloatArray  # (S, K) A2
    norm_first: FloatArray  # (K,) N1
    norm_second: FloatArray  # (K,) N2


def own_motion(star: Nonlinearity, batches: Sequence[Batch]) -> OwnMotion:
    """The motion after all batches, for a target of one direction."""
    norm = np.sqrt(batches[0].before.norm2)  # of a row, that has ε times its norm
    none = np.zeros_like(norm)
    motion = OwnMotion(norm[None], none[None], none, none)
    for batch in batches:
        motion = _after(star, batch, motion)
    return motion


def _after(star: Nonlinearity, batch: Batch, motion: OwnMotion) -> OwnMotion:
    """The motion after one batch: its gradient at a neuron, expanded in ε."""
    frame, law, e, v = batch.before, batch.law, batch.e, batch.before.norm2
    xi = law.xi
    share = np.bincount(law.place, weights=law.weight, minlength=len(xi))
    at = batch.tables
    m1, mu, mu1 = at.mean_change, at.slope, at.slope_change  # (X, K)
    y = moments_at(star, frame.across, (xi @ frame.gamma.T).T).by_degree[0]
    powers = np.stack(
        [y[0], y[1], np.sqrt(2.0) * y[2] + y[0], np.sqrt(6.0) * y[3] + 3.0 * y[1]]
    )  # E[y s^k|ξ]
    moments = (share * powers)[:, :, None]  # (4, X, 1)

    def mean(*by_power: FloatArray) -> FloatArray:
        """E[y Σ_k f_k s^k] for functions of ξ, (X, K)."""
        return np.asarray(sum((m * f).sum(axis=0) for m, f in zip(moments, by_power, strict=False)))

    def along(*by_power: FloatArray) -> FloatArray:
        """E[y u Σ_k f_k s^k] for all members u, (S, K)."""
        none = np.zeros_like(by_power[0])
        found = [mean(*(xi[:, i, None] * f for f in by_power)) for i in range(xi.shape[1])]
        return np.stack([*found, mean(none, *by_power)])

    n1, n2 = motion.norm_first, motion.norm_second
    a, a2 = xi @ motion.first[:-1], xi @ motion.second[:-1]
    b, b2 = motion.first[-1], motion.second[-1]  # A1·u = a + bs
    square = a**2 - (motion.first**2).sum(axis=0)
    linear = mu * a + m1 * n1, mu * b
    quadratic = (
        m1 * (square + n2) + mu * a2 + mu1 * a * n1,
        2.0 * m1 * a * b + mu * b2 + mu1 * b * n1,
        m1 * b**2,
    )
    kept = 1.0 + e * mean(mu)
    turned = e * mean(2.0 * m1 * a + mu1 * n1, 2.0 * m1 * b)
    bent = e * mean(
        mu1 * (square + n2) + 2.0 * m1 * a2, 2.0 * mu1 * a * b + 2.0 * m1 * b2, mu1 * b**2
    )
    return OwnMotion(
        batch.members @ (motion.first + e * along(*linear)),
        batch.members @ (motion.second + e * along(*quadratic)),
        n1 * kept**2 + 2.0 * v * kept * turned,
        n2 * kept**2 + 2.0 * n1 * kept * turned + v * (turned**2 + 2.0 * kept * bent),
    )
