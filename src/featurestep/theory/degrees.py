"""Where a test error comes from, by Hermite polynomials of the learned direction and the others.

A label and a prediction are functions of κ and of s_1 … s_r, independent normal variables; s_i goes
with the target's i-th direction as it was given and is what κ does not show of it:
s = (I − ΓΓᵀ)^{-1/2}(z − Γκ), Γ_i the cosine of the learned direction with direction i (eq. 45).
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ..core.types import FloatArray
from ..functions.nonlinearity import normalised_hermite
from ..functions.quadrature import stretched_normal
from ..functions.targets import AlignedTarget, directions_rule
from .labels import fineness, label_moments, target_values

Degrees = dict[int | str | tuple[int, ...], float]
MOST_DEGREE = 8
KAPPA, WEIGHT = stretched_normal(((0.0, 0.25),), 1.0, 0.2, 9.5)


def multi_indices(variables: int, highest: int) -> list[tuple[int, ...]]:
    """Degrees of so many variables with a sum of at most `highest`, the lowest sums first."""
    every = itertools.product(range(highest + 1), repeat=variables)
    kept = [index for index in every if sum(index) <= highest]
    return sorted(kept, key=lambda index: (sum(index), [-degree for degree in index]))


def missed_by_degree(
    star: AlignedTarget, gamma: float, parts: FloatArray, test_error: float, highest: int
) -> Degrees:
    """Squared coefficients of what is missed, for a prediction with `parts` f_0 … f_r at KAPPA.

    The values add up to the test error.
    """
    labels = label_moments(star, np.array([gamma]), KAPPA)
    beside = star.rotation.T @ labels.linear[0]  # along the directions as given
    missed = np.concatenate([labels.mean, beside]) - parts
    total = float(((missed**2).sum(axis=0) + labels.rest[0]) @ WEIGHT)
    found = _target_coefficients(star, gamma, highest)
    hermite = normalised_hermite(highest, KAPPA) * WEIGHT
    degrees: Degrees = {}
    for index, wanted in found.items():
        a, others = index[0], index[1:]
        learned = 0.0
        if sum(others) <= 1:
            place = 1 + others.index(1) if any(others) else 0
            learned = float(hermite[a] @ parts[place])
        degrees[index] = (wanted - learned) ** 2
    known = float(sum(degrees.values()))
    degrees["higher"] = max(total - known, 0.0)
    degrees["rest"] = test_error - known - degrees["higher"]
    return degrees


@lru_cache(maxsize=32)
def _target_coefficients(
    star: AlignedTarget, gamma: float, highest: int
) -> dict[tuple[int, ...], float]:
    """E[y H_a(κ)H_b(s)]/√(a!b!) for every multi-index (a, b) up to a degree."""
    s, weight = directions_rule(star.directions, max(1, fineness(star)))
    beside = multi_indices(star.directions, highest)
    given = s @ star.rotation
    tables = [normalised_hermite(highest, column) for column in given.T]
    basis = np.stack(
        [
            np.prod([table[b] for table, b in zip(tables, index, strict=True)], axis=0)
            for index in beside
        ],
        axis=1,
    )  # (points, indices)
    values = [y @ (basis * weight[:, None]) for y in target_values(star, gamma, KAPPA, s)]
    hermite = normalised_hermite(highest, KAPPA) * WEIGHT
    table = hermite @ np.concatenate(values)  # (highest + 1, indices)
    places = {index: i for i, index in enumerate(beside)}
    return {
        index: float(table[index[0], places[index[1:]]])
        for index in multi_indices(1 + star.directions, highest)
    }
