"""Simulations in the background: each a process of its own, watched, and killed when cancelled."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import FeaturestepError, InvalidProblem
from ..processes import DONE, PROGRESS, Process, report_progress
from .axes import axis, errors, grid
from .pool import Refused
from .state import NUMBERS, PageState

if TYPE_CHECKING:
    from ..simulation import SimulatedSpectrum

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
