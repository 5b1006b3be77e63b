"""Run every example of the documentation and hold its output to what the page says.

    python -m docs.tools.examples                  # all pages but the blocks marked slow
    python -m docs.tools.examples --slow           # those too
    python -m docs.tools.examples README.md docs/start.md
    python -m docs.tools.examples --update PAGE    # write what was printed into the page

The Python blocks of a page are one program, the lines of a command block that begin with
`featurestep` are run as commands. A text block right below is the output. A comment above a block
says what is special: `slow`, `any output`, or `not run:` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .agreement import agrees
from .pages import ROOT, Example, examples, pages

os.environ.setdefault("MPLBACKEND", "Agg")
_WIDTH = "140"  # columns of the tables


@dataclass(frozen=True)
class Outcome:
    """What running an example gave."""

    example: Example
    printed: str
    failure: str | None
    seconds: float

    @property
    def complaint(self) -> str | None:
        """What is wrong with it, in a line or more."""
        if self.failure is not None:
            return f"{self.example.place}: fails\n{self.failure}"
        promised = self.example.output
        if promised is None or self.example.mark == "any output":
            return None
        if agrees(promised.text, self.printed):
            return None
        return (
            f"{self.example.place}: prints\n{self.printed}\nand not, as the page says,\n"
            f"{promised.text}"
        )


def run_page(page: Path, *, slow: bool = False, times: bool = False) -> list[Outcome]:
    """Run a page's examples in order, in a folder of their own."""
    chosen = [e for e in examples(page) if not e.mark.startswith("not run")]
    chosen = [e for e in chosen if slow or e.mark != "slow"]
    if not chosen:
        return []
    space: dict[str, Any] = {"__name__": "__main__"}
    outcomes = []
    with _in_own_folder():
        for example in chosen:
            outcomes.append(_run(example, space))
            if times:
                print(
                    f"{outcomes[-1].seconds:7.2f} s  {example.place}", file=sys.stderr, flush=True
                )
    return outcomes


@contextlib.contextmanager
def _in_own_folder() -> Iterator[None]:
    """What examples write goes to a folder that is thrown away; the shipped ones are there."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        (Path(folder) / "docs" / "images").mkdir(parents=True)
        os.chdir(folder)
        os.environ["COLUMNS"] = _WIDTH
        try:
            yield
        finally:
            os.chdir(before)
            if columns is None:
                os.environ.pop("COLUMNS", None)
            else:
                os.environ["COLUMNS"] = columns


def _run(example: Example, space: dict[str, Any]) -> Outcome:
    began = time.perf_counter()
    run = _run_python if example.block.language == "python" else _run_commands
    printed = io.StringIO()
    failure = None
    try:
        run(example.block.text, space, printed)
    except Exception:
        failure = traceback.format_exc(limit=-3)
    text = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
    return Outcome(example, text.strip("\n"), failure, time.perf_counter() - began)


def _run_python(code: str, space: dict[str, Any], printed: io.StringIO) -> None:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<example>", "exec"), space)
        if isinstance(last, ast.Expr):  # as at the prompt, the last value is shown
            value = eval(compile(ast.Expression(last.value), "<example>", "eval"), space)
            if value is not None:
                print(repr(value))


def _run_commands(text: str, space: dict[str, Any], printed: io.StringIO) -> None:
    from click.testing import CliRunner

    from featurestep.cli import main

    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["featurestep"]:
            continue
        result = CliRunner().invoke(main, words[1:])
        printed.write(result.stdout)
        if result.exit_code:
            raise RuntimeError(f"{line}: exit code {result.exit_code}: {result.output[-2000:]}")


def update(page: Path, outcomes: Sequence[Outcome]) -> int:
    """Write outputs that differ into the page; how many did.

    Lines of the page with `...` that agree with what was printed stay: times differ in every run.
    """
    lines = page.read_text().splitlines()
    changed = 0
    for outcome in reversed(outcomes):
        block = outcome.example.output
        if block is None or outcome.failure is not None or outcome.complaint is None:
            continue
        open_lines = [line for line in block.text.splitlines() if "..." in line]
        kept = [
            next((known for known in open_lines if agrees(known, line)), line)
            for line in outcome.printed.splitlines()
        ]
        body = [(block.indent + line).rstrip() for line in kept]
        lines[block.start + 1 : block.stop - 1] = body
        changed += 1
    if changed:
        page.write_text("\n".join(lines) + "\n")
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pages asked for; the number of complaints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--slow", action="store_true", help="also the blocks marked slow")
    parser.add_argument("--update", action="store_true", help="write outputs into the pages")
    parser.add_argument("--times", action="store_true", help="print the time of every example")
    chosen = parser.parse_args(arguments)
    complaints = ran = 0
    for page in [p.resolve() for p in chosen.pages] or pages():
        outcomes = run_page(page, slow=chosen.slow, times=chosen.times)
        ran += len(outcomes)
        for outcome in outcomes:
            complaint = outcome.complaint
            if complaint and not (chosen.update and outcome.failure is None):
                complaints += 1
                print(complaint, file=sys.stderr)
        if chosen.update:
            print(f"{page.name}: {update(page, outcomes)} outputs written", file=sys.stderr)
    print(f"{ran} examples run, {complaints} complaints")
    return complaints


if __name__ == "__main__":
    sys.exit(min(main(), 1))
