"""Which numerics made a result: a fingerprint of the sources that its numbers come from.

A number that somebody must remember to raise is forgotten, and then a store serves what an older
version computed. So the fingerprint is taken from the code itself: from the module of a task and
everything that it imports, in the package, at whatever depth. Comments, docstrings, annotations
and layout do not count. It errs on the safe side: a change that leaves all numbers as they are
makes new keys too, and costs a computation, never a wrong answer.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

_PACKAGE = __name__.split(".")[0]
_SOURCES = Path(__file__).parents[1]
_ENGINES = ("theory", "simulation")  # which never import each other
_EDGES = ("plots", "figures", "page", "cli")  # which show numbers and make none
_LENGTH = 16  # hexadecimal digits
_SKIPPED = ("annotation", "returns", "type_comment", "kind", "ctx")  # they make no numbers


def installed(name: str, otherwise: str = "unknown") -> str:
    """The version of a package, or what to say where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return otherwise


@cache
def fingerprint(module: str, engine: str) -> str:
    """The fingerprint of a task's module, whose numbers come from one of the two engines.

    Where there are no sources to read, the version of the package has to do.
    """
    reached = sorted(_reached(module, engine))
    if not reached:
        return installed(_PACKAGE)
    digest = hashlib.sha256()
    for name in reached:
        digest.update(name.encode())
        digest.update(_source(name).digest)
    return digest.hexdigest()[:_LENGTH]


def _reached(module: str, engine: str) -> set[str]:
    """The module and all that it imports, but nothing of the other engine or of the edges."""
    others = (each for each in _ENGINES if each != engine)
    closed = tuple(f"{_PACKAGE}.{each}" for each in (*others, *_EDGES))
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        shut = any(name == room or name.startswith(f"{room}.") for room in closed)
        if name in reached or shut or _path(name) is None:
            continue
        reached.add(name)
        waiting.extend(_source(name).imports)
    return reached


class _Source(NamedTuple):
    """One module: what it imports, and the digest of what it does."""

    imports: tuple[str, ...]
    digest: bytes


def _source(name: str) -> _Source:
    path = _path(name)
    assert path is not None
    inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _parsed(path.read_bytes(), inside)


@cache
def _parsed(text: bytes, inside: str) -> _Source:
    tree = ast.parse(text)
    digest = hashlib.sha256(" ".join(_words(tree)).encode()).digest()
    return _Source(tuple(dict.fromkeys(_imports(tree, inside))), digest)


@cache
def _path(name: str) -> Path | None:
    """The file of a module of the package; its root, which only names the others, has none."""
    package, _, rest = name.partition(".")
    if package != _PACKAGE or not rest:
        return None
    base = _SOURCES.joinpath(*rest.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def _imports(tree: ast.Module, inside: str) -> Iterator[str]:
    """The names of modules that a tree imports, wherever it does; some may be no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            room = inside.rsplit(".", node.level - 1)[0] if node.level else ""
            home = ".".join(part for part in (room, node.module) if part)
            yield home
            yield from (f"{home}.{alias.name}" for alias in node.names)


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
