"""Workers: they answer, are killed when late, dropped when not wanted, and replaced when dead."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest

from featurestep.processes import (
    DONE,
    PROGRESS,
    READY,
    Answer,
    Call,
    CannotStart,
    Process,
    WorkerPool,
)

from .duties import work


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(work, 2)
    yield made
    made.close()


def ask(pool: WorkerPool, *calls: tuple[str, ...], **how: Any) -> list[Answer]:
    waiting = [Call(call) for call in reversed(calls)]
    return list(pool.work(lambda: waiting.pop() if waiting else None, **how))


def test_every_call_is_answered_once_and_processes_stay(pool: WorkerPool) -> None:
    found = ask(pool, *(("say", str(k)) for k in range(7)), ("print", "x"))
    assert sorted(str(answer.value) for answer in found) == [*"0123456", "x"]
    assert {answer.kind for answer in found} == {"done"}
    first = {answer.value for answer in ask(pool, *[("who",)] * 6)}
    assert {answer.value for answer in ask(pool, *[("who",)] * 6)} == first


def test_who_is_late_is_killed_and_replaced(pool: WorkerPool) -> None:
    (before,) = ask(pool, ("who",), workers=pool.workers[:1])
    began = time.monotonic()
    (late,) = ask(pool, ("sleep", "60"), workers=pool.workers[:1], until=began + 0.2)
    assert late == Answer(Call(("sleep", "60")), "late")
    assert time.monotonic() - began < 30
    (after,) = ask(pool, ("who",), workers=pool.workers[:1])
    assert after.value != before.value


def test_what_is_not_wanted_is_dropped_and_the_process_goes_on(pool: WorkerPool) -> None:
    (before,) = ask(pool, ("who",), workers=pool.workers[:1])
    began = time.monotonic()
    waits = ask(
        pool,
        ("sleep", "60"),
        ("say", "never begun"),
        workers=pool.workers[:1],
        wanted=lambda: time.monotonic() < began + 0.3,
    )
    assert [answer.kind for answer in waits] == ["dropped"]
    (after,) = ask(pool, ("who",), workers=pool.workers[:1])
    assert after.value == before.value


def test_a_call_that_waits_for_its_process_is_dropped_too() -> None:
    fresh = WorkerPool(work, 1)
    try:
        wanted = iter([True, False, False, False])
        (answer,) = ask(fresh, ("sleep", "5"), wanted=lambda: next(wanted))
        assert answer.kind == "dropped"
        assert [answer.value for answer in ask(fresh, ("say", "y"))] == ["y"]
    finally:
        fresh.close()


def test_a_death_is_told_with_its_last_words(pool: WorkerPool, tmp_path: Any) -> None:
    dead, raised, fine = ask(
        pool,
        ("die", str(tmp_path / "once")),
        ("raise", "no luck"),
        ("say", "x"),
        workers=pool.workers[:1],
    )
    assert (dead.kind, dead.value.how) == ("died", "with exit code 3")
    assert raised.kind == "died"
    assert raised.value.reason == "ValueError: no luck"
    assert (fine.kind, fine.value) == ("done", "x")


def test_a_process_may_tell_how_far_it_is() -> None:
    events: Any = queue.SimpleQueue()
    one = Process(work, events)
    one.give("tell", "end")
    try:
        told = [events.get(timeout=60) for _ in range(3)]
        assert [(event.kind, event.what) for event in told] == [
            (READY, None),
            (PROGRESS, 0.5),
            (DONE, "end"),
        ]
    finally:
        one.end()
    assert events.get(timeout=60).kind is None


def test_processes_that_cannot_start_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featurestep.processes.COMMAND", "raise SystemExit('no such module')")
    broken = WorkerPool(work, 2)
    try:
        with pytest.raises(CannotStart, match="worker processes do not start: no such module"):
            ask(broken, ("say", "x"), ("say", "y"))
    finally:
        broken.close()


def test_a_pool_that_has_ended_starts_nothing() -> None:
    over = WorkerPool(work, 1)
    over.close()
    assert ask(over, ("say", "x")) == []
    assert over.workers[0].process is None
