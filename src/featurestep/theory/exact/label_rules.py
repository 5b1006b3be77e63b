"""Quadrature in s, what κ does not show of β⋆·x, jointly with the label (theory, section 35)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...core.types import FloatArray, IntArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import gauss_legendre, normal_density, panels
from ...functions.signs import MeanSign
from ..labels import across_alignment
from .losses import SIGNS

_EDGES = np.array([-7.0, -4.6, -2.3, 0.0, 2.3, 4.6, 7.0])
FINE, COARSE = 12, 6  # nodes of a panel


@dataclass(frozen=True)
class LabelRule:
    """Nodes of s given κ, and their weights with each label.

    E[F(y, κ, s)|κ] is the sum over labels and nodes of weight·F(label, κ, s).
    """

    s: FloatArray  # (B or 1, Q or 1, S)
    label: FloatArray  # (L, B or 1, Q or 1, S or 1) ±1, or the real label without its noise
    weight: FloatArray  # (L, B, Q, S)
    changes: FloatArray  # (C, B, Q) distance of κ from places where E[y|κ] changes fast, in units

    @property
    def is_real(self) -> bool:
        """True if labels are real, False if they are signs."""
        return len(self.weight) == 1

    def take(self, rows: IntArray) -> LabelRule:
        """The same for some of the problems."""
        if self.s.shape[0] == 1 and self.weight.shape[1] > 1:
            return LabelRule(self.s, self.label, self.weight[:, rows], self.changes[:, rows])
        return LabelRule(
            self.s[rows], self.label[:, rows], self.weight[:, rows], self.changes[:, rows]
        )


def label_rule(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray, order: int = FINE
) -> LabelRule:
    """The rule at alignments γ (B,) and κ (Q,), with `order` nodes in each panel."""
    if isinstance(star, MeanSign):
        return _of_signs(star, alignment, kappa, order)
    place = alignment[:, None] * kappa
    across = across_alignment(alignment)[:, None]
    kinks = np.array(star.kinks, dtype=np.float64)
    inside = (kinks - place[..., None]) / across[..., None]  # (B, Q, kinks)
    standard = np.broadcast_to(_EDGES, (*place.shape, _EDGES.size))
    edges = np.concatenate([standard, np.clip(inside, _EDGES[0], _EDGES[-1])], axis=-1)
    s, w = panels(np.sort(edges, axis=-1), 2 * order)  # the loss bends where y − f does
    w = w * normal_density(s)
    w /= w.sum(axis=-1, keepdims=True)
    label = star(place[..., None] + across[..., None] * s)[None]
    return LabelRule(s, label, w[None], np.moveaxis(inside, -1, 0))


def _of_signs(star: MeanSign, alignment: FloatArray, kappa: FloatArray, order: int) -> LabelRule:
    """Weights that know where the label's probability π jumps, at nodes that do not.

    All but π is smooth in s: on every panel it is replaced by the polynomial through its values at
    the nodes, whose integral with π is taken on finer panels.
    """
    place = alignment[:, None] * kappa  # (B, Q)
    across = across_alignment(alignment)[:, None]
    places = np.sort(np.array([*star.crossings, *star.base.kinks]))
    crossings = (places - place[..., None]) / across[..., None]
    x, w = gauss_legendre(order)
    degrees = np.arange(order)
    legendre = np.polynomial.legendre.legvander(x, order - 1)  # (nodes, degrees)
    to_nodes = (w[:, None] * legendre * (degrees + 0.5)).T  # moments ↦ weights
    nodes, weights = [], []
    for low, high in pairwise(_EDGES):
        inside = np.clip(crossings, low, high)
        ends = (np.full((*place.shape, 1), low), np.full((*place.shape, 1), high))
        fine, fine_w = panels(np.concatenate([ends[0], inside, ends[1]], axis=-1), order)
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
