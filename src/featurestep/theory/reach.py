"""The functions that one step can express at all: section 25, for an activation, law and step.

To leading order the network computes f_0(κ) + Σ s_i f_i(κ) with f_0 in the span of m_g, κμ_g and
m′_g and every f_i in that of μ_g, g over the groups of neurons. What lies outside is never learned,
however many samples and neurons there are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ..core.errors import FeaturestepError
from ..core.problem import Problem
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import normalised_hermite
from ..functions.quadrature import trapezoid_normal
from ..functions.targets import AlignedTarget
from .exact.solve import R_NODES
from .exact.step import build_step, rows_of
from .labels import label_moments
from .resolution import Effort, choose

LAWS = ("constant", "rademacher", "gaussian")
ACTIVATIONS = ("relu", "tanh", "gelu", "sigmoid")
_RELEVANT = 1e-7  # of a function that the groups differ by: smaller ones count as absent
_ROUNDING = 1e-12
_SEEN = 1e-9  # square of E[y z_i|z_1], as a share of E y²


@dataclass(frozen=True)
class Reach:
    """Orthonormal functions of κ, at nodes of its law: what f_0 and what every f_i are made of."""

    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,)
    plain: FloatArray  # (Q, ·) of f_0
    beside: FloatArray  # (Q, ·) of f_i

    def missed(self, mean: FloatArray, linear: FloatArray) -> float:
        """E of the squares of what f_0 misses of y_0 and f_i of y_1i, (Q,) and (r, Q)."""
        parts = [_outside(self.plain, self.weight, mean)]
        parts += [_outside(self.beside, self.weight, part) for part in linear]
        return float(sum(parts))

    def expressed(self, index: tuple[int, ...], gamma: float) -> float:
        """The share of a term, alone, that lies in the span of the network's functions."""
        a, beside = index[0], sum(index[1:])
        if beside > 1:
            return 0.0
        hermite = normalised_hermite(a, self.kappa)
        nothing = np.zeros_like(self.kappa)
        along = gamma**a * hermite[a]
        if beside == 1:
            parts: tuple[FloatArray, FloatArray] = nothing, along
        else:
            linear = np.sqrt(a * (1.0 - gamma**2)) * gamma ** (a - 1) * hermite[a - 1]
            parts = along, linear
        whole = sum(float(self.weight @ part**2) for part in parts)
        return max(whole - self.missed(parts[0], parts[1][None]), 0.0)


def possible(index: tuple[int, ...], gamma: float) -> float:
    """The share of a term that (52) leaves: functions of κ, and linear ones of s times them."""
    a, beside = index[0], sum(index[1:])
    if beside == 0:
        return float(gamma ** (2 * a) + a * gamma ** (2 * a - 2) * (1.0 - gamma**2))
    return float(gamma ** (2 * a)) if beside == 1 else 0.0


def reaches(problem: Problem) -> list[tuple[float, Reach]]:
    """What the problem's own activation, law and step can express, by initial offset (41)."""
    weights = spiked_weights(problem)
    resolution = choose(problem, weights, Effort(), "exact")
    groups, (kappa, weight) = resolution.group_rule(), resolution.node_rule()
    rows = rows_of(problem)
    step = build_step(rows, groups, R_NODES)
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    mean, slope, bend, _ = problem.sigma.averages(norm, place, 2)
    every = np.concatenate([mean, kappa[:, None] * slope, bend], axis=2)
    return [
        (row.share, Reach(kappa, weight, _basis(every[i], weight), _basis(slope[i], weight)))
        for i, row in enumerate(rows)
    ]


def floors(problem: Problem) -> tuple[float, float]:
    """The floor (52), and that of the problem's own activation, law and step."""
    alignment = np.array([spiked_weights(problem).alignment])
    noise = problem.noise_std**2
    total = 0.0
    for share, reach in reaches(problem):
        labels = label_moments(problem.star, alignment, reach.kappa)
        outside = float(reach.weight @ labels.rest[0])
        total += share * (outside + reach.missed(labels.mean[0], labels.linear[0]))
    return outside + noise, total + noise


def others(problem: Problem, field: str, values: tuple[str, ...]) -> dict[str, float]:
    """Class floors with other values of a field, those that can be asked for."""
    found = {
        value: _class_floor(problem, **{field: value})
        for value in values
        if problem.given[field] != value
    }
    return {value: floor for value, floor in found.items() if floor is not None}


def best_pair(problem: Problem, own: float) -> tuple[str, str, float]:
    """The activation and law with the lowest floor; the problem's own where none is lower."""
    best = (problem.sigma.name, problem.law.name, own)
    for activation, law in itertools.product(ACTIVATIONS, LAWS):
        floor = _class_floor(problem, activation=activation, readout=law)
        if floor is not None and floor < best[2] * (1.0 - 1e-6):
            best = (activation, law, floor)
    return best


def _class_floor(problem: Problem, **changes: str) -> float | None:
    """The floor of the same problem with another activation or law, None if it cannot be asked."""
    try:
        return floors(problem.replace(**changes))[1]
    except FeaturestepError:
        return None


def second_step_floor(problem: Problem) -> float:
    """(52) once more, with every direction known that a second step can see, n_step/d → ∞.

    Given z_1 a second step meets E[y z_i|z_1]: directions in which that vanishes stay unseen. Where
    E[y z] = 0 the first step has learned nothing, and the second is a first one again.
    """
    star, noise = problem.star, problem.noise_std**2
    if not isinstance(star, AlignedTarget):
        return noise if spiked_weights(problem).alignment else star.second_moment + noise
    if star.slope == 0.0:
        return floors(problem.replace(n_step=MANY))[0]
    x, w = trapezoid_normal(8.4, 0.28)
    z = np.stack(np.meshgrid(*[x] * star.directions, indexing="ij"), axis=-1)
    turn, known = _seen_directions(star, star(z), x, w)
    return noise + _beyond_linear(star(z @ turn), known, x, w)


MANY = 10**15  # samples in a step


def _seen_directions(
    star: AlignedTarget, values: FloatArray, x: FloatArray, w: FloatArray
) -> tuple[FloatArray, int]:
    """A basis whose first axes are z_1 and the directions of E[y z|z_1], and their number."""
    count = star.directions
    beside = np.stack([_average(values, x, w, axis, range(1, count)) for axis in range(1, count)])
    sizes, vectors = np.linalg.eigh((beside * w) @ beside.T)  # growing
    turn = np.eye(count)
    turn[1:, 1:] = vectors[:, ::-1].T
    return turn, 1 + int(np.sum(sizes > _SEEN * star.second_moment))


def _average(
    values: FloatArray, x: FloatArray, w: FloatArray, linear: int | None, axes: range
) -> FloatArray:
    """E over some axes, the last ones, times z along one of them."""
    for axis in reversed(axes):
        values = np.tensordot(values, w * x if axis == linear else w, axes=([axis], [0]))
    return values


def _beyond_linear(values: FloatArray, known: int, x: FloatArray, w: FloatArray) -> float:
    """E of the square of g without its parts of degree 0 and 1 in the axes after `known`."""
    axes = range(known, values.ndim)
    left = _square(values, w) - _square(_average(values, x, w, None, axes), w)
    for axis in axes:
        left -= _square(_average(values, x, w, axis, axes), w)
    return left if left > _ROUNDING * _square(values, w) else 0.0


def _square(values: FloatArray, w: FloatArray) -> float:
    return float(_average(values**2, w, w, None, range(values.ndim)))


def _basis(columns: FloatArray, weight: FloatArray) -> FloatArray:
    """Orthonormal functions that span the columns, in L² of the law of κ."""
    root = np.sqrt(weight)[:, None]
    size = np.sqrt((weight[:, None] * columns**2).sum(axis=0))
    scaled = root * columns[:, size > 0.0] / size[size > 0.0]
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    kept = values > _RELEVANT * values.max(initial=0.0)
    return np.asarray(left[:, kept] / np.maximum(root, 1e-300))


def _outside(basis: FloatArray, weight: FloatArray, values: FloatArray) -> float:
    """E of the square of what the basis misses."""
    inside = basis.T @ (weight * values)
    return max(float(weight @ values**2 - inside @ inside), 0.0)
