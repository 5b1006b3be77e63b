"""Quadrature in s, what κ does not show of β⋆·x, jointly with the label (theory, section 35)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.types import BoolArray, FloatArray, IntArray
from ...functions.activations import HermiteSum
from ...functions.nonlinearity import Nonlinearity, innermost, normalised_hermite
from ...functions.quadrature import (
    Rule,
    gauss_hermite,
    gauss_legendre,
    normal_density,
    panels,
    trapezoid_normal,
)
from ...functions.targets import MeanSign
from ..labels import across_alignment
from .dyson import matmul

SIGNS = np.array([-1.0, 1.0])  # of labels, in the order of the first axis
_EDGES = np.array([-7.0, -4.6, -2.3, 0.0, 2.3, 4.6, 7.0])
_FAR_EDGES = np.linspace(-10.5, 10.5, 10)
_FINE_ORDER = 16  # nodes of a panel in integrals with a label's probability
_NEGLIGIBLE = 1e-10  # weight of a node of s, times 1 + s⁴
# Nodes of the panels between `_EDGES`; one number: Gauss–Hermite nodes instead for signs,
# equispaced ones for real labels.
Orders = tuple[int, ...]
FINE: Orders = (7, 10, 12, 12, 10, 7)
COARSE: Orders = (3, 5, 6, 6, 5, 3)
WHOLE: tuple[Orders, ...] = ((20,), (28,), (40,), (64,), (90,))  # rules without panels
_EQUISPACED_END = 8.2
_REAL_ORDER = 2  # times as many nodes a panel for real labels: the loss bends where y − f does
# Natural logarithms of the accuracy of averages over an output, on coarse rules and where κ is
# improbable.
DIGITS, _COARSE_DIGITS, _FEWEST_DIGITS = 25.3, 13.8, 4.0
_SIGN_HERMITE = 3  # of `WHOLE`, that have fewer nodes than the panels of signs


@dataclass(frozen=True)
class LabelRule:
    """Nodes of s given κ, and their weights with each label.

    E[F(y, κ, s)|κ] is the sum over labels and nodes of weight·F(label, κ, s). Axes have length 1
    where all problems, or all κ, share what an array has.
    """

    s: FloatArray  # (B or 1, Q or 1, S)
    label: FloatArray  # (L, B or 1, Q or 1, S or 1) ±1, or the real label without its noise
    weight: FloatArray  # (L, B or 1, Q or 1, S)
    changes: FloatArray  # (C, B, Q) distance of κ from places where E[y|κ] changes fast, in units
    parts: FloatArray | None = None  # (B, Q, 3) real labels as sums of 1, s, s² − 1, if they are
    digits: FloatArray | None = None  # (Q,) averages given κ are needed to e^{−digits}, if set
    most: FloatArray | None = (
        None  # (Q, S) `largest` of more problems, where these are some of them
    )

    @property
    def is_real(self) -> bool:
        """True if labels are real, False if they are signs."""
        return len(self.weight) == 1

    def take(self, rows: Any) -> LabelRule:
        """The same for some of the problems."""

        def part(values: FloatArray, axis: int) -> FloatArray:
            if values.shape[axis] == 1:
                return values
            return values[rows] if axis == 0 else values[:, rows]

        return LabelRule(
            part(self.s, 0),
            part(self.label, 1),
            part(self.weight, 1),
            part(self.changes, 1),
            None if self.parts is None else part(self.parts, 0),
            self.digits,
            self.largest,
        )

    @cached_property
    def basis(self) -> FloatArray:
        """1, s and s² − 1, (B or 1, Q or 1, S, 3)."""
        return np.stack([np.ones_like(self.s), self.s, self.s**2 - 1.0], axis=-1)

    @cached_property
    def powers(self) -> FloatArray:
        """s^k, k = 0 … 4, (B or 1, Q or 1, S, 5)."""
        square = self.s * self.s
        every = [np.ones_like(self.s), self.s, square, square * self.s, square * square]
        return np.stack(every, axis=-1)

    @property
    def needed_digits(self) -> FloatArray:
        """Natural logarithms of the accuracy of averages given κ, with their sign turned, (Q,)."""
        return np.full(self.weight.shape[2], DIGITS) if self.digits is None else self.digits

    @cached_property
    def reach(self) -> IntArray:
        """First and last (excluded) of the nodes of s that matter at each κ, (Q, 2)."""
        kept = self.largest > np.exp(-self.needed_digits)[:, None]
        return np.stack([kept.argmax(axis=1), kept.shape[1] - kept[:, ::-1].argmax(axis=1)], axis=1)

    @cached_property
    def largest(self) -> FloatArray:
        """Largest weights at each κ, in any problem, times 1 + s⁴, (Q, S)."""
        if self.most is not None:
            return self.most
        return np.asarray(np.abs(self.weight).max(axis=(0, 1)) * (1.0 + self.s**4).max(axis=(0, 1)))


def label_rule(
    stars: Sequence[Nonlinearity], alignment: FloatArray, kappa: FloatArray, orders: Orders = FINE
) -> LabelRule:
    """The rule of problems with these targets and alignments γ (B,) at κ (Q,), with so many nodes.

    Real labels have one target, signs the signs of one target with any noise and flips. κ is as
    important as it is probable.
    """
    rows: dict[tuple[Nonlinearity, float], int] = {}
    both = zip(stars, alignment.tolist(), strict=True)
    place = np.array([rows.setdefault(each, len(rows)) for each in both])
    each = np.array([gamma for _, gamma in rows])
    signs = tuple(star for star, _ in rows if isinstance(star, MeanSign))
    if not signs:
        found = _of_real_labels(stars[0], each, kappa, orders)
    elif len(orders) == 1:
        found = _of_signs_by_hermite(_Signs(signs), each, kappa, orders[0])
    else:
        found = _of_signs(_Signs(signs), each, kappa, orders)
    most, square = _COARSE_DIGITS if orders == COARSE else DIGITS, kappa**2
    digits = most - 0.5 * square + np.log1p(square)  # averages may be multiplied by κ²
    return replace(found.take(place), digits=np.clip(digits, _FEWEST_DIGITS, most))


@dataclass(frozen=True)
class _Signs:
    """Signs of one target, with noise and flips of their own in each of B problems."""

    stars: tuple[MeanSign, ...]

    def probability(self, t: FloatArray) -> FloatArray:
        """P(y = 1|t), (B, …)."""
        found = np.empty_like(t)
        for star in dict.fromkeys(self.stars):
            rows = [i for i, own in enumerate(self.stars) if own is star]
            found[rows] = star.probability(t[rows])
        return found

    @property
    def places(self) -> FloatArray:
        """Places t where the probability changes fast or bends, in order, (B, 1, C), ∞ at last."""
        each = [sorted([*star.crossings, *star.base.kinks]) for star in self.stars]
        found = np.full((len(each), 1, max(map(len, each))), np.inf)
        for row, places in zip(found, each, strict=True):
            row[0, : len(places)] = places
        return found

    def changes(self, place: FloatArray, across: FloatArray) -> FloatArray:
        """Distances in s of the places where E[y|t] changes its sign without flips, (C, B, Q)."""
        return np.asarray((np.array(self.stars[0].kinks)[:, None, None] - place) / across)


def node_count(orders: Orders, *, is_real: bool) -> int:
    """Nodes of s of a rule, where the target has no kinks."""
    if len(orders) == 1:
        s, w = _equispaced(orders[0]) if is_real else gauss_hermite(orders[0])
        return int(_matters(s, w).sum())
    return (_REAL_ORDER if is_real else 1) * sum(orders)


def _matters(s: FloatArray, weight: FloatArray) -> BoolArray:
    """True for the nodes s (S,) with a weight (…, S) that an average can tell from 0."""
    largest = np.abs(weight).reshape(-1, s.size).max(axis=0)
    return np.asarray(largest * (1.0 + s**4) > _NEGLIGIBLE)


def _equispaced(count: int) -> Rule:
    """About so many nodes of s, all at the same distance."""
    return trapezoid_normal(_EQUISPACED_END, 2.0 * _EQUISPACED_END / count)


def whole_orders(
    change: FloatArray,
    spread: FloatArray,
    kappa: FloatArray,
    *,
    accuracy: float,
    strip: float,
    is_real: bool,
) -> IntArray:
    """Which of `WHOLE` resolves functions of the output in s, for each problem; −1 if none does.

    change, spread: (B, Q), by how much the output's mean changes with s, and its standard
    deviation. Averages over the rest of the output are smooth at the scale spread/change. Times the
    density of s they have a Fourier transform that falls like e^{−ω²/2(1 + (change/spread)²)}: the
    trapezoidal rule of real labels needs it to be small at 2π over the distance of its nodes. Their
    Hermite coefficients fall like (1 + (spread/change)²)^{−k/2}, and by e^{−√k strip/change} more
    if the function is analytic in a strip of so much on both sides of the real axis: signs need k
    nodes, as their probability is a polynomial. κ is as important as it is probable.
    """
    digits = np.maximum(-np.log(accuracy) - 0.5 * kappa**2, 0.0)
    change = np.maximum(change, 1e-6 * spread)
    ratio = (change / spread) ** 2
    usable = WHOLE if is_real else WHOLE[:_SIGN_HERMITE]
    found = np.full(len(change), -1)
    for place, (count,) in reversed(list(enumerate(usable))):
        if is_real:
            lost = 0.5 * (np.pi * count / _EQUISPACED_END) ** 2 / (1.0 + ratio)
        else:
            lost = 0.5 * count * np.log1p(1.0 / ratio) + np.sqrt(count) * strip / change
        found[np.all(lost >= digits, axis=1)] = place
    return found


def _of_real_labels(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray, orders: Orders
) -> LabelRule:
    """Panels between the kinks of the target.

    Labels that are polynomials of degree 2 at most have equispaced nodes where these suffice.
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
            s, w = _equispaced(*(orders if len(orders) == 1 else WHOLE[0]))
            kept = _matters(s, w)
            return _of_shared_nodes(star, place, across, s[kept], w[kept], parts)
    if not star.kinks:
        each = [
            panels(np.array(ends), _REAL_ORDER * order)
            for ends, order in zip(pairwise(_EDGES), orders, strict=True)
        ]
        s, w = (np.concatenate(found) for found in zip(*each, strict=True))
        return _of_shared_nodes(star, place, across, s, w * normal_density(s), parts)
    kinks = np.array(star.kinks, dtype=np.float64)
    inside = (kinks - place[..., None]) / across[..., None]  # (B, Q, kinks)
    standard = np.broadcast_to(_EDGES, (*place.shape, _EDGES.size))
    edges = np.concatenate([standard, np.clip(inside, _EDGES[0], _EDGES[-1])], axis=-1)
    s, w = panels(np.sort(edges, axis=-1), _REAL_ORDER * max(orders))
    w = w * normal_density(s)
    w /= w.sum(axis=-1, keepdims=True)
    label = star(place[..., None] + across[..., None] * s)[None]
    return LabelRule(s, label, w[None], np.moveaxis(inside, -1, 0), parts)


def _of_shared_nodes(
    star: Nonlinearity,
    place: FloatArray,
    across: FloatArray,
    s: FloatArray,
    weight: FloatArray,
    parts: FloatArray | None,
) -> LabelRule:
    """Real labels at nodes that all problems and all κ share."""
    label = star(place[..., None] + across[..., None] * s)[None]
    weight = (weight / weight.sum())[None, None, None]
    return LabelRule(s[None, None], label, weight, np.zeros((0, *place.shape)), parts)


def is_quadratic(star: Nonlinearity) -> bool:
    """True if a target is a polynomial of degree 2 at most."""
    base = innermost(star)
    return isinstance(base, HermiteSum) and len(base.coefficients) <= 3


def _of_signs(
    labels: _Signs, alignment: FloatArray, kappa: FloatArray, orders: Orders
) -> LabelRule:
    """Weights that know where the label's probability π jumps, at nodes that do not.

    All but π is smooth in s: on every panel it is replaced by the polynomial through its values at
    the nodes, whose integral with π is taken on finer panels.
    """
    place = alignment[:, None] * kappa  # (B, Q)
    across = across_alignment(alignment)[:, None]
    crossings = (labels.places - place[..., None]) / across[..., None]
    nodes, weights = [], []
    for (low, high), order in zip(pairwise(_EDGES), orders, strict=True):
        x, w = gauss_legendre(order)
        legendre = np.polynomial.legendre.legvander(x, order - 1)  # (nodes, degrees)
        to_nodes = (w[:, None] * legendre * (np.arange(order) + 0.5)).T  # moments ↦ weights
        inside = np.clip(crossings, low, high)
        ends = (np.full((*place.shape, 1), low), np.full((*place.shape, 1), high))
        fine, fine_w = panels(np.concatenate([ends[0], inside, ends[1]], axis=-1), max(orders))
        probability = labels.probability(place[..., None] + across[..., None] * fine)
        local = (2.0 * fine - low - high) / (high - low)
        basis = np.polynomial.legendre.legvander(local, order - 1)  # (B, Q, fine, degrees)
        fine_w = fine_w * normal_density(fine)
        both = np.stack([fine_w * (1.0 - probability), fine_w * probability])
        moments = np.einsum("lbqf,bqfk->lbqk", both, basis, optimize=True)
        nodes.append(0.5 * (low + high) + 0.5 * (high - low) * x)
        weights.append(moments @ to_nodes)
    weight = np.concatenate(weights, axis=-1)
    weight /= weight.sum(axis=(0, 3), keepdims=True)
    changes = labels.changes(place, across)
    return LabelRule(np.concatenate(nodes)[None, None], SIGNS[:, None, None, None], weight, changes)


def _of_signs_by_hermite(
    labels: _Signs, alignment: FloatArray, kappa: FloatArray, count: int
) -> LabelRule:
    """The same with one polynomial for all s, through Gauss–Hermite nodes.

    Far fewer nodes where functions of s are smooth.
    """
    place = alignment[:, None] * kappa  # (B, Q)
    across = across_alignment(alignment)[:, None]
    inside = np.clip((labels.places - place[..., None]) / across[..., None], *_FAR_EDGES[[0, -1]])
    standard = np.broadcast_to(_FAR_EDGES, (*place.shape, _FAR_EDGES.size))
    edges = np.sort(np.concatenate([standard, inside], axis=-1), axis=-1)
    fine, fine_w = panels(edges, _FINE_ORDER)
    fine_w = fine_w * normal_density(fine)
    probability = labels.probability(place[..., None] + across[..., None] * fine)
    both = np.stack([fine_w * (1.0 - probability), fine_w * probability], axis=-1)
    s, w = gauss_hermite(count)
    moments = _hermite_moments(fine, both, count)  # (B, Q, L, count)
    weight = np.moveaxis(moments @ (normalised_hermite(count - 1, s) * w), 2, 0)
    kept = _matters(s, weight)
    s, weight = s[kept], weight[..., kept]
    changes = labels.changes(place, across)
    return LabelRule(s[None, None], SIGNS[:, None, None, None], weight, changes)


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
