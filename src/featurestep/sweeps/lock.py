"""One driver for each store: a lock of the operating system, which dies with its process."""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path

from ..core.errors import StoreError, StoreInUse

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DriverLock:
    """Held from its making to `release`; its file names the holder and goes with it."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + ".lock")
        self._lock(store)
        while not self._is_there():  # its last holder took the file away just before
            os.close(self._file)
            self._lock(store)
        self._sign()

    def _is_there(self) -> bool:
        """Whether what is locked is the file that others find."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except OSError:
            return False

    def _lock(self, store: Path) -> None:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
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
        """Take the file away and let the next driver in."""
        with suppress(OSError):  # Windows keeps what is open: the file goes after it
            os.unlink(self._path)
        os.close(self._file)
        if sys.platform == "win32":
            with suppress(OSError):
                os.unlink(self._path)
