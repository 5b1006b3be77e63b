"""Drafts that follow a slider: close to the full spectrum, with its spikes; stale ones end."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any

import numpy as np
import pytest

from featurestep import NotConverged, Problem, Spectrum, spectrum
from featurestep.page import figures, panels, pool
from featurestep.page.pool import Memory, Overtaken, PageTask, Pool, TooSlow
from featurestep.page.server import Latest
from featurestep.page.state import PageState
from featurestep.page.views import tasks_of
from featurestep.theory.spectra import DRAFT, solve_spectrum

from .explorer import written

_PIXELS = 300  # of a panel, across
pytestmark = pytest.mark.usefixtures("solved_once")


def random_state(rng: random.Random, readout: str) -> PageState:
    return PageState(
        readout=readout,
        activation=rng.choice(("relu", "tanh", "erf", "softplus")),
        centre=rng.random() < 0.7,
        n=round(10 ** rng.uniform(2.5, 4.0)),
        phi=10 ** rng.uniform(-0.8, 0.8),
        psi=10 ** rng.uniform(-0.8, 0.8),
        step_exponent=rng.uniform(0.0, 0.5),
        step_scale=10 ** rng.uniform(-0.5, 0.3),
        noise_std=rng.uniform(0.0, 1.0),
        c2=rng.uniform(-1.0, 1.0),
        c3=rng.uniform(-1.0, 1.0),
    )


def moved(rng: random.Random, state: PageState) -> PageState:
    """The state after a slider has moved by a few steps."""
    factor = 10 ** (rng.choice((-1, 1)) * 0.01 * rng.randint(1, 6))
    name = rng.choice(("phi", "psi", "n", "step_scale", "step_exponent", "noise_std"))
    if name in ("step_exponent", "noise_std"):
        return state.replace(**{name: min(0.5, getattr(state, name) + 0.01 * rng.randint(0, 3))})
    value = getattr(state, name) * factor
    return state.replace(**{name: round(value) if name == "n" else value})


def drafted(problem: Problem) -> Spectrum:
    return solve_spectrum(problem, DRAFT)[1]


def check(draft: Spectrum, full: Spectrum) -> None:
    """The same spikes, and numbers that no eye can tell apart."""
    if full.entry_reach > 1.02 * full.edge:  # single samples: no sharp edge, and full says so
        assert any(note.kind == "no sharp edge" for note in full.notes)
        certain = [[s for s in f.spikes if s.location > full.entry_reach] for f in (draft, full)]
        assert len(certain[0]) == len(certain[1])
        for rough, exact in zip(*certain, strict=True):
            assert rough.location == pytest.approx(exact.location, rel=0.02)
        middle = full.edge / 4.0
        assert draft.cumulative(middle) == pytest.approx(full.cumulative(middle), abs=0.02)
        return
    assert [s.resolved for s in draft.spikes] == [s.resolved for s in full.spikes]
    degrees = [[s.degree for s in found.spikes if s.resolved] for found in (draft, full)]
    assert degrees[0] == degrees[1]  # within the edge's fluctuations they may be a toss-up
    assert draft.edge == pytest.approx(full.edge, rel=1e-3)
    for rough, exact in zip(draft.spikes, full.spikes, strict=True):
        assert rough.location == pytest.approx(exact.location, rel=1e-3)
        np.testing.assert_allclose(rough.overlaps, exact.overlaps, atol=5e-3)
    place = np.linspace(0.0, full.edge**0.5, _PIXELS)
    density = full.singular_density(place)
    gap = np.abs(draft.singular_density(place) - density) / density.max()
    whole = len(full.intervals) == 1  # in parts too small for the nodes to tell, who is to say
    assert gap.mean() < (0.01 if whole else 0.02)
    assert np.median(gap) < (2e-3 if whole and not draft.is_smoothed else 0.01)
    apart = np.abs(draft.cumulative(place**2) - full.cumulative(place**2)).max()
    assert apart < (0.02 if draft.is_smoothed else 5e-3)


def check_many(seed: int, readouts: tuple[str, ...], count: int) -> None:
    """Random states, and two moves of each."""
    rng = random.Random(seed)
    for readout in readouts:
        for _ in range(count):
            state = random_state(rng, readout)
            for _ in range(3):
                try:
                    full = spectrum(state.problem)
                except NotConverged:
                    break
                try:
                    draft = drafted(state.problem)
                except NotConverged:  # too many parts for a draft: drawn at rest
                    assert full.entry_reach > 1.02 * full.edge
                    break
                check(draft, full)
                state = moved(rng, state)


def test_a_draft_has_the_spikes_of_the_full_spectrum() -> None:
    check_many(1, ("constant",), 1)


@pytest.mark.slow
def test_drafts_of_many_states_have_the_spikes_of_the_full_spectrum() -> None:
    check_many(2, ("constant", "rademacher", "gaussian"), 8)
    check_many(3, ("gaussian", "uniform"), 4)


def test_a_smoothed_draft_says_that_it_is_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other is the full answer to the eye."""
    state = PageState(n=500, step_exponent=0.45, readout="rademacher")
    drawn, full = panels.spectrum(state, draft=True), panels.spectrum(state)
    check(drafted(state.problem), spectrum(state.problem))

    def fail(*_: object) -> None:
        raise NotConverged("a part was lost")

    monkeypatch.setattr("featurestep.theory.spectra.solve.bulk", fail)
    smoothed = panels.spectrum_data(state, drafted(state.problem)) | {"rough": True}
    for shown, marked in ((smoothed, True), (drawn, False), (full, False)):
        assert shown["rough"] == marked
        assert ("draft" in written(figures.spectrum_figure(state, shown))) == marked


def test_a_draft_that_is_refused_says_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotConverged("too many parts")

    monkeypatch.setattr(panels, "solve_spectrum", refuse)
    with pytest.raises(NotConverged, match="drawn when you stop moving the controls"):
        panels.spectrum(PageState(readout="constant"), draft=True)


@pytest.mark.parametrize(
    ("readout", "over"),
    [
        *(("constant", over) for over in ("exponent", "samples", "width", "ridge")),
        *(("gaussian", over) for over in ("exponent", "ridge")),
        *(pytest.param("gaussian", each, marks=pytest.mark.slow) for each in ("samples", "width")),
    ],
)
def test_a_drafted_curve_has_fewer_points_of_nearly_the_same_curve(over: str, readout: str) -> None:
    state = PageState(over=over, readout=readout, n=500)
    rough, full = panels.curve(state, draft=True), panels.curve(state)
    assert len(rough["x"]) < 0.45 * len(full["x"])
    assert (rough["x"][0], rough["x"][-1]) == (full["x"][0], full["x"][-1])
    for name in ("test_error", "train_loss"):
        there = [full[name][full["x"].index(x)] for x in rough["x"] if x in full["x"]]
        here = [y for x, y in zip(rough["x"], rough[name], strict=True) if x in full["x"]]
        assert len(here) >= 3
        np.testing.assert_allclose(here, there, rtol=5e-3)


@pytest.mark.parametrize("changes", [{}, {"step_exponent": 0.5}, {"readout": "uniform", "c3": 0.5}])
def test_a_drafted_point_has_the_digits_of_the_full_one(changes: dict[str, Any]) -> None:
    state = PageState(**changes)
    rough, full = panels.point(state, draft=True), panels.point(state)
    for name in ("test_error", "train_loss"):
        assert rough[name] == pytest.approx(full[name], rel=2e-6)
    np.testing.assert_allclose(rough["learned"], full["learned"], atol=1e-4)


def test_every_draft_is_a_part_of_its_own() -> None:
    state = PageState(ridge=0.3)
    full, drafts = (tasks_of(state, how) for how in ("full", "draft"))
    assert not [name for name in full if full[name] == drafts[name]]
    for task in {*full.values(), *drafts.values()}:
        assert not isinstance(pool.answer(task.part, "readout=constant&n=300", task.how), Exception)
    assert full["spectrum"] == tasks_of(PageState())["spectrum"]  # it does not depend on the ridge
    constant = PageState(readout="constant")
    answers = (panels.spectrum(constant, draft=how) for how in (True, False))
    kinds = [[note.kind for note in panel["notes"]] for panel in answers]
    assert kinds[0] == kinds[1] == ["no sharp edge"]


def test_only_the_latest_question_of_a_page_is_wanted() -> None:
    latest = Latest()
    first = latest.note("page", "main", 1)
    other = latest.note("other", "main", 1)
    assert first()
    second = latest.note("page", "main", 2)
    assert not first()
    assert second()
    assert other()
    assert not latest.note("page", "main", 1)()  # it came late


def test_what_is_overtaken_is_dropped_and_the_worker_goes_on() -> None:
    pool = Pool(1, Memory())
    quick = PageTask("point", PageState(readout="constant").to_query())
    try:
        assert pool.ask([quick], deadline=60.0)
        process = pool.workers[0].process.pid
        heavy = PageTask("spectrum", PageState(readout="uniform", n=3000).to_query())
        moved_on = threading.Event()
        timer = threading.Timer(0.3, moved_on.set)
        timer.start()
        with pytest.raises(Overtaken):
            pool.ask([heavy], lambda: not moved_on.is_set(), deadline=60.0)
        timer.join()
        assert pool.memory.get(heavy) is None
        again = PageTask("point", PageState(readout="constant", n=700).to_query())
        (found,) = pool.ask([again], deadline=60.0)
        assert found["n"] == 700
        assert pool.workers[0].process.pid == process
    finally:
        pool.close()


def test_what_waits_for_a_worker_is_let_go_when_overtaken() -> None:
    pool = Pool(1, Memory())
    try:
        pool._idle.get_nowait()  # as when another request has it
        began, task = time.monotonic(), PageTask("point", PageState().to_query())
        with pytest.raises(Overtaken):
            pool.ask([task], lambda: time.monotonic() - began < 0.2, deadline=60.0)
    finally:
        pool.close()


def test_a_long_request_waits_for_the_one_before_and_others_pass() -> None:
    pool = Pool(2, Memory())
    pool.grow([PageTask("point", PageState(readout="constant").to_query())])
    heavy = PageTask("spectrum", PageState(readout="uniform", n=3000).to_query())
    ended = threading.Event()

    def ask() -> None:
        with contextlib.suppress(Overtaken):
            pool.ask([heavy], lambda: not ended.is_set(), deadline=60.0, is_long=True)

    first = threading.Thread(target=ask)
    try:
        first.start()
        while not pool._long.locked():
            time.sleep(0.01)
        (late,) = pool.ask([heavy], deadline=0.1, is_long=True)
        assert isinstance(late, TooSlow)
        quick = PageTask("point", PageState(readout="constant", n=700).to_query())
        (found,) = pool.ask([quick], deadline=60.0)
        assert found["n"] == 700
        assert first.is_alive()
    finally:
        ended.set()
        first.join()
        pool.close()
