"""One worker process from start to end, and the thread that receives its messages."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from ..core.errors import CannotStart
from .program import DROP, DROPPED, ONE_THREAD, READY

COMMAND = "from featurestep.processes.program import main; main()"
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
