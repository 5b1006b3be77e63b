"""How much memory a run may take when nobody says, and how its work is cut to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SHARE = 0.9  # of what is free now


@dataclass(frozen=True)
class Limits:
    """How a backend likes its work cut, in bytes where nothing else is said."""

    buffers: int = 64 << 20  # row buffers aim at this much together
    grams: int = 2 << 30  # Gram matrices held at once, unless max_memory says otherwise
    rows: int = 1024  # of a block, at most
    workspace: int = 12 << 20  # of BLAS and of pieces of elementwise work
    batch: int = 0  # draws of small networks that are computed at once aim at this much together
    most: int | None = None  # what a device has: a run may take no more


def usable_memory() -> int | None:
    """Bytes: a share of what is free on the machine and in its control group; None if unknown."""
    found = [size for size in (_machine(), _control_group()) if size is not None]
    return int(SHARE * min(found)) if found else None


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: text for name, _, text in (line.partition(":") for line in lines)}
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:  # what there is, where nothing tells what is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _control_group() -> int | None:
    """What is left of a container's limit."""
    folder = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int((folder / most).read_text()) - int((folder / used).read_text()))
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return None
