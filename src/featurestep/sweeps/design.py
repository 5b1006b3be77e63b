"""Designs: random or Sobol points over a box of fields."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..axes import SCALES, count_of, finite, placed, positive_ends
from ..errors import InvalidProblem
from ..reading import known_keys, listed, one_of, table
from ..types import FloatArray


def design_fields(
    path: str, value: dict[str, Any], names: Collection[str]
) -> dict[str, tuple[Any, ...]]:
    """Random or Sobol points of a box; a longer design begins with the shorter one."""
    known_keys(path, value, ("kind", "points", "seed", "box"))
    kind = one_of(f"{path}.kind", value.get("kind"), ("sobol", "random"))
    count = count_of(f"{path}.points", value.get("points"))
    seed = value.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidProblem(f"{path}.seed", "must be a whole number >= 0", seed)
    box = table(f"{path}.box", value.get("box"))
    if not box:
        raise InvalidProblem(f"{path}.box", "must not be empty", box)
    known_keys(f"{path}.box", box, names)
    sides = {field: _Side.read(f"{path}.box.{field}", side) for field, side in box.items()}
    unit = _sobol(len(box), count, seed) if kind == "sobol" else _random(len(box), count, seed)
    return {
        field: placed(field, side.place(unit[:, column]))
        for column, (field, side) in enumerate(sides.items())
    }


@dataclass(frozen=True)
class _Side:
    """One side of a design's box."""

    low: float
    high: float
    log: bool

    @classmethod
    def read(cls, path: str, value: Any) -> _Side:
        if not isinstance(value, Mapping):
            ends = listed(path, value)
            if len(ends) != 2:
                raise InvalidProblem(path, "must be [low, high]", ends)
            value = {"low": ends[0], "high": ends[1]}
        side = table(path, value)
        known_keys(path, side, ("low", "high", "scale"))
        low, high = (finite(f"{path}.{end}", side.get(end)) for end in ("low", "high"))
        if not low < high:
            raise InvalidProblem(path, "must have low < high", [low, high])
        log = one_of(f"{path}.scale", side.get("scale", "linear"), SCALES) == "log"
        if log:
            positive_ends(path, low, high)
        return cls(low, high, log)

    def place(self, unit: FloatArray) -> FloatArray:
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** unit)
        return self.low + (self.high - self.low) * unit


def _sobol(sides: int, count: int, seed: int) -> FloatArray:
    from scipy.stats import qmc

    # Whole powers of two keep the sequence balanced, and a longer design extends a shorter one.
    power = max(0, math.ceil(math.log2(count)))
    sequence = qmc.Sobol(sides, scramble=True, seed=seed)
    return np.asarray(sequence.random_base2(power)[:count], dtype=np.float64)


def _random(sides: int, count: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).random((count, sides))
