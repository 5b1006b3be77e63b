"""Files of the package that a question runs through: how much there is to read to follow it.

Each question is asked twice and traced the second time, with other numbers, so that neither imports
nor remembered answers are counted. A file counts if a function of it is called, in any thread.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import featurestep
from featurestep import Problem, predict, simulate, spectrum
from featurestep.cli import main as command_line
from featurestep.page.jobs import Jobs
from featurestep.page.pool import answer
from featurestep.page.server import make_app
from featurestep.page.state import PageState
from featurestep.page.views import Views, tasks_of

PACKAGE = Path(featurestep.__file__).parent
RIDGES = (0.1, 0.2)  # of the first question and of the traced one


def _problem(ridge: float) -> Problem:
    return Problem(n=400, d=200, width=300, ridge=ridge, activation="tanh", step_exponent=0.5)


def _state(ridge: float) -> PageState:
    return PageState.from_query(f"ridge={ridge}&n={4000 + round(100 * ridge)}")


def _command(ridge: float) -> None:
    arguments = ["predict", "--over", "step_exponent=0:0.5:5", "--ridge", str(ridge)]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        command_line(arguments)


def _worker(*, spectrum_panel: bool) -> Callable[[float], None]:
    """What a worker of the page computes, called here so that it can be traced."""
    tasks = {ridge: tasks_of(_state(ridge), "full") for ridge in RIDGES}

    def compute(ridge: float) -> None:
        for task in tasks[ridge].values():
            if (task.part == "spectrum") == spectrum_panel:
                answer(*task)

    return compute


def _ask(views: Views) -> Callable[[float], None]:
    """Both questions of a page to its server; workers answer."""
    client = make_app(views, Jobs()).test_client()

    def ask(ridge: float) -> None:
        query = _state(ridge).to_query()
        for lane in ("main", "spectrum"):
            body = {"lane": lane, "q": query, "seq": 0, "how": "draft", "page": "traced"}
            client.post("/answers", json=body)

    return ask


@contextlib.contextmanager
def traced() -> Iterator[set[str]]:
    """The package's files of which a function is called meanwhile."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            called.add(frame.f_code.co_filename)

    found: set[str] = set()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        paths = (Path(name) for name in called)
        found |= {str(p.relative_to(PACKAGE)) for p in paths if p.is_relative_to(PACKAGE)}


def files(ask: Callable[[float], object]) -> list[str]:
    """Files that the second of two questions runs through."""
    first, second = RIDGES
    ask(first)
    with traced() as found:
        ask(second)
    return sorted(found)


def report(name: str, goal: int | None, found: list[str]) -> int:
    """Print a count and the files; returns the count."""
    aim = "" if goal is None else f"   (goal {goal})"
    print(f"{name:32} {len(found):3}{aim}\n    {' '.join(found)}")
    return len(found)


def main() -> None:
    report("predict", 20, files(lambda ridge: predict(_problem(ridge))))
    report("spectrum", 26, files(lambda ridge: spectrum(_problem(ridge))))
    report("simulate", 20, files(lambda ridge: simulate(_problem(ridge), seeds=2)))
    report("featurestep predict --over", 28, files(_command))
    total = report("page, errors' worker", None, files(_worker(spectrum_panel=False)))
    total += report("page, spectrum's worker", None, files(_worker(spectrum_panel=True)))
    views = Views()
    try:
        total += report("page, server", None, files(_ask(views)))
    finally:
        views.close()
    print(f"{'page, all three processes':32} {total:3}   (goal 60)")


if __name__ == "__main__":
    main()
