"""Randomness: named, independent streams, each addressed by counters rather than by history.

A stream's generator depends on the seed, the stream's name and a key only, and rows are drawn in
chunks of fixed size with one key each. So a row is the same whatever the block size, the number
of threads or the total number of rows, and samples of different sizes are nested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InvalidProblem
from ...threads import workers
from ...types import FloatArray

STREAMS = (
    *("data", "initialisation", "readout", "noise", "test", "teacher", "equivalent"),
    "probes",  # a new stream goes last: the place of a name is part of its key
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
