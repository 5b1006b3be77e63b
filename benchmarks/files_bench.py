"""Files of the package that a question runs through: how much there is to read to follow it.

Each question is asked twice and traced the second time, with other numbers, so that neither imports
nor remembered answers are counted. A file counts if a function of it is called, in any thread.

The last count is of `core`, `functions` and `theory`: what plain problems (`core.results`: one
step, rows of its own, the square loss without an intercept, isotropic inputs) enter there through
any verb, asked once each. Lines are those of the files that are entered; lines of functions that
no such question enters are counted apart.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import featurestep
from featurestep import (
    FeaturestepError,
    Problem,
    baselines,
    compare,
    critical_steps,
    learnable,
    limit,
    optimum,
    phase_diagram,
    predict,
    simulate,
    simulated_spectrum,
    spectrum,
)
from featurestep.cli import main as command_line
from featurestep.page.pool import Jobs, answer
from featurestep.page.server import make_app
from featurestep.page.state import PageState
from featurestep.page.views import Views, tasks_of

PACKAGE = Path(featurestep.__file__).parent
RIDGES = (0.1, 0.2)  # of the first question and of the traced one
ROOMS = ("core", "functions", "theory")
PLAIN: dict[str, Any] = {"n": 400, "d": 200, "width": 300, "ridge": 0.1, "step_exponent": 0.38}
VARIED: tuple[dict[str, Any], ...] = (  # the fields of plain problems, each by itself
    {},
    {"step_exponent": None, "step_size": 0.0},
    {"activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)"},
    {"activation": "H1 + H2/2", "target": "relu"},
    {"activation": "sin(z + 0.6)", "target": "hard_tanh"},
    {"target": "z1*z2 + z1"},
    {"readout": "gaussian"},
    {"readout": "uniform", "step_exponent": 0.7},
    {"readout": "gaussian", "activation": "relu", "step_exponent": 0.6},
    {"residual": "full", "activation": "sigmoid"},
    {"initial": "gaussian"},
    {"d": 20, "readout": "rademacher"},
)


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
def traced() -> Iterator[set[tuple[str, int]]]:
    """The package's functions that are called meanwhile: their files and first lines."""
    called: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            called.add((code.co_filename, code.co_firstlineno))

    found: set[tuple[str, int]] = set()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        own = ((Path(name), line) for name, line in called if Path(name).is_relative_to(PACKAGE))
        found |= {(str(path.relative_to(PACKAGE)), line) for path, line in own}


def files(ask: Callable[[float], object]) -> list[str]:
    """Files that the second of two questions runs through."""
    first, second = RIDGES
    ask(first)
    with traced() as found:
        ask(second)
    return sorted({name for name, _ in found})


def report(name: str, goal: int | None, found: list[str]) -> int:
    """Print a count and the files; returns the count."""
    aim = "" if goal is None else f"   (goal {goal})"
    print(f"{name:32} {len(found):3}{aim}\n    {' '.join(found)}")
    return len(found)


def plain_questions() -> Iterator[Callable[[], object]]:
    """Every verb on plain problems of every kind; those of many points on one."""
    for fields in VARIED:
        problem = Problem(**{**PLAIN, **fields})
        verbs: tuple[Callable[[Problem], object], ...]
        verbs = predict, limit, baselines, learnable, spectrum
        for verb in verbs:
            yield partial(verb, problem)
        yield partial(predict, problem, method="isotropic")
        yield partial(predict, problem.vary(ridge=[0.1, 0.2]))
        yield partial(simulate, problem, seeds=1, n_test=50)
    plain = Problem(**PLAIN)
    yield partial(compare, plain, seeds=2, n_test=50)
    yield partial(optimum, plain, bounds={"ridge": (0.05, 0.5)})
    yield partial(critical_steps, plain)
    yield partial(phase_diagram, plain.vary(step_exponent=[0.2, 0.4]))
    yield partial(simulated_spectrum, plain, seeds=1, top=2)


def plain_report() -> None:
    """Print how much of the three rooms plain problems enter."""
    with traced() as called:
        for ask in plain_questions():
            with contextlib.suppress(FeaturestepError):  # a refusal is an answer too
                ask()
    entered = sorted({name for name, _ in called if name.split("/")[0] in ROOMS})
    whole = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    report("plain problems, any verb", 50, entered)
    lines = sum(_lines(PACKAGE / name) for name in entered)
    left = sum(_not_called(name, called) for name in entered)
    print(f"    {lines:,} lines, {left:,} of them in functions that are not entered (goal 10,000)")
    print(f"    of {len(whole)} files and {sum(map(_lines, whole)):,} lines in {', '.join(ROOMS)}")


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _not_called(name: str, called: set[tuple[str, int]]) -> int:
    """Lines of a file's functions and methods that were not called."""
    count = 0
    pending: list[ast.AST] = [ast.parse((PACKAGE / name).read_text())]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                if (name, first) not in called:
                    count += (node.end_lineno or first) - first + 1
            elif isinstance(node, ast.ClassDef):
                pending.append(node)
    return count


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
    plain_report()


if __name__ == "__main__":
    main()
