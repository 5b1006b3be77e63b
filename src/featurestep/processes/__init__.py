"""Worker processes that can be stopped: one pool serves sweeps, the page and its simulations.

Not Pebble's `ProcessPool` (5.2): it cancels a task by ending the worker, so that the next answer
waits for another one to import the engine, where ours drop a task at a signal and go on; and its
workers import the user's `__main__` again (spawn, forkserver) or inherit threads (fork).
"""

from ..core.errors import CannotStart
from .pool import Answer, Call, Exit, Process, Wanted, Worker, WorkerPool, always
from .program import DONE, PROGRESS, READY, report_progress
