"""The task that follows the spectrum's upper end: the bulk's edge and the spikes beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...problem import Problem
from ...theory import Spectrum, spectrum
from .base import Task, Values, Work, each


@dataclass(frozen=True, kw_only=True)
class SpectrumTask(Task):
    """Edge, number of resolved spikes, and location_k, degree_k, resolved_k, largest first."""

    name: ClassVar[str] = "spectrum"
    batch: ClassVar[int] = 4
    meanings: ClassVar[Mapping[str, str]] = {
        **{name: Spectrum.MEANINGS[name] for name in ("edge", "margin", "count")},
        **{
            f"{name}_{rank}": f"{Spectrum.MEANINGS[name]} (number {rank})"
            for rank in range(1, 7)
            for name in ("location", "degree", "resolved")
        },
    }

    def compute(self, work: Sequence[Work]) -> list[Values | Exception]:
        return each(work, _summary)


def _summary(problem: Problem) -> Values:
    found = spectrum(problem)
    values: Values = {
        "edge": float(found.edge),
        "margin": float(found.margin),
        "count": found.count,
    }
    for rank, spike in enumerate(found.spikes, start=1):
        values[f"location_{rank}"] = float(spike.location)
        values[f"degree_{rank}"] = int(spike.degree)
        values[f"resolved_{rank}"] = bool(spike.resolved)
    return values
