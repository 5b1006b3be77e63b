"""What a waiting person sees: a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, int], None]  # how much is done, and of how much, as verbs tell it
INTERRUPTED = 130  # what a shell reports for a process ended by Ctrl-C
_FINE = 1000  # steps of a bar over shares


@contextmanager
def watched(total: int, describe: Callable[[int], str]) -> Iterator[Advance | None]:
    """A bar on stderr with the time left, or None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(describe(0), total=total)
        yield lambda done, _: bar.update(task, completed=done, description=describe(done))


@contextmanager
def watched_share(words: str) -> Iterator[Callable[[float], None]]:
    """The same bar for work that tells the share of it that is done."""
    with watched(_FINE, lambda done: words) as advance:

        def told(share: float) -> None:
            if advance is not None:
                advance(int(_FINE * share), _FINE)

        yield told
