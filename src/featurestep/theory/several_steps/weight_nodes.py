"""Covariances K_g of the weights after several steps, as quadratic coordinates see them (66).

The reductions of (145) and (146), step by step: a step makes (1 + M_g)K_g(1 + M_g) + D_g of K_g,
where M_g = c_gS is taken with the principal part s of the samples' yk_g, S = Xᵀdiag(s)X/n. Where
c_2 = 0 samples have yk_g = 0 at first, and S is made of y²δ_g. One step is that of section 53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.quadrature import gauss_from_measure
from ..exact.sectors import NODES, SampleSeries, lanczos_corner
from .batches import Batch, Frame

_LEAST_NODE = 0.05  # of K_g, relative to its mean
_LEAST_CROSS = 1e-3  # of 4E(yk)² over E(y²δ)², above which S is made of yk
_MOST_SHARED = 0.999  # by (κ, s) of what the directions beside them have


class WeightNodes(NamedTuple):
    """K_g at nodes of the bulk and on special directions."""

    share: FloatArray  # (a,) p_a
    bulk: FloatArray  # (a, K) K_ga
    special: FloatArray  # (K, 4, 4) on κ, s and two directions beside them


class _Letters(NamedTuple):
    """The principal part of what a batch's samples do to the groups."""

    values: FloatArray  # (M,) s
    cross: FloatArray  # (K,) c_g: yk_g = c_gs, and what is left of it
    own: FloatArray  # (K,) the same for y²δ_g, where S is made of it


def weight_nodes(
    batches: Sequence[Batch], probability: FloatArray, pair: FloatArray
) -> WeightNodes:
    """Both reductions after the last step, for K_g on (κ, s) in `pair` (K, 2, 2).

    `probability` (K,) are those of the groups, by which principal parts count them.
    """
    norm2, root = batches[0].before.norm2, np.sqrt(probability)
    share, bulk = np.ones(1), norm2[None]
    special = norm2[:, None, None] * np.eye(4)
    for batch in batches:
        letters = _principal(batch, root)
        series = SampleSeries(batch.ratio, batch.law.weight, letters.values)
        share, bulk = _bulk(batch, letters, series, share, bulk, root)
        special = _special(batch, letters, series, special, root)
    return WeightNodes(share, bulk, _with_pair(special, pair))


def learned_axis(frame: Frame) -> FloatArray:
    """The axis of κ, (Q,), for a target of one direction: its projection on the axes."""
    size = float(np.linalg.norm(frame.gamma))
    return np.asarray(frame.gamma[0] / size if size > 0.0 else np.eye(frame.axes)[0])


def _principal(batch: Batch, root: FloatArray) -> _Letters:
    cross, own, weight = batch.cross, batch.own, batch.law.weight[:, None]
    counted = cross * root
    second = (counted * weight).T @ counted
    if 4.0 * np.trace(second) > _LEAST_CROSS * np.sum(weight * (own * root) ** 2):
        values = counted @ np.linalg.eigh(second)[1][:, -1]
        part = (weight[:, 0] * values) @ cross / ((weight[:, 0] * values) @ values)
        return _Letters(values, part, np.zeros_like(part))
    values = own @ root**2
    part = (weight[:, 0] * values) @ own / max(float((weight[:, 0] * values) @ values), 1e-300)
    return _Letters(values, np.zeros_like(part), part)


def _bulk(
    batch: Batch,
    letters: _Letters,
    series: SampleSeries,
    share: FloatArray,
    bulk: FloatArray,
    root: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(145) for nodes before the step: of all pairs of nodes four remain."""
    place, p = series.nodes()
    noise = np.maximum(series.on_nodes(batch.own), 0.0)  # (a, K)
    moved = (1.0 + place[:, None] * letters.cross) ** 2
    share = np.multiply.outer(share, p).ravel()
    bulk = (bulk[:, None] * moved + noise).reshape(share.size, -1)
    bulk = bulk * (batch.after.norm2 / (share @ bulk))
    return _fewer_nodes(share, bulk, root)


def _fewer_nodes(
    share: FloatArray, bulk: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gauss nodes along the principal part of K_g, with K_g as polynomials on them."""
    mean = share @ bulk
    apart = (bulk / mean - 1.0) * root
    values, vectors = np.linalg.eigh((apart * share[:, None]).T @ apart)
    if share.size <= NODES or values[-1] <= 1e-20:
        return share, bulk
    rule = gauss_from_measure(apart @ vectors[:, -1] / np.sqrt(values[-1]), share, NODES)
    found = [rule.weights_for(share * of_group) / rule.weights for of_group in bulk.T]
    return rule.weights, np.maximum(np.stack(found, axis=1), _LEAST_NODE * mean)


def _pair(frame: Frame) -> FloatArray:
    """κ and ŝ in a frame, (2, Q + 1); before the first step there is ŝ alone."""
    found = np.zeros((2, frame.axes + 1))
    if frame.axes:
        found[0, :-1] = learned_axis(frame)
    found[1, -1] = 1.0
    return found


def _special(
    batch: Batch,
    letters: _Letters,
    series: SampleSeries,
    before: FloatArray,
    root: FloatArray,
) -> FloatArray:
    """(146) for K_g before the step, on (κ, s) of the frames before and after it.

    Two directions beside the pair come with each step; of four the two that share most remain.
    """
    pair = _pair(batch.after)
    inverse = 1.0 / float(batch.after.across[0, 0])
    gamma = batch.after.gamma
    kept = np.concatenate([batch.kept, inverse * (batch.before.target - gamma @ batch.kept)])
    functions = np.concatenate([batch.axes, -inverse * batch.axes @ gamma.T], axis=1)
    kept, functions, along = pair @ kept, functions @ pair.T, pair @ batch.members
    # S on κ, s, the two directions before, and the two that S makes of the pair.
    m1, between, corner = lanczos_corner(
        series.on_vectors((batch.law.first, batch.law.second), kept, functions)
    )
    s = np.zeros((6, 6))
    s[:2, :2], s[:2, 4:], s[4:, :2], s[4:, 4:] = m1, between, between, corner
    s = series.size * s + series.mean * np.eye(6)
    size = len(before)
    unmoved = np.zeros((size, 6, 6))
    turned = along @ _pair(batch.before).T  # new pair along the old
    norm2 = batch.before.norm2[:, None, None]
    beside = norm2 * (np.eye(2) - turned @ turned.T)
    unmoved[:, :2, :2] = turned @ before[:, :2, :2] @ turned.T + beside
    unmoved[:, :2, 2:4] = turned @ before[:, :2, 2:]
    unmoved[:, 2:4, :2] = np.swapaxes(unmoved[:, :2, 2:4], 1, 2)
    unmoved[:, 2:4, 2:4] = before[:, 2:, 2:]
    unmoved[:, 4:, 4:] = norm2 * np.eye(2)
    moved = np.eye(6) + letters.cross[:, None, None] * s
    own = batch.law.mean(batch.own)
    rest = own - letters.own * (batch.law.weight @ letters.values)
    noise = letters.own[:, None, None] * s + rest[:, None, None] * np.eye(6)
    noise[:, :2, :2] = _noise_on_pair(batch, along, functions)
    found = moved @ unmoved @ moved + noise
    cross = found[:, :2, 2:] * root[:, None, None]
    beside = np.linalg.svd(cross.reshape(2 * size, 4))[2][:2]  # (2, 4)
    turn = np.zeros((4, 6))
    turn[:2, :2], turn[2:, 2:] = np.eye(2), beside
    return np.asarray(turn @ found @ turn.T)


def _noise_on_pair(batch: Batch, along: FloatArray, functions: FloatArray) -> FloatArray:
    """D_g on the new pair, (K, 2, 2), for its coordinates before the step and its functions."""
    law, phi, own = batch.law, batch.ratio, batch.own
    second = np.einsum("iu,uvm,kv,mg->gik", along, law.second, along, own, optimize=True)
    mixed = np.einsum("iu,um,mk,mg->gik", along, law.first, functions, own, optimize=True)
    weighted = functions * law.weight[:, None]
    outside = weighted.T @ functions
    third = np.einsum("mi,mk,mg->gik", weighted, functions, own, optimize=True)
    mean = law.mean(own)[:, None, None]
    both = mixed + np.swapaxes(mixed, 1, 2)
    return np.asarray(second + phi * (both + mean * outside) + phi**2 * third)


def _with_pair(special: FloatArray, pair: FloatArray) -> FloatArray:
    """K_g with its exact part on (κ, s); it must stay positive."""
    found = special.copy()
    found[:, :2, :2], cross, own = pair, special[:, :2, 2:], special[:, 2:, 2:]
    shared = np.swapaxes(cross, 1, 2) @ np.linalg.solve(pair, cross)
    most = np.linalg.eigvals(np.linalg.solve(own, shared)).real.max(axis=1)
    kept = np.minimum(1.0, np.sqrt(_MOST_SHARED / np.maximum(most, 1e-300)))[:, None, None]
    found[:, :2, 2:], found[:, 2:, :2] = kept * cross, kept * np.swapaxes(cross, 1, 2)
    return found
