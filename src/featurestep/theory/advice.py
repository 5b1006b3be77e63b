"""What would lower the floors of `learnable`: other laws, activations, samples, a second step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import FeaturestepError
from ..problem import Problem
from ..spiked import spiked_weights
from .reach import floors

if TYPE_CHECKING:
    from .learnable import Learnable

LAWS = ("constant", "rademacher", "gaussian")
ACTIVATIONS = ("relu", "tanh", "gelu", "sigmoid")


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


def advice(found: Learnable) -> Iterator[str]:
    """What would lower the floors, one line each."""
    gain = max(0.05 * (found.class_floor - found.problem.noise_std**2), 0.005 * found.power)
    if spiked_weights(found.problem).alignment == 0.0:
        yield (
            "E[y z] = 0: the step finds no direction of the target, and nothing but its mean is "
            "learned at n_step of order d"
        )
        return
    if found.class_floor - found.class_floor_many > gain:
        yield f"more samples in the step: the floor falls to {found.class_floor_many:.4g}"
    single = found.class_floor
    for what, others in (
        ("readout law", found.other_laws),
        ("activation", found.other_activations),
    ):
        if others:
            best = min(others, key=lambda name: others[name])
            single = min(single, others[best])
            if found.class_floor - others[best] > gain:
                yield f"another {what}: {best} has a floor of {others[best]:.4g}"
    activation, law, floor = found.best_pair
    if single - floor > gain:
        yield f"another activation and law: {activation} with {law} has a floor of {floor:.4g}"
    if found.floor_many - found.floor_second > gain:
        yield (
            "a second step, on fresh samples: it sees directions that the first one could only "
            f"use linearly, and the floor falls to {found.floor_second:.4g}"
        )
    never = [term.name for term in found.terms if term.verdict == "never"]
    if never:
        yield f"no activation, law or number of samples makes one step learn {', '.join(never)}"
