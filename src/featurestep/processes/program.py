"""The program of a worker process: calls come in on one pipe, answers go out on another.

A worker ends with its parent, whatever it is doing: calls are received by a thread of their own,
and the end of the pipe ends the process.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

READY, PROGRESS, DONE, DROPPED = "ready", "progress", "done", "dropped"  # kinds of messages
DROP = getattr(signal, "SIGUSR1", None)  # the signal to drop the current call
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
NICENESS = 10  # of a process with low priority

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
