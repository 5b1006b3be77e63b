"""Products of two inputs with a covariance: one block of coordinates for each pair of classes.

The part of degree 2 of a feature is m′_g(w̃ᵀx̃x̃ᵀw̃ − tr) with w̃ = Σ^½w′. A product x̃_ax̃_b has the
variance 4k_gak_gb/d² over the neurons, so that products of two strong directions are learned before
others: every pair of classes is a block of degree 2, as every pair of nodes of the bulk is one for
isotropic inputs at finite d (`degrees`). The fields (κκ), (κs), (ss) and the norms of the initial
weights lie in these blocks, and their covariances are sums over the blocks' resolvents.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray
from .degrees import symmetric_square
from .dyson import inverted, matmul, transposed
from .inputs import Classes
from .sectors import Sector
from .step import Step

MAX_CLASSES, KEPT = 12, 8  # in pairs, and those of them that are single classes
_BASIS = np.array([np.sqrt(0.5), 1.0, np.sqrt(0.5)])  # h_2(κ), κs, h_2(s) in κ² − 1, κs, s² − 1
_SMALLEST = 1e-9  # eigenvalue of 𝒦_g, relative to the largest
_PAIR = ((0, 0), (0, 1), (1, 1))  # (κκ), (κs), (ss) as pairs of directions


class ClassProducts(NamedTuple):
    """What fields have in the blocks of pairs P of classes: Δ, Ω, (κκ), (κs), (ss)."""

    size: FloatArray  # (B, P, K) ½a_P of (110)
    factor: FloatArray  # (B, P, 5, K) of a field
    overlap: FloatArray  # (B, P, 5, 5) of two fields
    alike: FloatArray  # (B, P) f_c of pairs of a class with itself, 0 of others

    def take(self, rows: Any) -> ClassProducts:
        """The same for some of the rows."""
        return ClassProducts(*(part[rows] for part in self))


class PairClasses(NamedTuple):
    """What products need of C classes; of many, those with small eigenvalues are joined."""

    share: FloatArray  # (B, C) f_c
    variance: FloatArray  # (B, C, K) k_gc
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
        mean(classes.own_norm),
        mean(classes.initial_norm),
        np.add.reduceat(direction_overlaps(step, classes), starts, axis=1),
    )


def pair_sector(step: Step, classes: PairClasses, curvature: FloatArray) -> Sector:
    """Blocks of degree 2, one for each pair of classes (eq. 110).

    curvature: m′, (B, Q, K). The table is √2ρ²m′, all of the variance of degree 2; a block has the
    share n_P/(d²/2) of coordinates.
    """
    i, j = np.triu_indices(classes.share.shape[1])
    f, d = classes.share, step.d[:, None]
    share = np.where(i == j, f[:, i] * (f[:, i] + 1.0 / d), 2.0 * f[:, i] * f[:, j])
    norm = step.norm[:, None, :] ** 2
    factor = np.sqrt(classes.variance[:, i] * classes.variance[:, j]) / norm
    return Sector(0.5 * step.d**2, np.sqrt(2.0) * norm * curvature, share, factor)


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


def class_products(step: Step, classes: PairClasses) -> ClassProducts:
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
    return ClassProducts(size, factor, overlap, alike)


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
        return found.reshape(rows, 5 * self.size, 5 * self.size)

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
        return np.asarray((self._products * answer).sum(axis=1))

    def means_force(self, use: FloatArray) -> FloatArray:
        """The gradient of uᵀ·`means`·u by Ṽ_q, (B, K, K), for u (B, K)."""
        answer = matmul(self._inverse, use[:, None, :, None])[..., 0]  # (B, P, K)
        change = answer[..., :, None] * answer[..., None, :]
        change = change - (use[:, :, None] * use[:, None, :])[:, None]
        weight = 0.5 * self.parts.alike[..., None, None] * self._products
        return np.asarray((weight * change).sum(axis=1))
