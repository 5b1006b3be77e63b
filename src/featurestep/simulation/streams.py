"""Randomness: named, independent streams, each addressed by counters rather than by history.

A stream's generator depends on the seed, the stream's name and a key only, and rows are drawn in
chunks of fixed size with one key each. So a row is the same whatever the block size, the number
of threads or the total number of rows, and samples of different sizes are nested.

Rows come from NumPy's generators on the host, or from counters on the device. Several seeds at
once make one more axis, in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem
from ..core.threads import workers
from ..core.types import FloatArray
from .backend import Array, Backend
from .philox import fill
from .setting import NORMAL, RowLaw

STREAMS = (
    *("data", "initialisation", "readout", "noise", "test", "teacher", "equivalent"),
    *("probes", "flips"),  # a new stream goes last: the place of a name is part of its key
)
CHUNK = 64  # rows drawn with one key

Fill = Callable[[np.random.Generator, FloatArray], None]


@dataclass(frozen=True)
class Streams:
    """The generators of one seed; `fixed` pins named streams to seeds of their own."""

    seed: int
    fixed: Mapping[str, int] = field(default_factory=dict)

    def generator(self, name: str, *key: int) -> np.random.Generator:
        """The generator of a stream at a key."""
        return np.random.Generator(np.random.Philox(self._sequence(name, *key)))

    def _sequence(self, name: str, *key: int) -> np.random.SeedSequence:
        entropy = self.fixed.get(name, self.seed)
        return np.random.SeedSequence(entropy, spawn_key=(STREAMS.index(name), *key))

    def key(self, name: str, *key: int) -> np.ndarray[Any, Any]:
        """The two words that stand for a stream at a key in the device's generator."""
        return self._sequence(name, *key).generate_state(2)

    def rows(self, name: str, part: int, start: int, out: FloatArray, fill: Fill) -> None:
        """Rows start … start + len(out) of a part of a stream; start is a multiple of CHUNK."""
        if start % CHUNK:
            raise ValueError(f"start must be a multiple of {CHUNK}; got {start}")

        def draw(offset: int) -> None:
            chunk = out[offset : offset + CHUNK]
            generator = self.generator(name, part, (start + offset) // CHUNK)
            if len(chunk) == CHUNK:
                fill(generator, chunk)
            else:  # a partial chunk is the beginning of a whole one
                whole = np.empty((CHUNK, *out.shape[1:]))
                fill(generator, whole)
                chunk[:] = whole[: len(chunk)]

        workers().map(draw, range(0, len(out), CHUNK))


class Source:
    """Rows of one seed's streams, or of several seeds'; NumPy draws, on all threads."""

    def __init__(self, streams: Sequence[Streams], backend: Backend) -> None:
        self.backend = backend
        self.streams = streams
        self.lead = (len(streams),) if len(streams) > 1 else ()
        self._buffer = np.empty((0, 0))  # fresh memory costs more than its use

    def rows(
        self, name: str, part: int, start: int, shape: tuple[int, int], law: RowLaw, *, reuse: bool
    ) -> Array:
        """Rows start … of a part of a stream, in the backend's precision.

        With `reuse` they may lie where the next rows asked for will.
        """
        wanted = (*self.lead, *shape)
        if not reuse:
            return self.backend.put(self._drawn(np.empty(wanted), name, part, start, law))
        kept = self._buffer.shape
        if (*kept[:-2], kept[-1]) != (*self.lead, shape[1]) or kept[-2] < shape[0]:
            self._buffer = np.empty(wanted)
        out = self._buffer[..., : shape[0], :]
        return self.backend.put(self._drawn(out, name, part, start, law))

    def column(self, name: str, part: int, start: int, count: int) -> Array:
        """Standard normals, one for each row, in float64."""
        out = np.empty((*self.lead, count))
        return self.backend.wide(self._drawn(out, name, part, start, NORMAL))

    def _drawn(self, out: Array, name: str, part: int, start: int, law: RowLaw) -> Array:
        targets = out if self.lead else out[None]
        for streams, target in zip(self.streams, targets, strict=True):
            streams.rows(name, part, start, target, law.fill)
        return out

    def each(self, draw: Callable[[Streams], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """What is drawn from the streams of each seed, with the seeds' axis where there is one."""
        drawn = [draw(streams) for streams in self.streams]
        return np.stack(drawn) if self.lead else drawn[0]


class DeviceSource(Source):
    """Counters turned into numbers on the device itself; torch alone."""

    def rows(
        self, name: str, part: int, start: int, shape: tuple[int, int], law: RowLaw, *, reuse: bool
    ) -> Array:
        out = self.backend.empty(*self.lead, *shape)
        return self._drawn(out, name, part, start, law)

    def column(self, name: str, part: int, start: int, count: int) -> Array:
        out = self.backend.solver.empty(*self.lead, count, 1)
        return self._drawn(out, name, part, start, NORMAL)[..., 0]

    def _drawn(self, out: Array, name: str, part: int, start: int, law: RowLaw) -> Array:
        keys, torch = self.each(lambda streams: streams.key(name, part)), self.backend.xp
        fill(torch, keys, start, out, law.transform, paired=law.name != "student_t")
        law.finish(torch, out)
        return out


def checked_streams(fixed: Mapping[str, int] | None) -> dict[str, int]:
    """Seeds of pinned streams, or InvalidProblem."""
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise InvalidProblem("streams", "must map stream names to seeds", fixed)
    for name, seed in fixed.items():
        if name not in STREAMS:
            raise InvalidProblem("streams", f"must name some of {', '.join(STREAMS)}", name)
        checked_seed(f"streams[{name!r}]", seed)
    return dict(fixed)


def checked_seed(parameter: str, seed: object) -> int:
    """A whole number ≥ 0."""
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidProblem(parameter, "must be a whole number >= 0", seed)
    return int(seed)
