"""The store: one SQLite file with every result, committed the moment it arrives.

One driver writes (a lock of the operating system sees to it); others may read at the same time,
which is what the write-ahead log is for. A killed driver loses nothing that was recorded.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from filelock import FileLock, Timeout

from ..core.display import json_value
from ..core.errors import StoreError, StoreInUse
from .engines import Report
from .identity import TOLERANCE, Answers, Numerics, difference, tag_of
from .tasks import Unit


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


MISSING = "missing"  # the status of what is not stored
LAYOUT = 2  # of the tables; a store with a higher one is refused, one with a lower one brought up
APPLICATION_ID = 0x66737470  # "fstp": how SQLite files tell whose they are
_NUMERICS_TABLE = """
CREATE TABLE numerics (                    -- since layout 2
    id INTEGER PRIMARY KEY,
    probes TEXT NOT NULL,                  -- name of the probe problems, mostly that of a task
    tag TEXT NOT NULL,                     -- as in the descriptions of results
    answers TEXT NOT NULL,                 -- by probe and quantity, as JSON
    UNIQUE (probes, tag)
);
"""
_TABLES = f"""
{_NUMERICS_TABLE}
CREATE TABLE origins (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL UNIQUE           -- host, versions and BLAS, as JSON
);
CREATE TABLE results (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,              -- SHA-256 of the description
    description TEXT NOT NULL,             -- problem, task, options and numerics, as JSON
    status TEXT NOT NULL,                  -- ok, refused or failed
    quantities TEXT,                       -- by name, as JSON; NULL unless ok
    error TEXT NOT NULL,
    trace TEXT NOT NULL,
    executions INTEGER NOT NULL DEFAULT 1,
    finished REAL NOT NULL,                -- seconds since 1970
    seconds REAL NOT NULL,                 -- an equal share of its job's time
    origin INTEGER NOT NULL REFERENCES origins (id)
);
"""
_RECORD = """
INSERT INTO results (key, description, status, quantities, error, trace, finished, seconds, origin)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    status = excluded.status, quantities = excluded.quantities, error = excluded.error,
    trace = excluded.trace, finished = excluded.finished, seconds = excluded.seconds,
    origin = excluded.origin, executions = executions + 1
"""
_FETCH = """
SELECT status, quantities, error, trace, executions, finished, seconds, content
FROM temp.wanted LEFT JOIN results USING (key) LEFT JOIN origins ON origin = origins.id
ORDER BY wanted.place
"""
_VERSIONS = """
SELECT json_extract(description, '$.task'), json_extract(description, '$.numerics'),
       max(finished), coalesce(json_extract(content, '$.featurestep'), 'unknown')
FROM results JOIN origins ON origin = origins.id GROUP BY 1, 2 ORDER BY 3 DESC
"""


class Version(NamedTuple):
    """Numerics that have stored results of a task, and how many of those somebody asks for."""

    task: str
    numerics: Numerics
    finished: float  # the newest, in seconds since 1970
    package: str  # the version of featurestep behind it
    units: int = 0
    difference: float | None = None  # of its probe answers from today's; None if it kept none

    def __str__(self) -> str:
        day = datetime.fromtimestamp(self.finished, UTC).date()
        made = f"featurestep {self.package}, {day}"
        if self.difference is None:
            told = "which cannot be compared with this version: no check values were stored"
        else:
            told = f"whose check values differ from this version's by up to {self.difference:.1e}"
        return f"{self.units} of {self.task} stored by numerics {self.numerics} ({made}), {told}"

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "task": self.task,
            "numerics": str(self.numerics),
            "units": self.units,
            "difference": json_value(self.difference),
            "featurestep": self.package,
        }


class StoredRow(NamedTuple):
    """One stored result, or that there is none."""

    status: str = MISSING
    quantities: str | None = None
    error: str = ""
    trace: str = ""
    executions: int = 0
    finished: float = 0.0
    seconds: float = 0.0
    origin: str = ""  # host, versions and BLAS, as JSON

    @property
    def numbers(self) -> dict[str, Any]:
        """Its quantities by name, if it has any."""
        found: dict[str, Any] = json.loads(self.quantities) if self.quantities else {}
        return found


class Store:
    """Results by key. Made by `for_writing`, `for_reading` or `in_memory`."""

    def __init__(self, path: Path | None, mode: str, *, writing: bool) -> None:
        self._name = "in memory" if path is None else str(path)
        self.is_kept = path is not None
        self._writing = writing
        target = "file::memory:" if path is None else f"{path.absolute().as_uri()}?{mode}"
        with ExitStack() as opened, self._explained():
            if writing and path is not None:
                opened.callback(DriverLock(path).release)
            self._db = sqlite3.connect(target, uri=True, isolation_level=None)
            opened.callback(self._db.close)
            self._prepare(writing)
            self._opened = opened.pop_all()

    @classmethod
    def for_writing(cls, path: Path) -> Store:
        """The driver's: made if need be, locked, checked for damage."""
        return cls(path, "mode=rwc", writing=True)

    @classmethod
    def for_reading(cls, path: Path) -> Store:
        """Anyone's, also while a driver is at work; nothing is written."""
        if not path.is_file():
            raise StoreError(f"there is no store {path} yet")
        return cls(path, _reading_mode(path), writing=False)

    @classmethod
    def in_memory(cls) -> Store:
        """A store that lasts as long as this object."""
        return cls(None, "", writing=True)

    def _prepare(self, writing: bool) -> None:
        is_empty = self._layout() == 0
        if not writing:
            if is_empty:
                raise StoreError(f"the store {self._name} is empty")
            return
        if is_empty:
            self._create()
        else:
            (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                text = " ".join(found.split())
                raise StoreError(f"the store {self._name} is damaged ({text})")
            if self._layout() < LAYOUT:
                self._db.executescript(
                    f"BEGIN; {_NUMERICS_TABLE} PRAGMA user_version = {LAYOUT}; COMMIT;"
                )
        self._db.execute("PRAGMA journal_mode = WAL")
        # Enough for a killed process; after a power cut the last results may be missing.
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _create(self) -> None:
        self._db.executescript(
            f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {LAYOUT}; COMMIT;"
        )

    def _layout(self) -> int:
        """The layout of the file, 0 of an empty one; refuse what is not ours or too new."""
        (layout,) = self._db.execute("PRAGMA user_version").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not layout and not application:
            return 0
        if application != APPLICATION_ID:
            raise StoreError(f"{self._name} is not a store of featurestep")
        if layout > LAYOUT:
            raise StoreError(
                f"the store {self._name} was written by a newer featurestep "
                f"(layout {layout}; this one knows {LAYOUT})"
            )
        return int(layout)

    def record(self, report: Report, descriptions: Mapping[bytes, str]) -> None:
        """Commit the outcomes of a job, all or none."""
        share = report.seconds / len(report.keys)
        with self._explained(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            origin = self._origin(report.origin)
            end = (report.finished, share, origin)
            self._db.executemany(
                _RECORD,
                (
                    (key, descriptions[key], o.status, _json(o.values), o.error, o.trace, *end)
                    for key, o in zip(report.keys, report.outcomes, strict=True)
                ),
            )

    def _origin(self, content: Mapping[str, str]) -> int:
        text = json.dumps(content, sort_keys=True)
        self._db.execute("INSERT OR IGNORE INTO origins (content) VALUES (?)", (text,))
        found = self._db.execute("SELECT id FROM origins WHERE content = ?", (text,)).fetchone()
        return int(found[0])

    def of(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, StoredRow]]:
        """Each unit with what is stored of it."""
        return zip(units, self.fetch(unit.key for unit in units), strict=True)

    def fetch(self, keys: Iterable[bytes]) -> Iterator[StoredRow]:
        """What is stored of each key, in their order."""
        with self._explained():
            self._db.execute("DROP TABLE IF EXISTS temp.wanted")
            self._db.execute("CREATE TEMP TABLE wanted (place INTEGER PRIMARY KEY, key BLOB)")
            with self._db:
                self._db.execute("BEGIN")
                self._db.executemany("INSERT INTO temp.wanted VALUES (?, ?)", enumerate(keys))
            for values in self._db.execute(_FETCH):
                yield StoredRow() if values[0] is None else StoredRow(*values)

    def numerics_of(self, probes: str, answers: Answers) -> str:
        """The tag of the numerics that have these answers, a new one if the store has none.

        A driver's store keeps new answers.
        """
        for tag, known in self.answers(probes).items():
            if difference(answers, known) <= TOLERANCE:
                self._keep_answers(probes, tag, {**answers, **known})
                return tag
        tag = tag_of(answers)
        self._keep_answers(probes, tag, answers)
        return tag

    def answers(self, probes: str) -> dict[str, Answers]:
        """Answers of probe problems by the tag of their numerics, the newest first."""
        query = "SELECT tag, answers FROM numerics WHERE probes = ? ORDER BY id DESC"
        with self._explained():
            if self._layout() < LAYOUT:
                return {}
            return {tag: json.loads(text) for tag, text in self._db.execute(query, (probes,))}

    def _keep_answers(self, probes: str, tag: str, answers: Answers) -> None:
        if not self._writing:
            return
        query = """INSERT INTO numerics (probes, tag, answers) VALUES (?, ?, ?)
                   ON CONFLICT (probes, tag) DO UPDATE SET answers = excluded.answers"""
        with self._explained(), self._db:
            self._db.execute(query, (probes, tag, _encode(answers)))

    def versions(self) -> list[Version]:
        """The numerics of each task's results, the newest first."""
        with self._explained():
            return [Version(*row) for row in self._db.execute(_VERSIONS)]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors as one line that names the store."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"the store {self._name} cannot be used ({error}); what it holds is untouched"
            ) from error

    def close(self) -> None:
        """Close the file and let the next driver in."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reading_mode(path: Path) -> str:
    """How to open a store to read it.

    Even a reader writes the log's index, and the last one out removes it. In a folder where that
    cannot be done, a store that has no log is read as it stands.
    """
    effective = os.access in os.supports_effective_ids
    if all(os.access(p, os.W_OK, effective_ids=effective) for p in (path, path.parent)):
        return "mode=rw"
    return "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"


_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode


def _json(values: Mapping[str, Any] | None) -> str | None:
    return None if values is None else _encode(values)
