"""Worker processes that can be stopped: one pool serves sweeps, the page and its simulations.

Calls are answered, dropped, stopped when late, and workers are replaced. The program of a worker
(`main`) takes calls from one pipe and writes answers to another. A worker ends with its parent,
whatever it is doing: calls are received by a thread of their own, and the end of the pipe ends the
process.

Not Pebble's `ProcessPool` (5.2): it cancels a task by ending the worker, so that the next answer
waits for another one to import the engine, where ours drop a task at a signal and go on; and its
workers import the user's `__main__` again (spawn, forkserver) or inherit threads (fork).
"""

from __future__ import annotations

import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, BinaryIO, Literal, NamedTuple

from .core.errors import CannotStart as CannotStart

READY, PROGRESS, DONE, DROPPED = "ready", "progress", "done", "dropped"  # kinds of messages
DROP = getattr(signal, "SIGUSR1", None)  # the signal to drop the current call
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
NICENESS = 10  # of a process with low priority
COMMAND = "from featurestep.processes import main; main()"
MAX_MESSAGE = 2000  # characters kept of what a process that ended wrote to stderr


class Event(NamedTuple):
    """A message of a process; the kind None means that it has ended."""

    process: Process
    kind: str | None
    what: Any = None


class Exit(NamedTuple):
    """How a process ended (exit code or signal), and the end of what it wrote to stderr."""

    how: str
    message: str

    @property
    def reason(self) -> str:
        """The last line of the message, or how it ended."""
        return self.message.splitlines()[-1] if self.message else self.how


Events = SimpleQueue[Event]


class Process:
    """A worker process. Its messages go to `events`, which may be replaced later."""

    def __init__(
        self,
        function: Callable[..., Any],
        events: Events,
        *,
        low_priority: bool = False,
        one_thread: bool = True,
    ) -> None:
        """A program of its own: it inherits neither threads nor locks nor the user's `__main__`."""
        self.ready = False
        self.events = events
        self._function = function
        self._waiting: tuple[Any, ...] | None = None  # for it to be ready
        self._lock = Lock()
        threads = ONE_THREAD if one_thread else {}
        priority = "low" if low_priority else "normal"
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 closed in `end`
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-c", COMMAND, function.__module__, priority],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, **threads, "PYTHONPATH": _import_path()},
            )
        except OSError as error:
            self._stderr.close()
            reason = error.strerror or "no interpreter"
            raise CannotStart(f"worker processes do not start: {reason}") from None
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._calls, self._answers = self._popen.stdin, self._popen.stdout
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The number by which the operating system knows it."""
        return self._popen.pid

    def _listen(self) -> None:
        try:
            while True:
                kind, what = pickle.load(self._answers)
                if kind == READY:
                    self._be_ready()
                self.events.put(Event(self, kind, what))
        except Exception:  # the pipe ended, perhaps in the middle of an answer
            self.events.put(Event(self, None))

    def give(self, *arguments: Any) -> None:
        """Send it a call, as soon as it is ready."""
        with self._lock:
            if not self.ready:
                self._waiting = arguments
                return
        self._send(arguments)

    def _be_ready(self) -> None:
        with self._lock:
            self.ready = True
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._send(waiting)

    def _send(self, arguments: tuple[Any, ...]) -> None:
        with suppress(OSError, ValueError):  # it has just died: its end is on the way to us
            pickle.dump((self._function, arguments), self._calls, pickle.HIGHEST_PROTOCOL)
            self._calls.flush()

    @property
    def lives(self) -> bool:
        """True if it can still be given a call."""
        return self._thread.is_alive() and self._popen.poll() is None

    def drop(self) -> None:
        """Have it drop its call; it confirms this, and keeps what it has imported."""
        with self._lock:
            unsent, self._waiting = self._waiting, None
        if unsent is not None:
            self.events.put(Event(self, DROPPED))
        elif DROP is not None and self.ready:  # before, the signal would end it
            self._signal(DROP)

    def kill(self) -> None:
        """End it now, whatever it is doing; an event says so."""
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    def _signal(self, number: int) -> None:
        with self._lock, suppress(OSError):
            if self._popen.poll() is None:
                os.kill(self.pid, number)

    def end(self) -> Exit:
        """Kill it if it runs, wait for its end, and return how it ended."""
        self.kill()
        code = self._popen.wait()
        self._thread.join()
        for pipe in (self._calls, self._answers):
            with suppress(OSError):
                pipe.close()
        return Exit(_describe(code), self._exit_message())

    def _exit_message(self) -> str:
        with self._stderr as text:
            text.seek(0)
            return text.read().decode(errors="replace").strip()[-MAX_MESSAGE:]


def _describe(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _import_path() -> str:
    """Where this process finds modules: a worker must find the same ones."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)


MAX_FAILED_STARTS = 3
POLL_SECONDS = 0.05  # between checks whether an answer is still wanted

Kind = Literal["done", "dropped", "late", "died"]


class Call(NamedTuple):
    """Arguments of the function, and a name by which the caller knows the answer."""

    arguments: tuple[Any, ...]
    name: Any = None


Supply = Callable[[], Call | None]  # the next call; None if there is none just now
Wanted = Callable[[], bool]


class Answer(NamedTuple):
    """The outcome of a call: what it returned, or the `Exit` of its worker's process."""

    call: Call
    kind: Kind
    value: Any = None


def always() -> bool:
    """True: for calls that nobody withdraws."""
    return True


class Worker:
    """One worker of a pool; its process starts with a call, and again after it has ended."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self.process: Process | None = None

    def start(self, events: Events) -> Process:
        """A running process, whose messages go to these events."""
        with self._lock:
            if self.process is not None and not self.process.lives:
                self.process.end()
                self.process = None
            if self.process is None:
                self.process = Process(self._function, events)
            self.process.events = events
            return self.process

    def kill(self) -> None:
        """End the process now; an event says so."""
        with self._lock:
            if self.process is not None:
                self.process.kill()

    def stop(self) -> Exit | None:
        """End the process, wait for it, and forget it."""
        with self._lock:
            found = self.process.end() if self.process is not None else None
            self.process = None
            return found


class WorkerPool:
    """Workers for calls of one function."""

    def __init__(self, function: Callable[..., Any], size: int) -> None:
        self.workers = [Worker(function) for _ in range(size)]
        self._ended = threading.Event()

    def work(
        self,
        supply: Supply,
        *,
        workers: Sequence[Worker] | None = None,
        until: float = math.inf,
        wanted: Wanted = always,
    ) -> Generator[Answer, None, None]:
        """Answers as they come, until `supply` has no call and no worker is busy.

        Busy workers are killed at the time `until` (of `time.monotonic`) and when the generator is
        closed; once `wanted` returns False, they drop their calls.
        """
        group = _WorkerGroup(
            list(self.workers if workers is None else workers), supply, self._ended
        )
        try:
            yield from group.answers(until, wanted)
        finally:
            group.end()

    def end(self) -> None:
        """Kill every process and start none again; whoever waits for an answer learns it."""
        self._ended.set()
        for worker in self.workers:
            worker.kill()

    def close(self) -> None:
        """End every process and wait for that; for when nobody waits for an answer any more."""
        self.end()
        for worker in self.workers:
            worker.stop()


class _WorkerGroup:
    """Some workers and the calls that they hold, during one `WorkerPool.work`."""

    def __init__(self, workers: list[Worker], supply: Supply, ended: threading.Event) -> None:
        self._workers = workers
        self._supply = supply
        self._ended = ended
        self._events: Events = queue.SimpleQueue()
        self._held: dict[Worker, Call] = {}
        self._returned: deque[Call] = deque()  # from processes that ended before they were ready
        self._failed_starts = 0

    def answers(self, until: float, wanted: Wanted) -> Iterator[Answer]:
        withdrawn = False
        while True:
            withdrawn = withdrawn or not wanted()
            if withdrawn:
                self._drop()
            else:
                self._hand_out()
            if not self._held:
                return
            left = until - time.monotonic()
            if left <= 0:
                yield from [Answer(call, "late") for call in self._held.values()]
                return
            try:
                event = self._events.get(timeout=min(POLL_SECONDS, left))
            except queue.Empty:
                continue
            answer = self._handle(event)
            if not withdrawn:
                self._hand_out()  # first, so that no worker waits while the answer is dealt with
            if answer is not None:
                yield answer

    def _hand_out(self) -> None:
        """Give every free worker a call; a worker that has none starts its process for it."""
        for worker in list(self._workers):
            if worker in self._held or self._ended.is_set():
                continue
            call = self._returned.popleft() if self._returned else self._supply()
            if call is None:
                return
            try:
                worker.start(self._events).give(*call.arguments)
            except CannotStart:
                if not any(other.process is not None for other in self._workers):
                    raise
                self._workers.remove(worker)  # go on with those that run
                self._returned.appendleft(call)
                continue
            self._held[worker] = call

    def _handle(self, event: Event) -> Answer | None:
        worker = next((w for w in self._workers if w.process is event.process), None)
        if worker is None or event.kind == PROGRESS:
            return None
        if event.kind == READY:
            self._failed_starts = 0
            return None
        if event.kind is None:
            return self._terminated(worker, was_ready=event.process.ready)
        kind: Kind = "dropped" if event.kind == DROPPED else "done"
        return Answer(self._held.pop(worker), kind, event.what)

    def _terminated(self, worker: Worker, *, was_ready: bool) -> Answer | None:
        """The answer of a call whose process has ended, if it had one.

        A call is tried again if its process ended before it was ready; several such ends in a row
        mean that no process can be started.
        """
        found, call = worker.stop(), self._held.pop(worker, None)
        assert found is not None
        if was_ready or self._ended.is_set():
            return None if call is None else Answer(call, "died", found)
        if call is not None:
            self._returned.append(call)
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            if not any(w.process is not None and w.process.ready for w in self._workers):
                raise CannotStart(f"worker processes do not start: {found.reason}")
            self._workers.remove(worker)
        return None

    def _drop(self) -> None:
        for worker in self._held:
            if worker.process is not None:
                worker.process.drop()

    def end(self) -> None:
        for worker in self._held:
            worker.stop()


Request = tuple[Callable[..., Any], tuple[Any, ...]]


class Dropped(BaseException):
    """Raised inside of a call by the signal to drop it."""


def main() -> None:
    """Answer calls, one at a time, until the parent closes its end of the pipe.

    The pipes are stdin and stdout; the arguments are the function's module and the priority.
    """
    global _answers
    module, low_priority = sys.argv[1], sys.argv[2] == "low"
    requests, _answers = _take_pipes()
    import_module(module)  # what cannot be imported ends us before we are ready
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if low_priority and hasattr(os, "nice"):
        os.nice(NICENESS)
    calls: SimpleQueue[Request] = SimpleQueue()
    runner = CallRunner()
    Thread(target=_receive, args=(requests, calls), daemon=True).start()
    _send(READY, None)
    while True:
        _send(*runner.answer(*calls.get()))


class CallRunner:
    """Runs one call at a time; a signal to drop ends that call and never the next."""

    def __init__(self) -> None:
        self._working = False
        if DROP is not None:
            signal.signal(DROP, self._drop)

    def _drop(self, _signal: int, _frame: object) -> None:
        if self._working:
            self._working = False
            raise Dropped

    def answer(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
        """The kind of answer and what was returned; an error ends the process, with its trace."""
        try:
            self._working = True
            found = function(*arguments)
            self._working = False
        except Dropped:
            return DROPPED, None
        return DONE, found


_answers: BinaryIO | None = None


def report_progress(share: Any) -> None:
    """Called by the function itself: report how far it is."""
    _send(PROGRESS, share)


def _send(kind: str, what: Any) -> None:
    if _answers is None:  # the function was called outside a worker
        return
    try:
        pickle.dump((kind, what), _answers, protocol=pickle.HIGHEST_PROTOCOL)
        _answers.flush()
    except OSError:
        os._exit(0)


def _receive(requests: BinaryIO, calls: SimpleQueue[Request]) -> None:
    """In a thread of its own, so that the end of the parent ends a long computation too."""
    code = 1
    try:
        while True:
            calls.put(pickle.load(requests))
    except EOFError:
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Both pipes under other descriptors: what a library prints must not end up in an answer."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silent = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silent, 0)
    os.dup2(2, 1)
    return requests, answers
