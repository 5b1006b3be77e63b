"""Files that are whole or absent, at paths that are refused before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .errors import InvalidProblem


def check_file(parameter: str, path: str | Path, endings: Iterable[str] = ()) -> None:
    """Refuse a path that cannot become a file, with one of some endings if there are any."""
    target, listed = Path(path), tuple(endings)
    if listed and target.suffix.lower() not in listed:
        raise InvalidProblem(parameter, f"must end in {', '.join(listed)}", str(path))
    if not os.path.isdir(target.parent):
        raise InvalidProblem(parameter, "must be in a directory that exists", str(path))
    if os.path.isdir(target):
        raise InvalidProblem(parameter, "must be a file, not a directory", str(path))


def write_whole(parameter: str, path: Path, content: bytes) -> None:
    """Write a file beside its place, then put it there: nobody sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        raise unwritable(parameter, error, path) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def unwritable(parameter: str, error: OSError, path: object) -> InvalidProblem:
    """What to raise for a file or folder that cannot be written."""
    return InvalidProblem(parameter, f"must be writable ({error.strerror})", str(path))
