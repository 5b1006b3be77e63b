"""What a figure claims, with the numbers that support it, and the error when it does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FeaturestepError
from ..meeting.comparison import Z_LIMIT, within


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, with the figure's numbers on it."""

    text: str
    holds: bool


class FigureClaimFailed(FeaturestepError):
    """The data of a figure contradict what it claims; `claims` has all of them."""

    kind = "figure"

    def __init__(self, figure: str, claims: tuple[Claim, ...]) -> None:
        self.figure = figure
        self.claims = claims
        failed = "; ".join(claim.text for claim in claims if not claim.holds)
        super().__init__(f"{self.kind} {figure} does not bear out its claim: {failed}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.figure, self.claims)


def settled(figure: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims, all of which hold; FigureClaimFailed if one does not."""
    listed = tuple(claims)
    if not all(claim.holds for claim in listed):
        raise FigureClaimFailed(figure, listed)
    return listed


def agreement(
    what: str, predicted: Any, simulated: Any, standard_error: Any, admitted: Any = 0.0
) -> Claim:
    """Theory within Z_LIMIT standard errors of a simulation, and what its own notes admit.

    `admitted` is the relative error that the notes of each point admit: the `allowance` of a
    grid's predictions.
    """
    predicted, simulated, error, admitted = np.broadcast_arrays(
        *(np.asarray(array) for array in (predicted, simulated, standard_error, admitted))
    )
    gap, exact = simulated - predicted, admitted == 0.0
    z = (np.abs(gap) / error)[exact]
    text = f"{what}: theory within {Z_LIMIT:g} s.e. of the simulation at {z.size} points"
    text += f" (largest gap {z.max(initial=0.0):.1f} s.e.)"
    if not exact.all():
        off = np.abs(gap / predicted)[~exact].max()
        most = admitted.max()
        text += f"; where its notes admit up to {most:.1%}, at {np.sum(~exact)} points, "
        text += f"at most {off:.1%} apart"
    # A NaN must not pass, nor a figure whose every point is excused.
    holds = z.size and np.all(within(gap, predicted, error, admitted)) and np.all(np.isfinite(gap))
    return Claim(text, bool(holds))


def below(what: str, value: float, error: float, other: float, *, by: float = Z_LIMIT) -> Claim:
    """A simulated value lies below another by so many standard errors."""
    z = (other - value) / error
    text = f"{what}: {value:.4g} ± {error:.2g} against {other:.4g}, {z:.1f} s.e. lower"
    return Claim(f"{text} (at least {by:g})", bool(z >= by))
