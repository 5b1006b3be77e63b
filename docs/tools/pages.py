"""Fenced blocks of Markdown pages: which are examples, and which text is their output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNNABLE = ("python", "sh")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^`]*?) *$")
_MARK = re.compile(r"^\s*<!-- (?P<mark>slow|not run: .+?|any output) -->\s*$")


@dataclass(frozen=True)
class Fence:
    """One fenced block: its language, its text, the lines it spans (fences included)."""

    language: str
    text: str
    start: int
    stop: int
    indent: str
    mark: str | None


@dataclass(frozen=True)
class Example:
    """A block to run, and the output that the page promises."""

    page: Path
    block: Fence
    output: Fence | None

    @property
    def place(self) -> str:
        """Where it stands, as compilers say it."""
        return f"{self.page.relative_to(ROOT)}:{self.block.start + 1}"

    @property
    def mark(self) -> str:
        """`slow`, `any output`, `not run: …` with the reason, or nothing."""
        return self.block.mark or ""


def pages() -> list[Path]:
    """The README and every page of the documentation that is written by hand."""
    found = sorted(p for p in DOCS.rglob("*.md") if "generated" not in p.parts)
    return [ROOT / "README.md", *found]


def fences(text: str) -> Iterator[Fence]:
    """The fenced blocks of a page, in order."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        opened = _FENCE.match(lines[i])
        if not opened:
            i += 1
            continue
        indent = opened["indent"]
        stop = next((j for j in range(i + 1, len(lines)) if lines[j] == indent + "```"), None)
        if stop is None:
            raise ValueError(f"line {i + 1}: a block without an end")
        body = "\n".join(line.removeprefix(indent) for line in lines[i + 1 : stop])
        above = _MARK.match(lines[i - 1]) if i else None
        mark = above["mark"] if above else None
        yield Fence(opened["language"], body, i, stop + 1, indent, mark)
        i = stop + 1


def examples(page: Path) -> list[Example]:
    """Every block of Python or of commands; a text block right below is what it prints."""
    text = page.read_text()
    lines = text.splitlines()
    found = list(fences(text))
    result = []
    for k, block in enumerate(found):
        if block.language not in RUNNABLE:
            continue
        below = found[k + 1] if k + 1 < len(found) else None
        is_next = below is not None and not "".join(lines[block.stop : below.start]).strip()
        output = below if is_next and below is not None and below.language == "text" else None
        result.append(Example(page, block, output))
    return result
