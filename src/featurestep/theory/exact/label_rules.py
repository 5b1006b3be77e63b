"""Quadrature in s, what κ does not show of β⋆·x, jointly with the label (theory, section 35)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.types import BoolArray, FloatArray, IntArray
from ...functions.activations import HermiteSum
from ...functions.nonlinearity import Nonlinearity, innermost, normalised_hermite
from ...functions.quadrature import gauss_hermite, gauss_legendre, normal_density, panels
from ...functions.signs import MeanSign
from ..labels import across_alignment
from .dyson import matmul
from .losses import SIGNS

_EDGES = np.array([-7.0, -4.6, -2.3, 0.0, 2.3, 4.6, 7.0])
_FAR_EDGES = np.linspace(-10.5, 10.5, 10)
_FINE_ORDER = 16  # nodes of a panel in integrals with a label's probability
_NEGLIGIBLE = 1e-10  # weight of a node of s, times 1 + s⁴
Orders = tuple[int, ...]  # nodes of the panels between `_EDGES`; one number: Hermite nodes instead
FINE: Orders = (7, 10, 12, 12, 10, 7)
COARSE: Orders = (3, 5, 6, 6, 5, 3)
HERMITE: tuple[Orders, ...] = ((20,), (28,), (40,), (64,), (90,))
_REAL_ORDER = 2  # times as many nodes a panel for real labels: the loss bends where y − f does
_FACTORS = 4  # highest degree in s of what multiplies an average over the output
_SIGN_HERMITE = 3  # of them, that have fewer nodes than the panels of signs


@dataclass(frozen=True)
class LabelRule:
    """Nodes of s given κ, and their weights with each label.

    E[F(y, κ, s)|κ] is the sum over labels and nodes of weight·F(label, κ, s). Problems of one
    alignment share it: B is 1 where all do.
    """

    s: FloatArray  # (B or 1, Q or 1, S)
    label: FloatArray  # (L, B or 1, Q or 1, S or 1) ±1, or the real label without its noise
    weight: FloatArray  # (L, B, Q, S)
    changes: FloatArray  # (C, B, Q) distance of κ from places where E[y|κ] changes fast, in units
    parts: FloatArray | None = None  # (B, Q, 3) real labels as sums of 1, s, s² − 1, if they are

    @property
    def is_real(self) -> bool:
        """True if labels are real, False if they are signs."""
        return len(self.weight) == 1

    def take(self, rows: Any) -> LabelRule:
        """The same for some of the problems."""
        if self.weight.shape[1] == 1:
            return self
        s = self.s if len(self.s) == 1 else self.s[rows]
        label = self.label if self.label.shape[1] == 1 else self.label[:, rows]
        parts = None if self.parts is None else self.parts[rows]
        return LabelRule(s, label, self.weight[:, rows], self.changes[:, rows], parts)

    @cached_property
    def basis(self) -> FloatArray:
        """1, s and s² − 1, (B or 1, Q or 1, S, 3)."""
        return np.stack([np.ones_like(self.s), self.s, self.s**2 - 1.0], axis=-1)

    @cached_property
    def products(self) -> FloatArray:
        """Products of two of them, (B or 1, Q or 1, S, 9)."""
        product = self.basis[..., :, None] * self.basis[..., None, :]
        return product.reshape(*product.shape[:3], 9)


def label_rule(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray, orders: Orders = FINE
) -> LabelRule:
    """The rule at alignments γ (B,) and κ (Q,), with so many nodes."""
    each, place = np.unique(alignment, return_inverse=True)
    if not isinstance(star, MeanSign):
        found = _of_real_labels(star, each, kappa, orders)
    elif len(orders) == 1:
        found = _of_signs_by_hermite(star, each, kappa, orders[0])
    else:
        found = _of_signs(star, each, kappa, orders)
    return found.take(place)


def node_count(orders: Orders, *, is_real: bool) -> int:
    """Nodes of s of a rule, where the target has no kinks."""
    if len(orders) == 1:
        s, w = gauss_hermite(orders[0])
        return int(_matters(s, w).sum())
    return (_REAL_ORDER if is_real else 1) * sum(orders)


def _matters(s: FloatArray, weight: FloatArray) -> BoolArray:
    """True for the nodes s (S,) with a weight (…, S) that an average can tell from 0."""
    largest = np.abs(weight).reshape(-1, s.size).max(axis=0)
    return np.asarray(largest * (1.0 + s**4) > _NEGLIGIBLE)


def hermite_orders(
    change: FloatArray,
    spread: FloatArray,
    kappa: FloatArray,
    *,
    accuracy: float,
    strip: float,
    is_real: bool,
) -> IntArray:
    """Which of `HERMITE` resolves functions of the output in s, for each problem; −1 if none does.

    change, spread: (B, Q), by how much the output's mean changes with s, and its standard
    deviation. The Hermite coefficients in s of any function that is averaged over the rest of the
    output fall like (1 + (spread/change)²)^{−k/2}, and by e^{−√k strip/change} more if the function
    is analytic in a strip of so much on both sides of the real axis. Signs need k nodes, as their
    probability is a polynomial; other labels k/2, and some for the factors s and s² − 1. κ is as
    important as it is probable.
    """
    digits = np.maximum(-np.log(accuracy) - 0.5 * kappa**2, 0.0)
    change = np.maximum(change, 1e-6 * spread)
    usable = HERMITE if is_real else HERMITE[:_SIGN_HERMITE]
    found = np.full(len(change), -1)
    for place, (count,) in reversed(list(enumerate(usable))):
        k = 2 * (count - _FACTORS) if is_real else count
        lost = 0.5 * k * np.log1p((spread / change) ** 2) + np.sqrt(k) * strip / change
        found[np.all(lost >= digits, axis=1)] = place
    return found


def _of_real_labels(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray, orders: Orders
) -> LabelRule:
    """Panels between the kinks of the target.

    Labels that are polynomials of degree 2 at most have Gauss–Hermite nodes where these suffice.
    """
    place = alignment[:, None] * kappa
    across = across_alignment(alignment)[:, None]
    parts = None
    if is_quadratic(star):
        s, w = gauss_hermite(3)
        parts = (star(place[..., None] + across[..., None] * s) * w) @ np.stack(
            [np.ones_like(s), s, 0.5 * (s**2 - 1.0)], axis=1
        )
        if orders != FINE:
            (count,) = orders if len(orders) == 1 else HERMITE[1]
            s, w = gauss_hermite(count)
            s, w = s[_matters(s, w)], w[_matters(s, w)]
            label = star(place[..., None] + across[..., None] * s)[None]
            weight = np.broadcast_to(w, (1, *place.shape, w.size))
            return LabelRule(s[None, None], label, weight, np.zeros((0, *place.shape)), parts)
    kinks = np.array(star.kinks, dtype=np.float64)
    inside = (kinks - place[..., None]) / across[..., None]  # (B, Q, kinks)
    standard = np.broadcast_to(_EDGES, (*place.shape, _EDGES.size))
    edges = np.concatenate([standard, np.clip(inside, _EDGES[0], _EDGES[-1])], axis=-1)
    s, w = panels(np.sort(edges, axis=-1), _REAL_ORDER * max(orders))
    w = w * normal_density(s)
    w /= w.sum(axis=-1, keepdims=True)
    label = star(place[..., None] + across[..., None] * s)[None]
    return LabelRule(s, label, w[None], np.moveaxis(inside, -1, 0), parts)


def is_quadratic(star: Nonlinearity) -> bool:
    """True if a target is a polynomial of degree 2 at most."""
    base = innermost(star)
    return isinstance(base, HermiteSum) and len(base.coefficients) <= 3


def _of_signs(
    star: MeanSign, alignment: FloatArray, kappa: FloatArray, orders: Orders
) -> LabelRule:
    """Weights that know where the label's probability π jumps, at nodes that do not.

    All but π is smooth in s: on every panel it is replaced by the polynomial through its values at
    the nodes, whose integral with π is taken on finer panels.
    """
    place = alignment[:, None] * kappa  # (B, Q)
    across = across_alignment(alignment)[:, None]
    places = np.sort(np.array([*star.crossings, *star.base.kinks]))
    crossings = (places - place[..., None]) / across[..., None]
    nodes, weights = [], []
    for (low, high), order in zip(pairwise(_EDGES), orders, strict=True):
        x, w = gauss_legendre(order)
        legendre = np.polynomial.legendre.legvander(x, order - 1)  # (nodes, degrees)
        to_nodes = (w[:, None] * legendre * (np.arange(order) + 0.5)).T  # moments ↦ weights
        inside = np.clip(crossings, low, high)
        ends = (np.full((*place.shape, 1), low), np.full((*place.shape, 1), high))
        fine, fine_w = panels(np.concatenate([ends[0], inside, ends[1]], axis=-1), max(orders))
        probability = star.probability(place[..., None] + across[..., None] * fine)
        local = (2.0 * fine - low - high) / (high - low)
        basis = np.polynomial.legendre.legvander(local, order - 1)  # (B, Q, fine, degrees)
        fine_w = fine_w * normal_density(fine)
        both = np.stack([fine_w * (1.0 - probability), fine_w * probability])
        moments = np.einsum("lbqf,bqfk->lbqk", both, basis, optimize=True)
        nodes.append(0.5 * (low + high) + 0.5 * (high - low) * x)
        weights.append(moments @ to_nodes)
    weight = np.concatenate(weights, axis=-1)
    weight /= weight.sum(axis=(0, 3), keepdims=True)
    signs = (np.array(star.kinks)[:, None, None] - place) / across  # (C, B, Q)
    return LabelRule(np.concatenate(nodes)[None, None], SIGNS[:, None, None, None], weight, signs)


def _of_signs_by_hermite(
    star: MeanSign, alignment: FloatArray, kappa: FloatArray, count: int
) -> LabelRule:
    """The same with one polynomial for all s, through Gauss–Hermite nodes.

    Far fewer nodes where functions of s are smooth.
    """
    place = alignment[:, None] * kappa  # (B, Q)
    across = across_alignment(alignment)[:, None]
    places = np.array([*star.crossings, *star.base.kinks])
    inside = np.clip((places - place[..., None]) / across[..., None], *_FAR_EDGES[[0, -1]])
    standard = np.broadcast_to(_FAR_EDGES, (*place.shape, _FAR_EDGES.size))
    edges = np.sort(np.concatenate([standard, inside], axis=-1), axis=-1)
    fine, fine_w = panels(edges, _FINE_ORDER)
    fine_w = fine_w * normal_density(fine)
    probability = star.probability(place[..., None] + across[..., None] * fine)
    both = np.stack([fine_w * (1.0 - probability), fine_w * probability], axis=-1)
    s, w = gauss_hermite(count)
    moments = _hermite_moments(fine, both, count)  # (B, Q, L, count)
    weight = np.moveaxis(moments @ (normalised_hermite(count - 1, s) * w), 2, 0)
    kept = _matters(s, weight)
    s, weight = s[kept], weight[..., kept]
    signs = (np.array(star.kinks)[:, None, None] - place) / across  # (C, B, Q)
    return LabelRule(s[None, None], SIGNS[:, None, None, None], weight, signs)


def _hermite_moments(x: FloatArray, weight: FloatArray, count: int) -> FloatArray:
    """Σ_f weight·H_k(x)/√k! for k < count, (B, Q, L, count); x (B, Q, f), weight (B, Q, f, L).

    One polynomial at a time: a table of all of them costs three times as much.
    """
    moments = np.empty((*x.shape[:2], weight.shape[-1], count))
    before, now, rest = np.zeros_like(x), np.ones_like(x), np.empty_like(x)
    for k in range(count):
        moments[..., k] = matmul(now[..., None, :], weight)[..., 0, :]
        np.multiply(x, now, out=rest)
        before *= np.sqrt(float(k))
        rest -= before
        rest /= np.sqrt(k + 1.0)
        before, now, rest = now, rest, before
    return moments
