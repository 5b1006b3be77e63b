"""Who computes: worker processes with a deadline, a memory of what they answered, simulations.

Work happens there so that a deadline is real: the process is killed. A simulation runs in the
background in a process of its own, is watched, and killed when it is cancelled.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import FeaturestepError, InvalidProblem
from ..processes import (
    DONE,
    PROGRESS,
    Call,
    CannotStart,
    Process,
    Wanted,
    Worker,
    WorkerPool,
    always,
    report_progress,
)
from .state import NUMBERS, PageState, axis, errors, grid

if TYPE_CHECKING:
    from ..simulation import SimulatedSpectrum

MAX_ANSWERS = 512  # answers
_WARMING_SECONDS = 60.0  # seconds
_POLL_SECONDS = 0.05  # between checks whether an answer is still wanted
LOG = logging.getLogger(__name__)


class Refused(FeaturestepError):
    """The engine refused what was asked; the message is its one line."""


class Failed(FeaturestepError):
    """Something went wrong that nobody has foreseen."""

    def __str__(self) -> str:
        return f"internal error: {super().__str__()}"


class TooSlow(FeaturestepError):
    """The deadline passed, and the worker was stopped."""


class Overtaken(FeaturestepError):
    """The page has asked something newer; nobody waits for this answer."""


class PageTask(NamedTuple):
    """One part of one state, and how exactly; equal tasks have equal answers."""

    part: str
    query: str
    how: str = "full"


class Memory:
    """The latest answers."""

    def __init__(self, size: int = MAX_ANSWERS) -> None:
        self._size = size
        self._answers: OrderedDict[PageTask, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, task: PageTask) -> Any:
        """The answer, None if it is not known any more."""
        with self._lock:
            if task in self._answers:
                self._answers.move_to_end(task)
            return self._answers.get(task)

    def put(self, task: PageTask, answer: Any) -> None:
        """Keep an answer, and forget the oldest when there are too many."""
        with self._lock:
            self._answers[task] = answer
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


class Pool(WorkerPool):
    """Workers that answer tasks; a request takes more than one only when they are free.

    From `grow` on all of them serve, and before the first only: a cold one has to import the
    engine. Long requests come one after the other, so that they never have all workers.
    """

    def __init__(self, size: int, memory: Memory) -> None:
        super().__init__(answer, size)
        self.memory = memory
        self.serving = 1
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._idle.put(self.workers[0])
        self._long = threading.Lock()

    def ask(
        self,
        tasks: Sequence[PageTask],
        wanted: Wanted = always,
        *,
        deadline: float,
        is_long: bool = False,
    ) -> list[Any]:
        """The tasks' answers in order: data, or the error that stands in its place.

        Raises `Overtaken` as soon as they are not wanted any more. The deadline is in seconds, with
        the wait for a worker.
        """
        found = self._remembered(tasks)
        if found.keys() != set(tasks):
            until = time.monotonic() + deadline
            late = TooSlow(f"stopped after {deadline:g} s: this takes too long for a live page")
            with self._turn(until, wanted) if is_long else contextlib.nullcontext():
                group = self._take(len(set(tasks)) - len(found), until, wanted)
                try:
                    found = self._remembered(tasks)  # others may have asked for it meanwhile
                    missing = [task for task in dict.fromkeys(tasks) if task not in found]
                    found |= self._answered(missing, group, until, late, wanted)
                finally:
                    for worker in reversed(group):
                        self._idle.put(worker)
        return [found[task] for task in tasks]

    @contextlib.contextmanager
    def _turn(self, until: float, wanted: Wanted) -> Iterator[None]:
        """Wait for the long request before this one, or for the deadline."""
        mine = False
        while not mine and time.monotonic() < until:
            _check(wanted)
            mine = self._long.acquire(timeout=_POLL_SECONDS)
        try:
            yield
        finally:
            if mine:
                self._long.release()

    def grow(self, tasks: Sequence[PageTask]) -> None:
        """Bring the other workers into service, each warmed up by some tasks."""
        for worker in self.workers[self.serving :]:
            until = time.monotonic() + _WARMING_SECONDS
            self._answered(list(tasks), [worker], until, TooSlow("not warm in time"), always)
            self._idle.put(worker)
            self.serving += 1

    def _remembered(self, tasks: Sequence[PageTask]) -> dict[PageTask, Any]:
        return {task: answer for task in tasks if (answer := self.memory.get(task)) is not None}

    def _take(self, most: int, until: float, wanted: Wanted) -> list[Worker]:
        """One worker, and more of them if they are free; one is left to other requests."""
        group: list[Worker] = []
        while not group and (left := until - time.monotonic()) > 0.0:
            _check(wanted)
            with contextlib.suppress(queue.Empty):
                group.append(self._idle.get(timeout=min(_POLL_SECONDS, left)))
        with contextlib.suppress(queue.Empty):
            while group and len(group) < min(most, len(self.workers) - 1):
                group.append(self._idle.get_nowait())
        return group

    def _answered(
        self,
        tasks: list[PageTask],
        group: list[Worker],
        until: float,
        late: TooSlow,
        wanted: Wanted,
    ) -> dict[PageTask, Any]:
        """Spread tasks over workers until the deadline; those that are late are stopped."""
        waiting = [Call(task, task) for task in reversed(tasks)]
        found: dict[PageTask, Any] = dict.fromkeys(tasks, late)
        try:
            for each in self.work(
                lambda: waiting.pop() if waiting else None,
                workers=group,
                until=until,
                wanted=wanted,
            ):
                if each.kind == "done":
                    found[each.call.name] = each.value
                elif each.kind == "died":
                    found[each.call.name] = Failed("the worker ended")
        except CannotStart as error:
            found |= dict.fromkeys((t for t in tasks if found[t] is late), Failed(str(error)))
        for task, each in found.items():
            if not isinstance(each, (Failed, TooSlow)):
                self.memory.put(task, each)
            elif each is not late and not self._ended.is_set():
                LOG.error("a part failed: %s", each)
        _check(wanted)
        return found


def _check(wanted: Wanted) -> None:
    if not wanted():
        raise Overtaken("replaced by a newer request")


def answer(part: str, query: str, how: str) -> Any:
    """A part by its name, or the error in its place; who asks here imports the engine, no other.

    A state that has no prediction is refused as a whole: the error of its point, and of its
    spectrum, names the field.
    """
    from . import panels

    try:
        state = PageState.from_query(query)
        return getattr(panels, part)(state, draft=how != "full")
    except InvalidProblem as error:
        return error if part in ("point", "spectrum") else Refused(str(error))
    except FeaturestepError as error:
        return Refused(str(error))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}")


MAX_FLOPS = 1.2e11  # of one run: a few seconds on two cores
MAX_MEMORY = 2**30  # bytes
POINTS, SEEDS = 6, 6
MAX_RUNNING = 2
MAX_SECONDS = 60.0  # seconds
MAX_UNWATCHED = 10.0  # seconds without a question after which nobody is waiting


class Busy(FeaturestepError):
    """Enough simulations are running already."""


def sized(state: PageState) -> PageState:
    """The same ratios at the largest n, up to the state's own, that runs in a few seconds."""
    from ..simulation import estimate

    n, least = min(state.n, 4000), int(NUMBERS["n"].low)
    while True:
        smaller = state.replace(n=n)
        cost = estimate(grid(smaller, POINTS), seeds=SEEDS)
        if cost.flops <= MAX_FLOPS and cost.memory <= MAX_MEMORY:
            return smaller
        if n == least:
            break
        n = max(least, round(0.8 * n))
    raise InvalidProblem(
        "simulation",
        f"must run in a few seconds ({MAX_FLOPS:.1e} operations); φ and ψ are too far from 1",
        f"{cost.flops:.2e} operations at n = {n}",
    )


@dataclass
class PageJob:
    """A simulation: its process while it runs, then its data, or the error in their place."""

    process: Process | None
    asked: PageState
    state: PageState  # as it runs, perhaps at a smaller n
    share: float = 0.0
    found: Any = None
    started: float = field(default_factory=time.monotonic)
    watched: float = field(default_factory=time.monotonic)

    @property
    def running(self) -> bool:
        """Whether there is still something to wait for."""
        return self.found is None

    def look(self) -> None:
        """Take in what the process has told since."""
        with suppress(queue.Empty):
            while self.running and self.process is not None:
                event = self.process.events.get_nowait()
                if event.kind == PROGRESS:
                    self.share = float(event.what)
                elif event.kind == DONE:
                    self.found = event.what
                elif event.kind is None:
                    self.found = FeaturestepError("the simulation ended without a result")
        if self.running and time.monotonic() - self.started > MAX_SECONDS:
            self.found = FeaturestepError(f"stopped after {MAX_SECONDS:g} s")
        if not self.running:
            self.stop()

    def stop(self) -> None:
        """End the process; what it has found stays."""
        if self.process is not None:
            self.process.end()
            self.process = None


class Jobs:
    """All simulations of a server, by a name that only their page knows."""

    def __init__(self) -> None:
        self._jobs: dict[str, PageJob] = {}
        self._lock = threading.Lock()

    def start(self, state: PageState) -> str:
        """Begin a simulation and return its name."""
        small = sized(state)
        with self._lock:
            self._tidy()
            if sum(job.running for job in self._jobs.values()) >= MAX_RUNNING:
                raise Busy(f"{MAX_RUNNING} simulations are running already; wait or cancel one")
            process = Process(run, queue.SimpleQueue(), low_priority=True, one_thread=False)
            process.give(small.to_query(), POINTS, SEEDS)
            name = secrets.token_urlsafe(9)
            self._jobs[name] = PageJob(process, state, small)
        return name

    def look(self, name: str) -> PageJob | None:
        """The job as it stands now, if there is one of this name."""
        with self._lock:
            job = self._jobs.get(name)
            if job is not None:
                job.watched = time.monotonic()
                job.look()
        return job

    def cancel(self, name: str) -> None:
        """End a job; a name that is not known is none."""
        with self._lock:
            job = self._jobs.pop(name, None)
            if job is not None:
                job.stop()

    def close(self) -> None:
        """End all jobs."""
        with self._lock:
            for job in self._jobs.values():
                job.stop()
            self._jobs.clear()

    def _tidy(self) -> None:
        for name, job in list(self._jobs.items()):
            if time.monotonic() - job.watched > MAX_UNWATCHED:
                job.stop()
                del self._jobs[name]
            else:
                job.look()


SPECTRUM_SEEDS = 2  # draws of the spectrum
BINS = 40
_ERRORS_SHARE = 0.8  # of the progress that the errors take
Tell = Callable[[float], None]


def run(query: str, count: int, seeds: int) -> Any:
    """In a process of its own, telling the share done: the data, or the error in its place."""
    try:
        return simulated(PageState.from_query(query), count, seeds, report_progress)
    except FeaturestepError as error:
        return Refused(str(error))


def simulated(state: PageState, count: int, seeds: int, report: Tell) -> dict[str, Any]:
    """Means and standard errors along the axis, and singular values at the current point."""
    from ..simulation import simulate  # for its own process: the server has no engine

    problems = grid(state, count)
    found = simulate(
        problems, seeds=seeds, progress=lambda done, total: report(_ERRORS_SHARE * done / total)
    )
    mean, error = found.mean.isel(variant=0), found.standard_error.isel(variant=0)
    data: dict[str, Any] = {
        "x": axis(state, problems).tolist(),
        "n": state.n,
        "seeds": seeds,
        "seconds": found.wall_time,
        "spectrum": _spectrum(state, report),
    }
    for name in errors(state):
        data[name] = mean[name].values.tolist()
        data[f"{name}_error"] = error[name].values.tolist()
    return data


def _spectrum(state: PageState, report: Tell) -> dict[str, Any] | None:
    """A histogram of the bulk, each draw's values beyond it, and the prediction at this n."""
    from ..simulation import simulated_spectrum
    from ..theory.spectra import spectrum
    from .panels import spectrum_data

    problem = state.features.problem
    try:
        theory = spectrum(problem)
    except FeaturestepError:
        return None  # its panel says why
    found = simulated_spectrum(
        problem,
        seeds=SPECTRUM_SEEDS,
        progress=lambda done, total: report(
            _ERRORS_SHARE + (1.0 - _ERRORS_SHARE) * min(1.0, done / total)
        ),
    )
    border = float(np.sqrt(theory.border.place))
    ends = np.linspace(0.0, border, BINS + 1)
    return {
        "n": state.n,
        "ends": ends.tolist(),
        "heights": (np.diff(found.cumulative(ends**2).mean) / np.diff(ends)).tolist(),
        "spikes": _spikes(found, border),
        "theory": spectrum_data(state, theory),
    }


def _spikes(found: SimulatedSpectrum, border: float) -> list[dict[str, Any]]:
    """Each value beyond the bulk, with its overlaps with H_0(κ) … H_6(κ) and with κ … κ⁶."""
    names = ("singular_value", "rank", "overlaps", "power_overlaps")
    rows = zip(
        found.singular_values(), found.hermite_overlaps(), found.power_overlaps(), strict=True
    )
    return [
        dict(zip(names, (float(s), rank, h.tolist(), p.tolist()), strict=True))
        for each in rows
        for rank, (s, h, p) in enumerate(zip(*each, strict=True))
        if s > border
    ]
