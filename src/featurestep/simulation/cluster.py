"""Work on a Dask cluster that exists: sums over parts as a tree, progress, cancellation.

Dask itself computes again what a dead worker had, since every task follows from the seed. What is
sent to a worker is small (a problem, a range of rows); what comes back are sums: matrices of
several shapes, which Dask's bags add as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any
from weakref import WeakSet

from ..core.errors import EngineError, FeaturestepError, InvalidProblem, install_command
from ..core.types import FloatArray
from .streams import CHUNK

CONNECT_TIMEOUT = "20s"  # to reach a scheduler
PARTS_PER_WORKER = 4  # few enough to keep sums cheap, enough to lose little with a worker
Future = Any
Range = tuple[int, int]  # rows: the first, and the one after the last
Arrays = list[FloatArray]


class ClusterError(EngineError, RuntimeError):
    """The cluster failed, not the computation; the message says how."""


class Cluster:
    """A client, and the work it has been given.

    Futures are held weakly: a sum's parts are forgotten by the workers once they are added.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._distributed: Any = import_module("distributed")
        self._futures: WeakSet[Future] = WeakSet()

    @property
    def workers(self) -> int:
        """How many there are now; one at least, which may still be starting."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future:
        """The result to be, on whichever worker; arguments may be results to be themselves."""
        future = self.client.submit(work, *arguments, pure=False)
        self._futures.add(future)
        return future

    def summed(
        self,
        count: Callable[[int], None],
        rows: int,
        flops: int,
        work: Callable[..., Arrays],
        *arguments: Any,
    ) -> Future:
        """The sum of work(*arguments, range) over ranges of so many rows, each of so many flops.

        Dask adds what workers hold as a tree, pair by pair. `count` is told the flops of each range
        as it ends.
        """
        ranges = row_ranges(rows, PARTS_PER_WORKER * self.workers, CHUNK)
        delayed, bag = import_module("dask").delayed, import_module("dask.bag")
        each = [delayed(work)(*arguments, one) for one in ranges]
        held = self.client.persist(bag.from_delayed(each))
        total = self.client.compute(held.reduction(list, _added, split_every=2))
        parts = self._distributed.futures_of(held)
        self._futures.update([*parts, total])
        for future in self.ended(parts):
            first, last = ranges[future.key[1]]
            count(flops * (last - first))
        return total

    def ended(self, futures: Sequence[Future]) -> Iterator[Future]:
        """The futures as they end; a failure is raised as soon as it is known."""
        for future in self._distributed.as_completed(futures, loop=self.client.loop):
            self.check(future)
            yield future

    def check(self, future: Future) -> None:
        """Raise what a future failed with."""
        if future.status in ("error", "cancelled", "lost"):
            self.result(future)

    def result(self, future: Future) -> Any:
        """What became of a future, or why there is nothing."""
        try:
            return future.result()
        except FeaturestepError:
            raise
        except self._distributed.KilledWorker as error:
            text = f"workers died repeatedly on one task: {error}"
            raise ClusterError(" ".join(text.split())) from None
        except (OSError, CancelledError) as error:
            raise ClusterError(f"the Dask scheduler dropped the work: {error}") from None

    def record(self, shared: str) -> dict[str, str]:
        """Where something was computed, and what the workers shared."""
        where = str(self.client.scheduler.address)
        return {"scheduler": where, "workers": str(self.workers), "shared": shared}

    def cancel(self) -> None:
        """Let go of everything; what has not begun will not."""
        self.client.cancel(list(self._futures), force=True)
        self._futures.clear()


@contextmanager
def connected(scheduler: Any) -> Iterator[Cluster | None]:
    """The cluster of a scheduler's address, of the file it wrote, or of a client; None of None."""
    if scheduler is None:
        yield None
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        text = f"needs Dask: {install_command('dask')}"
        raise InvalidProblem("scheduler", text, scheduler) from None
    if isinstance(scheduler, distributed.Client):
        opened = nullcontext(scheduler)
    elif not isinstance(scheduler, (str, os.PathLike)):
        raise InvalidProblem("scheduler", "must be an address, a file or a Client", scheduler)
    else:
        where = os.fspath(scheduler)
        if where.endswith(".json") and not os.path.isfile(where):
            raise InvalidProblem("scheduler", "must be a file that exists, or an address", where)
        opened = client_of(where)
    with opened as client:
        cluster = Cluster(client)
        try:
            yield cluster
        finally:
            cluster.cancel()


def client_of(scheduler: str) -> Any:
    """A client of a scheduler, by its address or by the file it wrote.

    It does not become Dask's default: what else this process computes is not ours to move, and
    Dask's settings would outlive the client where another one is open.
    """
    distributed: Any = import_module("distributed")
    is_file = scheduler.endswith(".json")
    if is_file and not os.path.isfile(scheduler):  # Dask would wait for it, forever
        raise ClusterError(f"no Dask scheduler at {scheduler}: there is no such file")
    where = {"scheduler_file" if is_file else "address": scheduler}
    try:
        return distributed.Client(**where, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ClusterError(f"no Dask scheduler at {scheduler}: {reason}") from None


def _added(parts: Iterable[Arrays]) -> Arrays:
    """Not in place: a task's arguments may be asked for again."""
    return [sum(arrays) for arrays in zip(*parts, strict=True)]


def row_ranges(count: int, parts: int, step: int) -> list[Range]:
    """About so many ranges of 0 … count, each but the last a multiple of step long."""
    length = -(-count // (parts * step)) * step
    return [(start, min(count, start + length)) for start in range(0, count, length)]
