"""The published intervals of the step exponent, and a clear answer at their ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

_AT_END = 1e-9


@dataclass(frozen=True)
class Regime:
    """Where a step exponent lies: the degree ℓ where it is defined, and the reason in words."""

    exponent: float | None
    degree: int | None
    text: str

    def __str__(self) -> str:
        return self.text


def interval(degree: int) -> tuple[float, float]:
    """Open interval ((ℓ−1)/2ℓ, ℓ/(2ℓ+2)) of exponents with ℓ learned degrees."""
    if degree == 0:
        return -math.inf, 0.0
    return (degree - 1) / (2 * degree), degree / (2 * degree + 2)


def regime_of(exponent: float | None, *, at_size: int | None = None) -> Regime:
    """The regime of η = n^exponent; None stands for a step of size 0."""
    if exponent is None:
        return Regime(None, 0, "step size 0: the untrained network (degree 0)")
    name = f"step exponent {exponent:.6g}"
    if at_size is not None:
        name += f" (of the given step size, at n = {at_size})"
    if exponent < -_AT_END:
        return Regime(exponent, 0, f"{name} is below 0: nothing is learned (degree 0)")
    if exponent >= 0.5 - _AT_END:
        where = "is the maximal step" if exponent <= 0.5 + _AT_END else "is beyond the maximal step"
        text = f"{name} {where} 1/2: every degree is learned in part; the degree is undefined"
        return Regime(exponent, None, text)
    ratio = 1.0 / (1.0 - 2.0 * exponent)  # ℓ at the lower end of its interval
    nearest = max(1, round(ratio))
    if abs(exponent - interval(nearest)[0]) <= _AT_END:
        text = (
            f"{name} is the boundary between degree {nearest - 1} and degree {nearest}: "
            "the new spike is partly formed and the degree is undefined"
        )
        return Regime(exponent, None, text)
    degree = math.floor(ratio)
    low, high = interval(degree)
    return Regime(exponent, degree, f"{name} is in ({low:.4g}, {high:.4g}): degree {degree}")
