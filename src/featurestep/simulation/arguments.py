"""What `simulate` and `simulated_spectrum` are both asked, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..core.checks import positive, whole_number
from ..core.errors import InsufficientMemory, InvalidProblem
from ..core.problem import Problem
from ..core.results import Progress
from .backend import Backend, make_backend
from .network.step import Variant, parse_variants
from .setting import Setting
from .streams import CHUNK, DeviceSource, Source, Streams, checked_seed, checked_streams

Costed = TypeVar("Costed")
DRAWN = ("host", "device")
UNLIMITED = 1 << 62  # bytes, for what is only costed, and where nobody knows a limit
SEEDS = 8  # draws of every verb that simulates, unless it is told otherwise


@dataclass(frozen=True)
class Draws:
    """Which networks are drawn, and which variants of each are looked at."""

    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    setting: Setting
    streams: Mapping[str, int]


@dataclass(frozen=True)
class Resources:
    """What computes, and how much memory it may take."""

    backend: Backend
    max_memory: int | None  # bytes
    block_rows: int | None  # whole chunks, in which rows are drawn
    drawn: str = "host"  # where random numbers are made

    @property
    def limit(self) -> tuple[int, str]:
        """Bytes a run may take, and what they are called."""
        if self.max_memory is not None:
            return self.max_memory, "max_memory"
        most = self.backend.limits.most
        return UNLIMITED if most is None else most, "usable memory"

    def source(self, streams: Sequence[Streams]) -> Source:
        """Where the rows of one seed, or of several, come from."""
        kind = DeviceSource if self.drawn == "device" else Source
        return kind(streams, self.backend)

    def record(self) -> dict[str, str]:
        """Versions, BLAS, dtype and device."""
        backend = self.backend
        made = {"dtype": backend.precision, "device": backend.name, "drawn": self.drawn}
        return {**backend.describe(), **made}


def make_draws(
    *,
    seeds: int | Iterable[int],
    variants: Iterable[str],
    setting: Setting | None,
    streams: Mapping[str, int] | None = None,
    beside: tuple[str, ...] = (),
) -> Draws:
    """The checked draws; `beside` names variants that are no feature maps."""
    setting = Setting() if setting is None else setting
    if not isinstance(setting, Setting):
        raise InvalidProblem("setting", "must be a Setting", setting)
    parsed = parse_variants(variants, beside)
    return Draws(checked_seeds(seeds), parsed, setting, checked_streams(streams))


def make_resources(
    *,
    dtype: str,
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
) -> Resources:
    """The checked resources; a GPU draws its own numbers unless it is told otherwise."""
    if drawn not in (None, *DRAWN):
        raise InvalidProblem("drawn", f"must be {' or '.join(DRAWN)}", drawn)
    if drawn == "device" and device == "cpu":
        raise InvalidProblem("drawn", "must be host where the device is cpu", drawn)
    return Resources(
        backend=make_backend(device, dtype),
        drawn=drawn or ("device" if device == "cuda" else "host"),
        max_memory=None if max_memory is None else int(positive("max_memory", max_memory)),
        block_rows=None if block_rows is None else _whole_chunks(block_rows),
    )


def costed(make: Callable[[Resources], Costed], resources: Resources) -> Costed:
    """What is made with these resources; where it does not fit a machine, what it would take.

    A limit that was asked for is kept.
    """
    try:
        return make(resources)
    except InsufficientMemory:
        if resources.max_memory is not None:
            raise
        return make(replace(resources, max_memory=UNLIMITED))


def checked_progress(progress: Progress | None) -> Progress | None:
    """Something to call, or None, or InvalidProblem."""
    if progress is not None and not callable(progress):
        raise InvalidProblem("progress", "must be callable", progress)
    return progress


def checked_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds behind a number or a list, or InvalidProblem."""
    whole = isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool)
    if whole and seeds >= 1:
        return tuple(range(int(seeds)))
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable):
        raise InvalidProblem("seeds", "must be a number >= 1 or a list of seeds", seeds)
    listed = tuple(checked_seed("seeds", seed) for seed in seeds)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidProblem("seeds", "must be distinct, and at least one", listed)
    return listed


def check_variants(problem: Problem, variants: tuple[Variant, ...]) -> None:
    """Refuse variants that describe one step where a problem has several."""
    if problem.steps == 1:
        return
    for variant in variants:
        if variant.degree or variant.base == "srf":
            rule = "must be trained, initial or gaussian with several steps"
            raise InvalidProblem("variants", rule, variant.name)


def _whole_chunks(block_rows: Any) -> int:
    return -(-whole_number("block_rows", block_rows) // CHUNK) * CHUNK
