"""One driver for each store: a lock of the operating system, which dies with its process."""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path

from .failures import StoreError, StoreInUse

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DriverLock:
    """Held from its making to `release`; the file stays, and names the last holder."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            rule = f"the store {store} cannot be written ({error.strerror})"
            raise StoreError(rule) from None
        try:
            _try_lock(self._file)
        except (BlockingIOError, PermissionError):
            holder = self._holder()
            os.close(self._file)
            raise StoreInUse(
                f"the store {store} is in use by {holder}; wait for it or choose another store"
            ) from None
        except OSError as error:
            os.close(self._file)
            raise StoreError(f"the store {store} cannot be locked ({error.strerror})") from None
        self._sign()

    def _holder(self) -> str:
        # The first byte is the one that is locked, where locks hide what they cover.
        os.lseek(self._file, 1, os.SEEK_SET)
        return os.read(self._file, 200).decode(errors="replace") or "another process"

    def _sign(self) -> None:
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        holder = f" process {os.getpid()} on {platform.node()} since {since}"
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, holder.encode())

    def release(self) -> None:
        """Let the next driver in."""
        os.close(self._file)
