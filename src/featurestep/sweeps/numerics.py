"""Which numerics made a result: a fingerprint of the sources that its numbers come from.

A number that somebody must remember to raise is forgotten, and then a store serves what an older
version computed. So the fingerprint is taken from the code itself: from the module of a task and
from the whole package, but for the other engine and the rooms that make no numbers of a task.
Comments, docstrings, annotations and layout do not count. It errs on the safe side: a change that
leaves all numbers as they are makes new keys too, and costs a computation, never a wrong answer.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGE = __name__.split(".")[0]
_SOURCES = Path(__file__).parents[1]
_ENGINES = ("theory", "simulation")  # which never import each other
_APART = (  # no number of a task is made here; a room that is not named counts
    *("meeting", "processes", "sweeps", "plots", "figures", "studies", "estimators", "page", "cli"),
    *("__init__", "__main__", "bench", "demo", "palette"),
)
_LENGTH = 16  # hexadecimal digits
_SKIPPED = ("annotation", "returns", "type_comment", "kind", "ctx")  # they make no numbers


def installed(name: str, otherwise: str = "unknown") -> str:
    """The version of a package, or what to say where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return otherwise


@cache
def fingerprint(task: type, engine: str) -> str:
    """The fingerprint of a kind of task, whose numbers come from one of the two engines.

    Where there are no sources to read, the version of the package has to do.
    """
    found = sources(task, engine)
    if not found:
        return installed(_PACKAGE)
    digest = hashlib.sha256()
    for name, path in found.items():
        digest.update(name.encode())
        digest.update(_digest(path.read_bytes()))
    return digest.hexdigest()[:_LENGTH]


def sources(task: type, engine: str) -> dict[str, Path]:
    """The modules behind a task's numbers, with their files."""
    own = {each.__module__ for each in task.__mro__}
    apart = {*_APART, *_ENGINES} - {engine}
    found = {}
    for path in sorted(_SOURCES.rglob("*.py")):
        parts = path.relative_to(_SOURCES).with_suffix("").parts
        name = ".".join((_PACKAGE, *parts))
        if parts[0] not in apart or name in own:
            found[name] = path
    return found


@cache
def _digest(text: bytes) -> bytes:
    """The digest of what a module does."""
    return hashlib.sha256(" ".join(_words(ast.parse(text))).encode()).digest()


def _words(node: ast.AST) -> Iterator[str]:
    """A tree as words, the same in every version of Python: empty fields are left out."""
    yield type(node).__name__
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED or value is None or value == []:
            continue
        yield field
        for each in value if isinstance(value, list) else (value,):
            if not isinstance(each, ast.AST):
                yield repr(each)
            elif not _is_text(each):
                yield from _words(each)
    yield "."


def _is_text(node: ast.AST) -> bool:
    """A docstring, or any other text that stands for itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
