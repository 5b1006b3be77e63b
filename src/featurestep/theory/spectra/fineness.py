"""How finely the spectrum is solved: in full, or as a draft that follows a moving slider.

And on which rung of the ladder of attempts (`model`).
"""

from __future__ import annotations

from dataclasses import dataclass

STRAY = 40.0  # twice the samples whose residual may exceed the end of the law of r


@dataclass(frozen=True)
class Fineness:
    """Where each of the searches may stop; the defaults are those of `spectrum`."""

    rules: float = 1.0  # least number of nodes of κ and groups of neurons, 1 in full
    residual: float = 1e-12  # of the equations, at places that count
    accepted: float = 1e-9  # where rounding or an edge stops Newton's method before that
    first: int = 16  # nodes that an interval of the bulk begins with
    most: int = 768  # of them
    density: float = 1e-8  # change of the density under a doubling of its nodes, largest value 1
    moment: float = 1e-2  # gap of the second moment beyond which the bulk counts as not resolved
    edge: float = 1e-9  # relative change of Y; that of the edge itself is its square
    spike: float = 1e-11  # relative change of √(z/E − 1), for a spike z beyond the edge E
    newton: int = 25  # steps along the real axis, at most
    reach: float = 1.0004  # factor to which the reach of single samples is found
    steps: int = 20  # from the upper half-plane down to the bulk
    last: float = 1e-6  # height of the last of them, relative to the place
    work: float = 1e10  # at most, in units of one multiplication: some 10 s

    @property
    def seen(self) -> float:
        """A relative step whose second difference is not that of residuals."""
        return float(10.0 * self.residual**0.5)


@dataclass(frozen=True)
class Rung:
    """One attempt; the defaults are the first."""

    factor: float = 1.0  # on the fineness that is needed
    stray: float = STRAY
    varies: bool = True  # whether rows and columns vary by chance, where that can be seen
    blurred: bool = False  # whether the bulk is seen from above the axis
    light: bool = False  # whether a continuous law has isotropic weights, which are quick
    rough: bool = False  # whether the law of r and the spikes' groups are as coarse as in a draft


@dataclass
class Budget:
    """Work that is left, in units of one multiplication."""

    left: float


FIRST = Rung()
FULL = Fineness()
DRAFT = Fineness(
    rules=0.5,
    residual=1e-6,
    accepted=1e-5,
    first=8,
    most=64,
    density=3e-3,
    moment=5e-2,
    edge=5e-3,
    spike=1e-5,
    newton=9,
    reach=1.015,
    steps=6,
    last=0.03,
    work=1.5e8,
)
