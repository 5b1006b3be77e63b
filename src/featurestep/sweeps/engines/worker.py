"""A worker process: jobs come in on stdin, reports go out on stdout, one core is its own.

The driver starts it as a program of its own, so that it inherits neither threads nor locks nor
the user's `__main__`; a script may call `sweep` wherever it likes.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from ...threads import one_thread, set_workers
from ..job import Job, Report, run_job

READY = "ready"
COMMAND = "from featurestep.sweeps.engines.worker import main; main()"
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_alone(job: Job) -> Report:
    """Compute a job with one thread, beside other workers on the same machine."""
    set_workers(1)
    with one_thread():
        return run_job(job)


def main() -> None:
    """Serve until stdin ends; it ends too when the driver is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    requests, answers = _take_pipes()
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_receive, args=(requests, jobs), daemon=True).start()
    _send(answers, READY)
    while True:
        _send(answers, run_alone(jobs.get()))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep both pipes to ourselves: what a library prints must not end up in a report."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silent = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silent, 0)
    os.dup2(2, 1)
    return requests, answers


def _receive(requests: BinaryIO, jobs: SimpleQueue[Job]) -> None:
    """In a thread of its own, so that the end of the driver ends a long computation too."""
    code = 1
    try:
        while True:
            jobs.put(pickle.load(requests))
    except EOFError:
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _send(answers: BinaryIO, message: Any) -> None:
    try:
        pickle.dump(message, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()
    except BrokenPipeError:
        os._exit(0)
