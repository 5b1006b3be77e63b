"""Eigenvalues that single large entries of F push out of the bulk.

An entry f of row i and column j makes an eigenvalue where 1 + f² h_i g_j = 0, with h = 1/(1+χ) of
the row and g = V2/N of the column. Its vectors sit on that row and that column: it carries no
function of κ and is no spike. Activations with heavy tails have some up to very large n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...functions.quadrature import normal_density
from ...problem import Problem
from ..exact.dyson import bare_determinant
from ..exact.residuals import residual_law
from ..exact.spikes import R_NODES, groups_seen
from ..exact.step import Row, noise_of
from ..exact.weights import ExactWeights
from .branch import Branch
from .continued import Equations
from .edges import Edge

_EXPECTED = 0.05  # such eigenvalues in a draw that may lie beyond the reach
_END, _POINTS = 8.5, 341
_FURTHEST = 4.0  # in edges
_FURTHER = 1.04  # from place to place, around the reach of a similar problem


def entry_reach(problem: Problem, equations: Equations, edge: Edge) -> float:
    """The place beyond which hardly a draw has an eigenvalue of this kind, at least the edge."""
    if not equations.batch.varies:  # no heavy tails
        return edge.location
    return _last(equations, edge, _entries(problem, equations))


def sample_reach(problem: Problem, equations: Equations, edge: Edge) -> float:
    """How far single samples of the step, with a large residual r, push eigenvalues.

    Such a sample makes one where I − N(r)Γ is singular (eq. 22). Where r is unbounded, the bulk has
    no sharp end: it is given for a law of r that a few samples exceed, and the reach for a law that
    hardly a draw exceeds. In the same way single neurons with a large |g| reach beyond a bulk that
    was solved with few groups.
    """
    law = residual_law(problem.star, noise_of(Row(problem)), R_NODES, problem.n_step / _EXPECTED)
    r = np.linspace(law.nodes.min(), law.nodes.max(), _POINTS)
    side = equations.batch.exact
    every = replace(side.step, r=r[None])

    def reaches(branch: Branch) -> bool:
        point = equations.point(branch)
        weights = point.weights
        assert isinstance(weights, ExactWeights)
        if np.any(bare_determinant(every, weights.blocks.coupled.real) < 0.0):
            return True
        seen = groups_seen(weights, side, point.v2.real, equations.mass(point))
        return bool(np.any(seen.outside))

    return _last(equations, edge, reaches)


def _last(equations: Equations, edge: Edge, reaches: Callable[[Branch], bool]) -> float:
    """The highest place that is reached, by halving, first around that of a similar problem."""
    if not reaches(edge.at):
        return edge.location
    low, high, near = edge.location, _FURTHEST * edge.location, edge.path[-1]
    place = low * (equations.near.reach or (high / low) ** 0.5)
    while high > equations.fineness.reach * low:
        found = equations.at(np.array([place + 0j]), near)
        near = found if found.converged[0] else near
        beyond = bool(found.converged[0]) and not reaches(found)
        low, high = (low, place) if beyond else (place, high)
        further = low * _FURTHER if place == low else high / _FURTHER
        place = further if equations.near.reach and low < further < high else (low * high) ** 0.5
    equations.trail.reach = high / edge.location
    return high


def _entries(problem: Problem, equations: Equations) -> Callable[[Branch], bool]:
    """Whether some entry is expected to make an eigenvalue above a place above the bulk."""
    batch = equations.batch
    z = np.linspace(-_END, _END, _POINTS)
    weight = normal_density(z) / normal_density(z).sum()
    place = batch.shift[0] * batch.kappa[:, None]
    values = problem.sigma(place[:, :, None] + batch.norm[0][:, None] * z)
    squares = (values - batch.mean[0][:, :, None]) ** 2  # (Q, K, points)

    def reaches(branch: Branch) -> bool:
        shrink = 1.0 / (1.0 + branch.chi[0].real)
        needed = -1.0 / (shrink[:, None] * branch.v2[0].real / batch.neurons[0])  # (Q, K)
        chance = (squares > needed[:, :, None]) @ weight
        return bool(equations.n * batch.weight @ chance @ batch.neurons[0] > _EXPECTED)

    return reaches
