"""One driver for each store: a lock of the operating system, which ends with its process."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..core.errors import StoreError, StoreInUse


class DriverLock:
    """Held from its making to `release`; its file names the holder and is removed with the lock."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + ".lock")
        self._lock = FileLock(self._path, blocking=False, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout:
            rule = f"is in use by {self._holder()}; wait for it or choose another store"
            raise StoreInUse(f"the store {store} {rule}") from None
        except OSError as error:
            rule = f"the store {store} cannot be written ({error.strerror})"
            raise StoreError(rule) from None
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError):  # a full disk, or Windows: the lock holds all the same
            self._path.write_text(f"process {os.getpid()} on {platform.node()} since {since}")

    def _holder(self) -> str:
        with suppress(OSError, ValueError):
            return self._path.read_text() or "another process"
        return "another process"

    def release(self) -> None:
        """Remove the file and let the next driver in.

        Removed while it is locked; who locks a removed file tries again (filelock 3.21 or newer).
        """
        with suppress(OSError):  # Windows keeps files that are open
            self._path.unlink()
        self._lock.release()
