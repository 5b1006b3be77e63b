"""Law of a batch's labels, jointly with the coordinates of its samples in a frame (section 66).

The frame has Q axes ê_i, spanned by the shifts of the weights, and the rest of the target's
directions. A sample has the coordinates ξ ~ N(0, I_Q) and s; its label depends on Γξ and s.
Averages over a batch are taken on nodes of ξ and, given ξ, on Gauss nodes of the label, with
interpolatory weights for s and for products of s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...core.types import FloatArray, IntArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import (
    Rule,
    gauss_hermite,
    normal_density,
    panels,
    trapezoid_normal,
)
from ...functions.targets import AlignedTarget, directions_rule
from ..labels import Noise, ResidualLaw, fineness, residual_law

Target = Nonlinearity | AlignedTarget
_NOISE_NODES = 11
_CHUNK = 1_000_000  # points of laws of y at a time


@dataclass(frozen=True)
class JointLaw:
    """M nodes of (y, ξ): weights for 1, for the coordinates (ξ, s), S of them, and for products."""

    y: FloatArray  # (M,)
    weight: FloatArray  # (M,)
    first: FloatArray  # (S, M) of E[u_i f]
    second: FloatArray  # (S, S, M) of E[u_i u_k f]
    xi: FloatArray  # (X, Q) places ξ
    place: IntArray  # (M,) the node's ξ, an index of `xi`

    @property
    def count(self) -> int:
        """Coordinates of a sample, S."""
        return int(self.first.shape[0])

    def mean(self, values: FloatArray) -> FloatArray:
        """E f for f at the nodes (M, …)."""
        return np.asarray(np.tensordot(self.weight, values, axes=1))

    def overlaps(self, values: FloatArray) -> FloatArray:
        """E[u_i f], (S, …), for f at the nodes (M, …)."""
        return np.asarray(np.tensordot(self.first, values, axes=1))


def first_law(star: Target, noise_std: float, count: int) -> JointLaw:
    """The law of a batch that meets weights without shift: Q = 0."""
    return unshifted(residual_law(star, Noise(noise_std**2), count))


def unshifted(law: ResidualLaw) -> JointLaw:
    """A law of labels as a joint law without coordinates ξ."""
    kept = law.weight > 0.0
    return JointLaw(
        y=law.nodes[kept],
        weight=law.weight[kept],
        first=law.first[:, kept],
        second=law.second[:, :, kept],
        xi=np.zeros((1, 0)),
        place=np.zeros(int(kept.sum()), dtype=np.intp),
    )


def joint_law(
    star: Target,
    noise_std: float,
    gamma: FloatArray,
    across: FloatArray,
    rule: Rule,
    count: int,
    least: float = 0.0,
) -> JointLaw:
    """The law of (y, ξ, s) with z = Γξ + Rs, for Γ (r, Q), R (r, r) and a rule of ξ (X, Q), (X,).

    `count` Gauss nodes of y at every ξ, without those of weights below `least` times the largest.
    """
    xi, probability = rule
    places, inverse = np.unique(np.round(xi @ gamma.T, 13), axis=0, return_inverse=True)
    keys = (places.tobytes(), across.tobytes(), len(gamma))
    y, w, w_s, w_ss = (part[inverse.ravel()] for part in _given(star, noise_std, *keys, count))
    every = probability[:, None] * w  # (X, count)
    kept = every > least * every.max()
    place = np.broadcast_to(np.arange(len(xi))[:, None], y.shape)[kept]
    share = probability[place]
    w = share * w[kept]
    w_s = share * np.moveaxis(w_s, 1, 0)[:, kept]  # (r, M)
    w_ss = share * np.moveaxis(w_ss, (1, 2), (0, 1))[:, :, kept]
    at = xi[place].T  # (Q, M)
    axes = len(at)
    size = axes + len(gamma)
    second = np.empty((size, size, w.size))
    second[:axes, :axes] = at[:, None] * at * w
    second[:axes, axes:] = at[:, None] * w_s
    second[axes:, :axes] = second[:axes, axes:].transpose(1, 0, 2)
    second[axes:, axes:] = w_ss
    return JointLaw(y[kept], w, np.concatenate([at * w, w_s]), second, xi, place)


@lru_cache(maxsize=64)
def _given(
    star: Target, noise_std: float, places: bytes, root: bytes, directions: int, count: int
) -> tuple[FloatArray, ...]:
    """Nodes of y = σ⋆(c + Rs) + noise at places c, with weights for 1, s_k and s_ks_l.

    (X, count), (X, count), (X, r, count), (X, r, r, count).
    """
    centre = np.frombuffer(places).reshape(-1, directions)
    across = np.frombuffer(root).reshape(directions, directions)
    added = np.zeros(1) if noise_std == 0.0 else gauss_hermite(_NOISE_NODES)[0]
    size = len(label_rule(star, centre[:1], across)[1][0]) * added.size
    rows = max(1, _CHUNK // size)
    parts = [
        _given_some(star, noise_std, centre[i : i + rows], across, count)
        for i in range(0, len(centre), rows)
    ]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _given_some(
    star: Target, noise_std: float, centre: FloatArray, across: FloatArray, count: int
) -> list[FloatArray]:
    s, w_s = label_rule(star, centre, across)  # (X, P, r), (X, P)
    added, w_x = (np.zeros(1), np.ones(1)) if noise_std == 0.0 else gauss_hermite(_NOISE_NODES)
    y = target_at(star, centre, across, s)[:, :, None] + noise_std * added
    weight = (w_s[:, :, None] * w_x).reshape(len(centre), -1)
    y = y.reshape(len(centre), -1)
    scale = 0.5 * np.sqrt(star.second_moment + noise_std**2)
    nodes, weights, polynomials, weighted = _gauss_rules(np.arcsinh(y / scale), weight, count)
    # Functions of s alone: the noise is summed over first.
    measure = (polynomials * np.sqrt(weight)[:, None]).reshape(*nodes.shape, -1, added.size)
    by_s = np.matmul(weighted.transpose(0, 2, 1), measure.sum(axis=3))  # (X, count, P)
    first = np.matmul(by_s, s).transpose(0, 2, 1)
    second = np.einsum("xmp,xpk,xpl->xklm", by_s, s, s)
    return [scale * np.sinh(nodes), weights, first, second]


def target_at(star: Target, centre: FloatArray, across: FloatArray, s: FloatArray) -> FloatArray:
    """σ⋆(c + Rs), (X, P), for c (X, r) and s (X, P, r)."""
    z = centre[:, None] + s @ across
    return star(z[:, :, 0] if isinstance(star, Nonlinearity) else z)


def label_rule(star: Target, centre: FloatArray, across: FloatArray) -> Rule:
    """Nodes and weights of E over s, (X, P, r) and (X, P), split at the kinks of a target."""
    if isinstance(star, Nonlinearity) and star.breaks(12.0).size:
        edges = np.broadcast_to(np.linspace(-9.0, 9.0, 10), (len(centre), 10))
        inside = np.clip((star.breaks(12.0) - centre) / across[0, 0], -9.0, 9.0)
        s, w = panels(np.sort(np.concatenate([edges, inside], axis=1), axis=1), 12)
        w = w * normal_density(s)
        return s[:, :, None], w / w.sum(axis=1, keepdims=True)
    if isinstance(star, Nonlinearity):
        x, w = trapezoid_normal(9.0, 0.2)
        s = x[:, None]
    else:
        s, w = directions_rule(star.directions, fineness(star))
    return np.broadcast_to(s, (len(centre), *s.shape)), np.broadcast_to(w, (len(centre), w.size))


def _gauss_rules(
    x: FloatArray, w: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Gauss rules of X measures at once, by Lanczos' method as in `gauss_from_measure`.

    Points x and weights w, (X, P). Nodes and weights (X, M), then the orthonormal polynomials
    (X, M, P) and their values at the nodes with weights (X, M, M).
    """
    root, total = np.sqrt(w), w.sum(axis=1)
    size = np.abs(x).max(axis=1)
    basis = np.zeros((len(x), count, x.shape[1]))
    diagonal, beside = np.zeros((2, len(x), count))
    following = root / np.sqrt(total)[:, None]
    for k in range(count):
        basis[:, k] = following
        following = x * following
        diagonal[:, k] = np.einsum("xp,xp->x", basis[:, k], following)
        known = basis[:, : k + 1]
        for _ in range(2):
            along = np.matmul(known, following[:, :, None])[:, :, 0]
            following = following - np.matmul(along[:, None, :], known)[:, 0]
        norm = np.sqrt(np.einsum("xp,xp->x", following, following))
        ended = norm <= 1e-13 * size  # a measure on fewer points
        beside[:, k] = np.where(ended, 0.0, norm)
        following = np.where(ended[:, None], 0.0, following / np.where(ended, 1.0, norm)[:, None])
    matrix = np.zeros((len(x), count, count))
    index = np.arange(count)
    matrix[:, index, index] = diagonal
    matrix[:, index[1:], index[:-1]] = matrix[:, index[:-1], index[1:]] = beside[:, :-1]
    nodes, vectors = np.linalg.eigh(matrix)
    weights = total[:, None] * vectors[:, 0] ** 2
    weighted = np.sqrt(total)[:, None, None] * vectors * vectors[:, :1]
    return nodes, weights, basis, weighted


def product_rule(rules: list[Rule], least: float) -> Rule:
    """The product of rules, nodes (X, Q) and weights (X,), without weights below `least`·max."""
    nodes, weight = np.zeros((1, 0)), np.ones(1)
    for x, w in rules:
        left = np.repeat(nodes, x.size, axis=0)
        nodes = np.concatenate([left, np.tile(x, len(nodes))[:, None]], axis=1)
        weight = np.multiply.outer(weight, w).ravel()
    kept = weight > least * weight.max()
    return nodes[kept], weight[kept] / weight[kept].sum()
