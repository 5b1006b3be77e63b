"""Where the rows of a draw come from: NumPy's generators on the host, or counters on the device.

Either gives rows of a stream that are the same for a seed whatever the blocks they come in.
Several seeds at once make one more axis, in front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array, Backend
from ..arrays.philox import fill
from .laws import NORMAL, RowLaw
from .streams import Streams

if TYPE_CHECKING:
    from ..arrays.torch_backend import TorchBackend


class Source(ABC):
    """Rows of one seed's streams, or of several seeds'."""

    def __init__(self, streams: Streams | Sequence[Streams], backend: Backend) -> None:
        self.backend = backend
        one = isinstance(streams, Streams)
        self.each = (streams,) if isinstance(streams, Streams) else tuple(streams)
        self.lead = () if one else (len(self.each),)

    @abstractmethod
    def rows(
        self, name: str, part: int, start: int, shape: tuple[int, int], law: RowLaw, *, reuse: bool
    ) -> Array:
        """Rows start … of a part of a stream, in the backend's precision.

        With `reuse` they may lie where the next rows asked for will.
        """

    @abstractmethod
    def column(self, name: str, part: int, start: int, count: int) -> Array:
        """Standard normals, one for each row, in float64."""

    def stacked(self, one: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """What was drawn for each seed, with the seeds' axis where there is one."""
        return np.stack(one) if self.lead else one[0]


class HostSource(Source):
    """NumPy draws, on all of the machine's threads."""

    def __init__(self, streams: Streams | Sequence[Streams], backend: Backend) -> None:
        super().__init__(streams, backend)
        self._buffer = np.empty((0, 0))  # fresh memory costs more than its use

    def rows(
        self, name: str, part: int, start: int, shape: tuple[int, int], law: RowLaw, *, reuse: bool
    ) -> Array:
        wanted = (*self.lead, *shape)
        if not reuse:
            return self.backend.put(self._drawn(np.empty(wanted), name, part, start, law))
        kept = self._buffer.shape
        if (*kept[:-2], kept[-1]) != (*self.lead, shape[1]) or kept[-2] < shape[0]:
            self._buffer = np.empty(wanted)
        out = self._buffer[..., : shape[0], :]
        return self.backend.put(self._drawn(out, name, part, start, law))

    def column(self, name: str, part: int, start: int, count: int) -> Array:
        out = np.empty((*self.lead, count))
        return self.backend.wide(self._drawn(out, name, part, start, NORMAL))

    def _drawn(self, out: FloatArray, name: str, part: int, start: int, law: RowLaw) -> FloatArray:
        targets = out if self.lead else out[None]
        for streams, target in zip(self.each, targets, strict=True):
            streams.rows(name, part, start, target, law.fill)
        return out


class DeviceSource(Source):
    """Counters turned into numbers on the device itself; torch alone."""

    def __init__(self, streams: Streams | Sequence[Streams], backend: TorchBackend) -> None:
        super().__init__(streams, backend)
        self.torch = backend.torch

    def rows(
        self, name: str, part: int, start: int, shape: tuple[int, int], law: RowLaw, *, reuse: bool
    ) -> Array:
        out = self.backend.empty(*self.lead, *shape)
        return self._drawn(out, name, part, start, law)

    def column(self, name: str, part: int, start: int, count: int) -> Array:
        out = self.backend.solver.empty(*self.lead, count, 1)
        return self._drawn(out, name, part, start, NORMAL)[..., 0]

    def _drawn(self, out: Array, name: str, part: int, start: int, law: RowLaw) -> Array:
        keys = self.stacked([streams.key(name, part) for streams in self.each])
        fill(self.torch, keys, start, out, law.transform, paired=law.name != "student_t")
        law.finish(self.torch, out)
        return out
