"""The rooms of the package and who imports whom, as a drawing made from the imports.

python -m docs.tools.architecture    # writes docs/images/architecture.svg
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .pages import DOCS, ROOT

SOURCE = ROOT / "src" / "featurestep"
TARGET = DOCS / "images" / "architecture.svg"
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 132, 44, 64, 26, 24


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The syntax tree of a file, node by node."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, as dotted names below the package."""
    package = path.relative_to(SOURCE).with_suffix("").parts[:-1]
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            parents = package[: len(package) - (node.level - 1)]
            base = ".".join([*parents, *([node.module] if node.module else [])])
            found.add(base)
            if not node.module:
                found.update(".".join([*parents, alias.name]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("featurestep"):
            found.add((node.module or "").removeprefix("featurestep").lstrip("."))
        elif isinstance(node, ast.Import):
            found.update(
                a.name.removeprefix("featurestep.") for a in node.names if "featurestep" in a.name
            )
    return found


def rooms() -> dict[str, set[str]]:
    """Every room, a folder or a module at the top level, with the rooms it imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.parent == SOURCE and path.stem in ("__init__", "__main__"):
            continue
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        tops = {module.split(".")[0] for module in imported(path)} - {"", "__version__"}
        found.setdefault(room, set()).update(tops)
    return {room: imports - {room} for room, imports in found.items()}


def layers(graph: dict[str, set[str]]) -> list[list[str]]:
    """Rooms in columns: each stands right of everything it imports."""
    depth: dict[str, int] = {}

    def find(room: str, path: tuple[str, ...] = ()) -> int:
        if room in path:  # `core` and `functions` use each other: one column
            return 0
        if room not in depth:
            below = [
                find(other, (*path, room)) + 1 for other in sorted(graph[room]) if other not in path
            ]
            depth[room] = max(below, default=0)
        return depth[room]

    for room in sorted(graph):
        find(room)
    columns = sorted(set(depth.values()))
    return [sorted(room for room in graph if depth[room] == column) for column in columns]


def direct(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports that do not follow from a path over a third room."""

    def reaches(start: str, goal: str, seen: frozenset[str]) -> bool:
        return any(
            step == goal or (step not in seen and reaches(step, goal, seen | {step}))
            for step in graph[start]
        )

    pairs = []
    for room in sorted(graph):
        for other in sorted(graph[room]):
            between = (step for step in graph[room] - {other} if room not in graph[step])
            if not any(reaches(step, other, frozenset({room, step})) for step in between):
                pairs.append((room, other))
    return pairs


def drawing() -> str:
    """The diagram as SVG text."""
    graph = rooms()
    columns = layers(graph)
    tallest = max(map(len, columns))
    width = 2 * _MARGIN + len(columns) * _WIDTH + (len(columns) - 1) * _GAP_X
    height = 2 * _MARGIN + tallest * _HEIGHT + (tallest - 1) * _GAP_Y
    places: dict[str, tuple[float, float]] = {}
    for i, column in enumerate(columns):
        used = len(column) * _HEIGHT + (len(column) - 1) * _GAP_Y
        for j, room in enumerate(column):
            top = (height - used) / 2 + j * (_HEIGHT + _GAP_Y)
            places[room] = (_MARGIN + i * (_WIDTH + _GAP_X), top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="14">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#8a8a8a"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    parts += [_arrow(places[a], places[b]) for a, b in direct(graph)]
    parts += [_box(room, *places[room]) for room in sorted(places)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x0, y0 = start[0], start[1] + _HEIGHT / 2
    x1, y1 = end[0] + _WIDTH, end[1] + _HEIGHT / 2
    if start[0] == end[0]:  # in one column: beside the boxes
        x0, x1 = start[0] + _WIDTH / 2, end[0] + _WIDTH / 2
        y0, y1 = (start[1], end[1] + _HEIGHT) if start[1] > end[1] else (start[1] + _HEIGHT, end[1])
    bend = (x0 - x1) / 2
    curve = f"M{x0:g} {y0:g} C{x0 - bend:g} {y0:g} {x1 + bend:g} {y1:g} {x1:g} {y1:g}"
    return f'<path d="{curve}" fill="none" stroke="#8a8a8a" marker-end="url(#head)"/>'


def _box(room: str, x: float, y: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="7" fill="#eef3fa" '
        f'stroke="#31679b"/><text x="{x + _WIDTH / 2:g}" y="{y + _HEIGHT / 2 + 5:g}" '
        f'text-anchor="middle" font-weight="bold">{room}</text>'
    )


if __name__ == "__main__":
    TARGET.write_text(drawing())
