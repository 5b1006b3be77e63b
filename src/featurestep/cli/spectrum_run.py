"""Computing spectra for the command line: many problems under one progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from typing import TYPE_CHECKING

import click

from .. import theory
from ..errors import FeaturestepError
from ..problem import Grid, Problem
from ..simulation import Estimate, SimulatedSpectrum, estimate_spectrum, simulated_spectrum
from .progress import Advance, shifted, watched

if TYPE_CHECKING:
    import xarray

_LONG = 20  # predictions from which a progress bar is worth its flicker
_TOP = 10  # simulated singular values with overlaps


def bar(total: int, words: str, *, wanted: bool = False) -> AbstractContextManager[Advance | None]:
    """A bar over points, when there is something to wait for."""
    return watched(total, lambda done: words) if wanted or total >= _LONG else nullcontext()


def follow(grid: Grid) -> xarray.Dataset:
    """Edges and spikes of a grid."""
    with bar(len(grid), "predicting") as advance:
        return theory.spectrum(grid, progress=shifted(advance, 0))


def announce(
    problems: Sequence[Problem], seeds: tuple[int, ...], variants: tuple[str, ...]
) -> list[int]:
    """State memory and flops on stderr, and return the flops of each problem."""
    each = [estimate_spectrum(p, seeds=seeds, variants=variants, top=_top(p)) for p in problems]
    click.echo(f"estimate: {Estimate.of_all(each)}", err=True)
    return [one.flops for one in each]


def simulate_one(problem: Problem, seeds: tuple[int, ...]) -> SimulatedSpectrum:
    """Features and weights of real networks."""
    (found,) = _simulate([problem], seeds, ("trained", "weights"))
    if isinstance(found, FeaturestepError):
        raise found
    return found


def simulate_all(grid: Grid, seeds: tuple[int, ...]) -> list[SimulatedSpectrum | str]:
    """Features at every point of a grid, or why there are none."""
    found = _simulate(list(grid), seeds, ("trained",))
    return [f"not simulated: {f}" if isinstance(f, FeaturestepError) else f for f in found]


def _simulate(
    problems: Sequence[Problem], seeds: tuple[int, ...], variants: tuple[str, ...]
) -> list[SimulatedSpectrum | FeaturestepError]:
    flops = announce(problems, seeds, variants)
    total = sum(flops)
    found: list[SimulatedSpectrum | FeaturestepError] = []
    with watched(total, lambda done: f"{done / 1e9:.4g} of {total / 1e9:.4g} Gflop") as advance:
        for problem, before in zip(problems, accumulate(flops, initial=0), strict=False):
            try:
                one = simulated_spectrum(
                    problem,
                    seeds=seeds,
                    variants=variants,
                    top=_top(problem),
                    progress=shifted(advance, before),
                )
            except FeaturestepError as error:
                found.append(error)
            else:
                found.append(one)
    return found


def _top(problem: Problem) -> int:
    return min(_TOP, problem.n, problem.d, problem.width)
