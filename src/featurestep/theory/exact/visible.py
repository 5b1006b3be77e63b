"""The largest direction of the inputs, where it has a visible share: section 44.

Neurons are grouped by what they have of that direction, samples are nodes of their coordinate x
there, and all other directions are the bulk. The step is then one whose groups have a shift before
it, as in later steps of `several_steps`: tables of σ′ depend on the group and on x.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Problem
from ...core.spiked import linear_part, spiked_weights
from ...core.types import FloatArray
from ...functions.quadrature import Rule, gauss_from_measure, gauss_hermite
from ..several_steps.laws import joint_law
from ..several_steps.tables import SlopeTables, slope_tables
from .inputs import Parts, largest_share

GROUPS, MORE_GROUPS = 7, 9  # of neurons by their part along the direction
PLACES, MORE_PLACES = 13, 21  # nodes of h of (121) for the readout
LARGE_SHARE = 0.3  # from which there are more of both
_STEP_PLACES, _LABELS = 9, 8  # nodes of x in the step, and of r at each
_OVERLAPS, _NOISES = 21, 7  # nodes of a neuron's part before the step, and of its noise
_DEGREE = 4  # of constants of the step as polynomials in a neuron's part


@dataclass(frozen=True)
class VisibleDirection:
    """What conditioning on the coordinate x of one direction adds to B steps of K groups."""

    target: FloatArray  # (B,) θ_a, the target's part along it
    rest: FloatArray  # (B,) √(1 − θ_a²), the target's part in all other directions
    along: FloatArray  # (B,) the part of κ's direction, whitened, along it
    loading: FloatArray  # (B, K) L_g: pre-activations have L_gx
    aside: FloatArray  # (B, K) their shift along s
    cross: FloatArray  # (B, M, K) rk_g and r²δ_g of (22) at the nodes (r, x)
    own: FloatArray  # (B, M, K)
    places: int  # nodes of h for the readout

    def take(self, rows: Any) -> VisibleDirection:
        """The same for some of the rows."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return VisibleDirection(
            **{name: v if name == "places" else v[rows] for name, v in values.items()}
        )

    def along_kappa(
        self, shift: FloatArray, norm: FloatArray, neurons: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean shift along κ of all inputs and norm of the rest, (B, K), for each readout value.

        shift and norm are those beside the direction, (B, K); neurons (K/G, G) for G values.
        """
        part = neurons / neurons.sum(axis=0)
        along = self.along[:, None]
        square = norm**2 + shift**2 + self.loading**2 + self.aside**2
        shift = along * self.loading + np.sqrt(1.0 - along**2) * shift
        mean, size = (
            (part * each.reshape(-1, *part.shape)).sum(axis=1) for each in (shift, square)
        )
        rest = np.sqrt(np.maximum(size - mean**2, 0.0))
        return np.tile(mean, len(part)), np.tile(rest, len(part))

    def rule(self) -> Rule:
        """Nodes and weights of h."""
        return gauss_hermite(self.places)


class ConditionedLaw(NamedTuple):
    """The law of (r, x): nodes as those of `ResidualLaw`, with s for the target's other part."""

    eigenvalue: float
    target: float  # θ_a
    rest: float  # √(1 − θ_a²)
    along: float  # the part of κ's direction, whitened, along this one
    groups: int  # of neurons by their part along it
    places: int  # nodes of h for the readout
    nodes: FloatArray  # (M,) r
    weight: FloatArray  # (M,)
    first: FloatArray  # (1, M) of E[s f]
    second: FloatArray  # (1, 1, M)
    overlaps: FloatArray  # (1, 4) E[s r^j]
    x: FloatArray  # (X,) places
    place: FloatArray  # (M, X) one where a node is at a place


def conditioned_law(problem: Problem, parts: Parts) -> ConditionedLaw:
    """The law of the residual with the coordinate x of the first of a problem's classes (eq. 116).

    t = θ_ax + √(1 − θ_a²) s.
    """
    eigenvalue, mass = float(parts[0][0]), float(parts[2][0])
    target, rest = np.sqrt(mass), np.sqrt(1.0 - mass)
    weights = spiked_weights(problem)
    along = eigenvalue * target * linear_part(problem.star)[1] / weights.beta_norm
    large = largest_share(problem, weights) >= LARGE_SHARE
    x, w = gauss_hermite(_STEP_PLACES)
    law = joint_law(
        problem.star,
        problem.noise_std,
        np.array([[target]]),
        np.array([[rest]]),
        (x[:, None], w),
        _LABELS,
    )
    s = law.first[1:]
    return ConditionedLaw(
        eigenvalue,
        float(target),
        float(rest),
        float(along),
        MORE_GROUPS if large else GROUPS,
        MORE_PLACES if large else PLACES,
        nodes=law.y,
        weight=law.weight,
        first=s,
        second=law.second[1:, 1:],
        overlaps=s @ law.y[:, None] ** np.arange(4),
        x=x,
        place=np.equal.outer(law.place, np.arange(x.size)).astype(float),
    )


class Elsewhere(NamedTuple):
    """The directions beside the visible one."""

    beta: float  # ‖b‖ there
    alignment: float  # γ and q with the target's part there
    across: float
    powers: FloatArray  # (7,) Σ f_cs_c^k
    target: FloatArray  # (3,) Σ t_cs_c^k over Σ t_c


class VisibleStep(NamedTuple):
    """Constants of K groups after the step."""

    share: FloatArray  # (K,) of a group's neurons
    loading: FloatArray  # L_g
    drift: FloatArray  # E[rk_g], in the place of k_gm_1
    slope: FloatArray  # E k_g
    spread: FloatArray  # e²φ0E[r²ψ̃²], in the place of e²φ0b_2 Var σ′
    shift: FloatArray  # u_g along κ
    aside: FloatArray  # along s
    left: FloatArray  # of the squared shift, beside κ and s
    cross: FloatArray  # (M, K) rk_g
    own: FloatArray  # (M, K) r²δ_g


def visible_step(
    problem: Problem,
    law: ConditionedLaw,
    elsewhere: Elsewhere,
    e: FloatArray,
    norm: FloatArray,
) -> VisibleStep:
    """The step of G groups, each cut into several by what neurons have along x (eq. 117).

    e, norm: (G,), the steps and the norms of other initial weights. A neuron has o ~ N(0, s_a/d)
    along the direction before the step and L after it. L decides what a feature is: the other
    constants, smooth in o, are replaced by means given L. Groups are those of the first node of L,
    then those of the next.
    """
    d, rows, phi = float(problem.d), float(problem.n_step), problem.d / problem.n_step
    overlap, w_overlap = gauss_hermite(_OVERLAPS)
    noise, w_noise = gauss_hermite(_NOISES if np.any(e) else 1)
    before = np.sqrt(law.eigenvalue / d) * overlap  # o
    each = np.repeat(before, e.size)  # (OG,)
    e, norm = np.tile(e, before.size), np.tile(norm, before.size)
    tables = slope_tables(problem.sigma, norm, law.x[:, None] * each)  # (X, OG)
    r = law.nodes
    powers = (law.weight * r ** np.arange(3)[:, None]) @ law.place  # E[r^j; x], (3, X)
    with_s = (law.first[0] * r) @ law.place  # E[rs; x]
    moved = each + e * law.eigenvalue * ((law.x * powers[1]) @ tables.mean)
    varied = (law.x**2 * powers[2]) @ tables.variance / rows
    turned = (law.x * with_s) @ tables.slope * np.sqrt(elsewhere.target[1] / d)
    spread_of = np.abs(e) * law.eigenvalue * np.sqrt(varied + turned**2)
    drift = e * (powers[1] @ tables.slope)
    shift, aside, left = _shifts(law, elsewhere, phi, e, with_s, powers, tables)
    tilts = _tilts(law, elsewhere, d, np.sign(e) * turned, varied, drift)
    constants = np.stack(
        [
            drift,
            e * (powers[0] @ tables.slope),
            e**2 * phi * (powers[2] @ tables.variance),
            shift,
            aside,
            left,
        ]
    )
    every = np.concatenate([constants, e * tables.slope, e**2 * phi * tables.noise])
    # Per initial group: nodes of L, and means given L.
    shape = (overlap.size, -1)
    moved, spread_of = moved.reshape(shape), spread_of.reshape(shape)
    every, tilts = every.reshape(len(every), *shape), tilts.reshape(2, *shape)
    weight = np.outer(w_overlap, w_noise)
    nodes = []
    for group in range(moved.shape[1]):
        places = moved[:, group, None] + spread_of[:, group, None] * noise
        loading, share, given = _given_loading(places, weight, law.groups)  # given (J, O, R)
        means = every[:, :, group] @ given.sum(axis=2).T
        means[3:5] += tilts[:, :, group] @ (given @ noise).T
        nodes.append((loading, share, means))
    loading, share = (np.stack([node[i] for node in nodes], axis=1).ravel() for i in (0, 1))
    found = np.stack([node[2] for node in nodes], axis=2).reshape(len(every), -1)
    drift, slope, spread, shift, aside, left = found[:6]
    cross, own = np.split(found[6:], 2)
    return VisibleStep(
        share=share,
        loading=loading,
        drift=drift,
        slope=slope,
        spread=np.maximum(spread, 0.0),
        shift=shift,
        aside=aside,
        left=np.maximum(left, 0.0),
        cross=r[:, None] * (law.place @ cross),
        own=(r**2)[:, None] * (law.place @ np.maximum(own, 0.0)),
    )


def visible_direction(law: ConditionedLaw, step: VisibleStep) -> VisibleDirection:
    """What the columns and labels of one problem need."""
    return VisibleDirection(
        target=np.array([law.target]),
        rest=np.array([law.rest]),
        along=np.array([law.along]),
        loading=step.loading[None],
        aside=step.aside[None],
        cross=step.cross[None],
        own=step.own[None],
        places=law.places,
    )


def _shifts(
    law: ConditionedLaw,
    elsewhere: Elsewhere,
    phi: float,
    e: FloatArray,
    with_s: FloatArray,
    powers: FloatArray,
    tables: SlopeTables,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shifts along κ and s, and what is left of their square, (OG,) each (eq. 118)."""
    _, first, second = elsewhere.target
    on_s, on_r = with_s @ tables.mean, powers[2] @ tables.mean  # E[s r m̃], E[r² m̃]
    noise = phi * elsewhere.powers[2]
    shift = e * (second * on_s * law.overlaps[0, 1] + noise * on_r) / elsewhere.beta
    aside = (e * on_s * first - elsewhere.alignment * shift) / elsewhere.across
    whole = e**2 * (second * on_s**2 + noise * (powers[2] @ tables.mean**2))
    return shift, aside, np.maximum(whole - shift**2 - aside**2, 0.0)


def _tilts(
    law: ConditionedLaw,
    elsewhere: Elsewhere,
    d: float,
    turned: FloatArray,
    varied: FloatArray,
    drift: FloatArray,
) -> FloatArray:
    """What neurons have along κ and s after the step for each unit of ζ, (2, OG), of (118).

    `turned` is the part of ζ's coefficient in L that their initial part along the target makes.
    """
    _, first, second = elsewhere.target
    part = turned / np.maximum(np.sqrt(varied + turned**2), 1e-300)
    along_target = np.sqrt(first / d) * (1.0 + drift * second / first) * part
    ratio = law.overlaps[0, 1] * second / (elsewhere.beta * first)
    rest = (1.0 - elsewhere.alignment * ratio) / elsewhere.across
    return np.stack([ratio * along_target, rest * along_target])


def _given_loading(
    places: FloatArray, weight: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gauss nodes of L, and means given L of other constants as polynomials in L (eq. 119).

    places: L at nodes of o and of its noise, (O, R), with weights (O, R). Nodes and weights (J,),
    and the weights of the means, (J, O, R).
    """
    x, w = places.ravel(), weight.ravel()
    rule = gauss_from_measure(x, w, count)
    scale = max(float(np.sqrt(w @ x**2)), 1e-300)
    degrees = np.arange(min(_DEGREE, rule.nodes.size - 1) + 1)[:, None]
    basis = (x / scale) ** degrees
    gram = (basis * w) @ basis.T
    project = np.linalg.solve(gram, basis * w)
    at_nodes = ((rule.nodes / scale) ** degrees).T @ project  # (J, OR)
    shares = rule.weights / rule.weights.sum()
    return rule.nodes, shares, np.asarray(at_nodes.reshape(-1, *places.shape))
