"""Products of two inputs with a covariance: one block of coordinates for each pair of classes.

The part of degree 2 of a feature is m′_g(w̃ᵀx̃x̃ᵀw̃ − tr) with w̃ = Σ^½w′. A product x̃_ax̃_b has the
variance 4k_gak_gb/d² over the neurons, so that products of two strong directions are learned before
others: every pair of classes is a block of degree 2, as every pair of nodes of the bulk is one for
isotropic inputs at finite d (`degrees`). The fields (κκ), (κs), (ss) and the norms of the initial
weights lie in these blocks, and their covariances are sums over the blocks' resolvents.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .degrees import NormsInBlock, norm_share, symmetric_square
from .dyson import inverted, matmul, transposed
from .inputs import Classes
from .sectors import Sector, bulk_covariance
from .step import Step

MAX_CLASSES, KEPT = 12, 8  # in pairs, and those of them that are single classes
SPLIT_CLASSES = 4  # of those, cut by the eigenvalues of K_g; 0 leaves all whole
_FEW_GROUPS = 8  # of neurons; with more of them a single class is cut
_BASIS = np.array([np.sqrt(0.5), 1.0, np.sqrt(0.5)])  # h_2(κ), κs, h_2(s) in κ² − 1, κs, s² − 1
_SMALLEST = 1e-9  # eigenvalue of 𝒦_g, relative to the largest
_PAIR = ((0, 0), (0, 1), (1, 1))  # (κκ), (κs), (ss) as pairs of directions


class ClassProducts(NamedTuple):
    """What fields have in the blocks of pairs P of classes: Δ, Ω, (κκ), (κs), (ss)."""

    size: FloatArray  # (B, P, K) ½a_P of (110)
    factor: FloatArray  # (B, P, 5, K) of a field
    overlap: FloatArray  # (B, P, 5, 5) of two fields
    alike: FloatArray  # (B, P) f_c of pairs of a class with itself, 0 of others
    share: FloatArray  # (B, a) nodes of K_g, (B, a, K), and Z² of (149), (B, K)
    bulk: FloatArray
    norm_share: FloatArray
    d: FloatArray  # (B,)

    def take(self, rows: Any) -> ClassProducts:
        """The same for some of the rows."""
        return ClassProducts(*(part[rows] for part in self))


class PairClasses(NamedTuple):
    """What products need of C classes; of many, those with small eigenvalues are joined."""

    share: FloatArray  # (B, C) f_c
    variance: FloatArray  # (B, C, K) k_gc
    eigenvalue: FloatArray  # (B, C) s_c
    factor: FloatArray  # (B, C, K) norm of a group's initial weights
    excess: FloatArray  # (B, C) variance of the eigenvalues of K_g within a class, over all groups
    own_norm: FloatArray  # (B, C, K) r̃_gc for Δ
    initial_norm: FloatArray  # (B, C) and for Ω
    overlap: FloatArray  # (B, C, 2, 2) o_c of (111)


def pair_classes(step: Step, classes: Classes) -> PairClasses:
    """The classes whose pairs are blocks: shares and overlaps are sums, others are means.

    Products of weak directions are noise, whatever class they are in, and the number of pairs is
    quadratic in that of classes.
    """
    count = classes.share.shape[1]
    starts = np.arange(count)
    if count > MAX_CLASSES:
        ends = np.linspace(KEPT, count, MAX_CLASSES - KEPT + 1)
        starts = np.concatenate([np.arange(KEPT), np.rint(ends).astype(int)[:-1]])
    every = np.add.reduceat(classes.share, starts, axis=1)
    share = np.add.reduceat(classes.share * classes.linear, starts, axis=1)

    def mean(values: FloatArray) -> FloatArray:
        weight = classes.share.reshape(*classes.share.shape, *[1] * (values.ndim - 2))
        total = np.add.reduceat(weight * values, starts, axis=1)
        return np.asarray(total / every.reshape(*every.shape, *[1] * (values.ndim - 2)))

    return PairClasses(
        share,
        mean(classes.variance),
        mean(classes.eigenvalue),
        mean(classes.factor),
        mean(classes.excess),
        mean(classes.own_norm),
        mean(classes.initial_norm),
        np.add.reduceat(direction_overlaps(step, classes), starts, axis=1),
    )


class EigenvalueNodes(NamedTuple):
    """Parts of classes, by the eigenvalues of K_g."""

    share: FloatArray  # (B, a) of the coordinates
    bulk: FloatArray  # (B, a, K) K_ga


def eigenvalue_nodes(step: Step, classes: PairClasses) -> EigenvalueNodes:
    """The classes' parts, with K_g there (eq. 124).

    Those classes in which K_g varies most are cut in four. A single direction has no spectrum.
    """
    share, variance = classes.share, classes.variance
    rows, count, size = variance.shape
    split = min(SPLIT_CLASSES, count if size <= _FEW_GROUPS else 1)
    if split == 0:
        return EigenvalueNodes(share, variance)
    excess = np.maximum(classes.excess, 0.0) * (share * step.d[:, None] > 1.5)
    order = np.argsort(-share * excess, axis=1, kind="stable")
    first, rest = order[:, :split], order[:, split:]
    s, own = _taken(classes.eigenvalue, first).reshape(-1), _taken(variance, first)
    alone = step.take(np.repeat(np.arange(rows), split))
    alone = replace(
        alone,
        phi=alone.phi / s,
        k=alone.k * s[:, None],
        delta=alone.delta * s[:, None],
        initial_factor=_taken(classes.factor, first).reshape(-1, size),
    )
    part, nodes = bulk_covariance(alone)
    part = part.reshape(rows, split, -1)
    still = ~np.any(step.e, axis=1)  # all nodes alike: one is enough
    part[still] = np.eye(1, part.shape[2])
    nodes = (nodes * s[:, None, None]).reshape(rows, split, -1, size)
    mean = (part[..., None] * nodes).sum(axis=2, keepdims=True)
    apart = (nodes / mean - 1.0) * own[:, :, None]
    square = (part[..., None] * apart**2).sum(axis=(2, 3))
    scale = np.minimum(_taken(excess, first) / np.maximum(square, 1e-300), 1.0)
    nodes = own[:, :, None] + np.sqrt(scale)[..., None, None] * apart
    nodes = nodes.reshape(rows, -1, size)
    part = (_taken(share, first)[..., None] * part).reshape(rows, -1)
    return EigenvalueNodes(
        np.concatenate([part, _taken(share, rest)], axis=1),
        np.concatenate([nodes, _taken(variance, rest)], axis=1),
    )


def _taken(values: FloatArray, order: IntArray) -> FloatArray:
    """Values (B, C, …) of classes in another order, (B, C)."""
    return np.take_along_axis(values, order.reshape(*order.shape, *[1] * (values.ndim - 2)), axis=1)


def block_power(step: Step, nodes: EigenvalueNodes) -> tuple[FloatArray, FloatArray]:
    """Power of the table of degree 2, and what of it is not in ν², over 2ρ⁴m′², (B, K) (eq. 125).

    Blocks see more than the table's power, by their coordinates of one class.
    """
    square, d = step.norm**4, step.d[:, None]
    products = np.einsum("ba,bak->bk", nodes.share, nodes.bulk**2) / (d * square)
    norms = step.norm_variance
    if step.classes is not None:
        norms = norms + 2.0 * step.classes.norms.own
    return (1.0 - products + norms / (d * square)) / (1.0 + products), 1.0 - products


def pair_sector(step: Step, nodes: EigenvalueNodes, table: FloatArray) -> Sector:
    """Blocks of degree 2, one for each pair of classes or of their parts (eq. 110).

    table: (B, Q, K), √2ρ²m′ but for (125) and (126). A block has the share n_P/(d²/2) of
    coordinates.
    """
    f, bulk = nodes
    d, (i, j) = step.d[:, None], np.triu_indices(f.shape[1])
    share = np.where(i == j, f[:, i] * (f[:, i] + 1.0 / d), 2.0 * f[:, i] * f[:, j])
    factor = np.sqrt(bulk[:, i] * bulk[:, j]) / step.norm[:, None, :] ** 2
    return Sector(0.5 * step.d**2, table, share, factor)


def direction_overlaps(step: Step, classes: Classes) -> FloatArray:
    """o_c, what every class has of the pair (κ, s), (B, C, 2, 2) (eq. 111)."""
    s, f, t = classes.eigenvalue, classes.share * classes.linear, classes.mass
    star, noise = step.r_overlaps[:, :1, 1], (step.phi * step.r_moments[:, 2])[:, None]
    beta, gamma, q = (x[:, None] for x in (step.beta, step.alignment, step.across))
    own = s**2 * (star**2 * t + noise * f) / beta**2
    mixed = star * s * t / beta
    across = (mixed - gamma * own) / q
    rest = (t - 2.0 * gamma * mixed + gamma**2 * own) / q**2
    return np.stack([np.stack([own, across], -1), np.stack([across, rest], -1)], -2)


def own_scale(classes: PairClasses, own: FloatArray) -> FloatArray:
    """A_g ⊗ A_g on (κκ), (κs), (ss) in their orthonormal basis, (B, K, 3, 3) (eq. 122).

    own: 𝒦_g, what neurons have of (κ, s), (B, K, 2, 2). The blocks of pairs of classes have it
    with the mean of K_g in every class.
    """
    mean = np.einsum("bck,bcij->bkij", classes.variance, classes.overlap)
    root = _power(mean, 0.5)
    back = _power(mean, -0.5)
    return symmetric_square(matmul(back, _power(matmul(root, own, root), 0.5), back))[0]


def _power(matrix: FloatArray, power: float) -> FloatArray:
    """Powers of symmetric positive matrices, (…, 2, 2)."""
    values, vectors = np.linalg.eigh(matrix)
    least = _SMALLEST * values[..., -1:]
    raised = np.maximum(values, least) ** power
    return matmul(vectors * raised[..., None, :], transposed(vectors))


def class_products(step: Step, classes: PairClasses, nodes: EigenvalueNodes) -> ClassProducts:
    """What (112) needs of the fields in units of D_g, (κκ), (κs), (ss) in an orthonormal basis."""
    i, j = np.triu_indices(classes.share.shape[1])
    d = step.d[:, None]
    size = np.sqrt(classes.variance[:, i] * classes.variance[:, j] / d[..., None])
    rows, count, groups = size.shape
    alike = np.where(i == j, classes.share[:, i], 0.0)
    factor = np.zeros((rows, count, 5, groups))
    factor[:, :, 0], factor[:, :, 1] = classes.own_norm[:, i], classes.initial_norm[:, i, None]
    factor[:, :, 2:] = size[:, :, None]
    o = classes.overlap
    overlap = np.zeros((rows, count, 5, 5))
    overlap[:, :, :2, :2] = 2.0 * alike[..., None, None]
    for x, (u, v) in enumerate(_PAIR):
        with_norms = np.where(i == j, o[:, i, u, v], 0.0) * _BASIS[x] * 2.0 / np.sqrt(d)
        overlap[:, :, 2 + x, :2] = overlap[:, :, :2, 2 + x] = with_norms[..., None]
        for y, (w, z) in enumerate(_PAIR):
            one = o[:, i, u, w] * o[:, j, v, z] + o[:, i, u, z] * o[:, j, v, w]
            other = o[:, j, u, w] * o[:, i, v, z] + o[:, j, u, z] * o[:, i, v, w]
            both = np.where(i == j, one, one + other)
            overlap[:, :, 2 + x, 2 + y] = both * _BASIS[x] * _BASIS[y]
    norms = norm_share(step.norm_variance, step.norm, *nodes)
    return ClassProducts(size, factor, overlap, alike, *nodes, norms, step.d)


class ClassBlock:
    """The fields Δ, Ω, (κκ), (κs), (ss) in the blocks of pairs of classes.

    information: Ṽ_q = √D nE[s_2s_2ᵀ/(1+χ)] √D, (B, K, K), with s_2 = 2m′.
    """

    fields = 5  # from Δ on, the last three of degree 2

    def __init__(self, parts: ClassProducts, information: FloatArray) -> None:
        self.parts, self.information = parts, information
        self.size = information.shape[-1]
        self._products = parts.size[..., :, None] * parts.size[..., None, :]

    @cached_property
    def _inverse(self) -> FloatArray:
        """J_P = (I + M_P)⁻¹, (B, P, K, K)."""
        return inverted(np.eye(self.size) + self._products * self.information[:, None])

    @cached_property
    def covariance(self) -> FloatArray:
        """C of the five fields in units of D, (B, 5K, 5K) (eq. 112)."""
        parts, rows = self.parts, len(self.information)
        found = np.zeros((rows, 5, self.size, 5, self.size))
        for x in range(5):
            for y in range(x + 1):
                left = parts.overlap[:, :, x, y, None] * parts.factor[:, :, x]
                right = parts.factor[:, :, y]
                own = (left[..., :, None] * right[..., None, :] * self._inverse).sum(axis=1)
                found[:, x, :, y], found[:, y, :, x] = own, transposed(own)
        found[:, 0, :, 0] += self._norms.covariance
        return found.reshape(rows, 5 * self.size, 5 * self.size)

    @cached_property
    def _norms(self) -> NormsInBlock:
        """What the norms of neurons share with the blocks."""
        parts = self.parts
        return NormsInBlock(parts.share, parts.bulk, parts.norm_share, parts.d, self.information)

    @cached_property
    def means(self) -> FloatArray:
        """Σ_c f_c(M_ccJ_cc − M_cc)/2, added to 𝒢 of A in units of 1/D, (B, K, K) (eq. 113)."""
        seen = self._products * self.information[:, None]
        lost = -matmul(seen, self._inverse, seen)
        return np.asarray(0.5 * (self.parts.alike[..., None, None] * lost).sum(axis=1))

    def force(self, dual: FloatArray) -> FloatArray:
        """Minus the gradient of x̃ᵀCx̃ by Ṽ_q, (B, K, K), for x̃ of the five fields (B, 5, K)."""
        parts = self.parts
        seen = parts.factor * dual[:, None]  # (B, P, 5, K)
        form = matmul(transposed(seen), parts.overlap, seen)
        answer = matmul(self._inverse, form, self._inverse)
        own = (self._products * answer).sum(axis=1)
        return np.asarray(own + self._norms.force(dual[:, 0]))

    def means_force(self, use: FloatArray) -> FloatArray:
        """The gradient of uᵀ·`means`·u by Ṽ_q, (B, K, K), for u (B, K)."""
        answer = matmul(self._inverse, use[:, None, :, None])[..., 0]  # (B, P, K)
        change = answer[..., :, None] * answer[..., None, :]
        change = change - (use[:, :, None] * use[:, None, :])[:, None]
        weight = 0.5 * self.parts.alike[..., None, None] * self._products
        return np.asarray((weight * change).sum(axis=1))
