import subprocess
import sys
import threading
import time

import pytest

from featurestep.core import threads
from featurestep.core.threads import DaemonPool, daemon_pool, set_workers, workers


def test_results_keep_the_order_of_the_items():
    assert daemon_pool(3).map(lambda k: (time.sleep(0.002 * (5 - k)), k * k)[1], range(6)) == [
        0, 1, 4, 9, 16, 25,
    ]  # fmt: skip


def test_the_work_is_shared_by_the_threads():
    both = threading.Barrier(2)
    names = DaemonPool(2).map(lambda _: (both.wait(timeout=60), threading.get_ident())[1], range(2))
    assert len(set(names)) == 2


def test_an_error_is_raised_and_the_pool_goes_on():
    team = DaemonPool(1)
    begun, raised = [], threading.Event()

    def fail(k):
        begun.append(k)
        if k == 1:
            raise ValueError("item 1")
        if k > 1:
            raised.wait(timeout=60)

    with pytest.raises(ValueError, match="item 1"):
        team.map(fail, range(1000))
    raised.set()
    assert team.map(abs, [-2]) == [2]
    assert begun in ([0, 1], [0, 1, 2])  # what came after the error was not begun


def test_workers_are_as_many_as_set(monkeypatch):
    monkeypatch.setattr(threads, "_workers", 3)  # put back when the test ends
    assert workers() is daemon_pool(3)
    set_workers(1)
    assert workers().size == 1


INTERRUPTED_START = """
import threading
from featurestep.core.threads import daemon_pool
wait = threading.Event.wait
def interrupted(self, timeout=None):
    threading.Event.wait = wait
    wait(self, timeout)
    raise KeyboardInterrupt
threading.Event.wait = interrupted
try:
    daemon_pool(2).map(abs, [-1, -2])
except KeyboardInterrupt:
    print("interrupted")
print(daemon_pool(2).map(abs, [-3]))
"""


def test_an_interrupted_start_does_not_hang_the_program():
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_START],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "interrupted\n[3]\n"
