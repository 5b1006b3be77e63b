"""The store: what is recorded stays, whatever happens to the file, the disk or the driver."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import contextmanager

import pytest

from featurestep import StoreError, StoreInUse
from featurestep.sweeps import LAYOUT, MISSING, Outcome, Report, Store

KEYS = [bytes([k]) * 32 for k in range(20)]
NAMES = {key: f"description {i}" for i, key in enumerate(KEYS)}


def report(*places, value=1.0, status="ok"):
    values = {"x": value} if status == "ok" else None
    error = "" if status == "ok" else "why"
    outcomes = [Outcome(status, values, error) for _ in places]
    return Report(tuple(KEYS[p] for p in places), outcomes, 0.5, {"host": "here"})


def filled(path, *places):
    with Store.for_writing(path) as store:
        store.record(report(*places), NAMES)


def content(path):
    with Store.for_reading(path) as store:
        rows = enumerate(store.fetch(KEYS))
        return [(place, row.quantities) for place, row in rows if row.status != MISSING]


@contextmanager
def as_nobody():
    """Permissions mean nothing to root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_what_is_recorded_can_be_read_back_in_order(tmp_path):
    path = tmp_path / "s.sqlite"
    filled(path, 3, 1)
    with Store.for_reading(path) as store:
        rows = list(store.fetch([KEYS[1], KEYS[2], KEYS[3]]))
        assert [row.status for row in rows] == ["ok", "missing", "ok"]
        assert rows[0].quantities == '{"x": 1.0}'
        assert rows[0].executions == 1
        assert rows[0].seconds == 0.25
        assert json.loads(rows[0].origin) == {"host": "here"}


def test_a_second_execution_is_counted(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        store.record(report(0, status="failed"), NAMES)
        store.record(report(0, value=2.0), NAMES)
        (row,) = store.fetch(KEYS[:1])
    assert (row.status, row.executions, row.quantities) == ("ok", 2, '{"x": 2.0}')


def test_readers_see_results_while_the_driver_writes(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        store.record(report(0), NAMES)
        assert len(content(path)) == 1
        store.record(report(1), NAMES)
        assert len(content(path)) == 2
    assert sorted(os.listdir(tmp_path)) == ["s.sqlite"]


def test_a_second_driver_is_refused_by_name(tmp_path):
    path = tmp_path / "s.sqlite"
    holder = rf"is in use by process {os.getpid()} on .* since"
    with Store.for_writing(path), pytest.raises(StoreInUse, match=holder):
        Store.for_writing(path)
    Store.for_writing(path).close()


def test_a_job_is_recorded_whole_or_not_at_all(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        torn = report(0, 1)
        torn.outcomes[1] = Outcome("ok", {"x": float("nan")})
        with pytest.raises(ValueError, match="Out of range"):
            store.record(torn, NAMES)
        store.record(report(2), NAMES)
    assert [place for place, _ in content(path)] == [2]


def test_a_full_disk_keeps_what_was_there(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        store.record(report(0, 1, 2), NAMES)
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        long = dict.fromkeys(KEYS, "x" * 50000)
        with pytest.raises(StoreError, match=r"database or disk is full.*untouched") as caught:
            store.record(report(3, 4, 5), long)
        assert "\n" not in str(caught.value)
    assert [place for place, _ in content(path)] == [0, 1, 2]
    filled(path, 3)
    assert len(content(path)) == 4


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    filled(folder / "s.sqlite", 0)
    for each in [*folder.iterdir()]:
        each.chmod(0o444)
    for each in [folder, *list(folder.parents)[:4]]:
        each.chmod(0o555)
    try:
        with as_nobody():
            with pytest.raises(StoreError, match="cannot be written"):
                Store.for_writing(folder / "new.sqlite")
            with pytest.raises(StoreError, match="cannot be written"):
                Store.for_writing(folder / "s.sqlite")
            assert len(content(folder / "s.sqlite")) == 1, "reading needs no writing"
    finally:
        for each in [folder, *list(folder.parents)[:4]]:
            each.chmod(0o755)
    assert not (folder / "new.sqlite").exists()


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "s.sqlite"
    filled(path, 0)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    db.close()
    before = path.read_bytes()
    for opened in (Store.for_writing, Store.for_reading):
        with pytest.raises(StoreError, match=rf"by a newer featurestep \(layout {LAYOUT + 1}"):
            opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "header", "half", "page"])
def test_a_damaged_store_is_one_line_and_left_alone(tmp_path, damage):
    path = tmp_path / "s.sqlite"
    with Store.for_writing(path) as store:
        for place in range(20):
            store.record(report(place), dict.fromkeys(KEYS, "x" * 3000))
    whole = path.read_bytes()
    broken = {
        "garbage": b"not a database" * 100,
        "header": whole[:50],
        "half": whole[: len(whole) // 2],
        "page": whole[:8192] + b"\xff" * 4096 + whole[12288:],
    }[damage]
    path.write_bytes(broken)
    with pytest.raises(StoreError) as caught:
        Store.for_writing(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == broken


def test_a_database_of_someone_else_is_refused(tmp_path):
    path = tmp_path / "s.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(StoreError, match="is not a store of featurestep"):
        Store.for_writing(path)


def test_an_empty_file_is_a_new_store(tmp_path):
    """What is left of a driver that was killed while it made the file."""
    path = tmp_path / "s.sqlite"
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        Store.for_reading(path)
    filled(path, 0)
    assert len(content(path)) == 1


def test_there_is_nothing_to_read_yet(tmp_path):
    with pytest.raises(StoreError, match="there is no store"):
        Store.for_reading(tmp_path / "s.sqlite")
