"""What a figure claims, with the numbers that support it, and the error when it does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FeaturestepError
from ..meeting.comparison import Z_LIMIT


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, with the figure's numbers on it."""

    text: str
    holds: bool


class FigureClaimFailed(FeaturestepError):
    """The data of a figure contradict what it claims; `claims` has all of them."""

    def __init__(self, figure: str, claims: tuple[Claim, ...]) -> None:
        self.figure = figure
        self.claims = claims
        failed = "; ".join(claim.text for claim in claims if not claim.holds)
        super().__init__(f"figure {figure} does not bear out its claim: {failed}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.figure, self.claims)


def settled(figure: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims, all of which hold; FigureClaimFailed if one does not."""
    listed = tuple(claims)
    if not all(claim.holds for claim in listed):
        raise FigureClaimFailed(figure, listed)
    return listed


def agreement(
    what: str, predicted: Any, simulated: Any, standard_error: Any, noted: Any = False
) -> Claim:
    """Theory within Z_LIMIT standard errors of a simulation, wherever it claims to be exact.

    At points that are `noted` the prediction is known to leave the range of an approximation:
    there the claim only reports how far off it is.
    """
    predicted, simulated, error, noted = np.broadcast_arrays(
        *(np.asarray(array) for array in (predicted, simulated, standard_error, noted))
    )
    noted = noted.astype(bool)
    z = np.abs(simulated - predicted) / error
    exact = z[~noted]
    text = f"{what}: theory within {Z_LIMIT:g} s.e. of the simulation at {exact.size} points"
    text += f" (largest gap {exact.max(initial=0.0):.1f} s.e.)"
    if noted.any():
        gap = np.abs(simulated / predicted - 1.0)[noted].max()
        text += f"; where it is approximate, at {noted.sum()} points, at most {gap:.1%} apart"
    # A NaN must not pass.
    return Claim(text, bool(exact.size and np.all(exact <= Z_LIMIT) and np.all(np.isfinite(z))))


def below(what: str, value: float, error: float, other: float, *, by: float = Z_LIMIT) -> Claim:
    """A simulated value lies below another by so many standard errors."""
    z = (other - value) / error
    text = f"{what}: {value:.4g} ± {error:.2g} against {other:.4g}, {z:.1f} s.e. lower"
    return Claim(f"{text} (at least {by:g})", bool(z >= by))
