"""The spectrum's axes, which stay where they are while the step grows.

The singular value's axis is linear over the bulk and logarithmic beyond. Where it bends, where it
ends and how high the density may be come from the untrained network's bulk and from the features'
mean at the largest step: so none of them depends on the step exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .state import State

_BULK = 0.66  # of the axis, up to the bend
_ROOM = 1.3  # from the untrained bulk's edge to the bend: the bulk widens as it is trained
_HIGHEST = 3.2  # of the density, over its mean from 0 to the edge, in a bulk of usual shape
_POLE = 2.5  # times that: what is higher is not shown whole
_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def nice(value: float) -> float:
    """The next round number outwards: axes that stay while a curve moves are easy to read."""
    if value <= 0.0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * scale >= 0.999999 * value) * scale


@dataclass(frozen=True)
class SpectrumAxes:
    """Where a singular value is drawn, from 0 to 1, and the largest density."""

    bend: float
    right: float
    top: float

    @property
    def is_bent(self) -> bool:
        """Whether anything lies beyond the linear part."""
        return self.right > self.bend

    def place(self, s: Iterable[float]) -> list[float]:
        """Positions of singular values on the axis."""
        values = np.asarray(list(s), dtype=np.float64)
        if not self.is_bent:
            return [float(x) for x in values / self.bend]
        beyond = np.log(np.maximum(values, self.bend) / self.bend) / math.log(
            self.right / self.bend
        )
        linear = _BULK * np.minimum(values, self.bend) / self.bend
        return [float(x) for x in linear + (1.0 - _BULK) * beyond]

    def as_dict(self) -> dict[str, float]:
        """What a script needs to put other values on this axis."""
        return {"bend": self.bend, "right": self.right, "share": _BULK}

    def ticks(self) -> list[float]:
        """Round numbers: even steps over the bulk, then 1, 2, 5, 10, … beyond."""
        step = next(s for s in _rounds() if self.bend / s <= 6.0)
        inner = [k * step for k in range(1 + math.floor(self.bend / step + 1e-9))]
        outer = [x for x in _rounds() if 1.3 * self.bend < x <= self.right]
        return inner + outer[:: -(-len(outer) // 4) if outer else 1]

    def reaching(self, spikes: Sequence[float], density: Sequence[float]) -> SpectrumAxes:
        """The same with room for all spikes and for the density, if that has no pole at 0."""
        right = max([self.right, *(nice(1.1 * s) for s in spikes if s > self.right)])
        highest = max(density, default=0.0)
        top = nice(1.1 * highest) if highest < _POLE * self.top else self.top
        return replace(self, right=right, top=max(self.top, top))


def _rounds() -> list[float]:
    return [m * 10.0**k for k in range(-3, 8) for m in (1, 2, 5)]


def spectrum_axes(state: State) -> SpectrumAxes:
    """The axes of every step exponent up to 1/2, and of larger steps as needed."""
    from ..theory.limits import largest_mean, untrained_edge  # the engine, for workers only

    problem = state.problem
    edge = untrained_edge(problem)
    width = min(1.0, problem.n / problem.width) / edge
    bend, top = nice(_ROOM * edge), nice(1.1 * _HIGHEST * width)
    if problem.step_size == 0.0:
        return SpectrumAxes(bend, bend, top)
    scale = state.step_scale if state.step == "exponent" else 1.0
    largest = problem.replace(step_size=max(scale * problem.n**0.5, problem.step_size))
    furthest = math.hypot(largest_mean(largest), edge)
    return SpectrumAxes(bend, max(nice(1.2 * furthest), bend), top)
