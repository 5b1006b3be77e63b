"""Simulations in the background: they agree with `simulate`, and a cancel is real."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from featurestep import InvalidProblem, estimate, simulate, simulated_spectrum, spectrum
from featurestep.page import pool as module
from featurestep.page import state as states
from featurestep.page.pool import (
    MAX_FLOPS,
    POINTS,
    SEEDS,
    SPECTRUM_SEEDS,
    Busy,
    Jobs,
    simulated,
    sized,
)
from featurestep.page.server import simulation
from featurestep.page.state import PageState
from featurestep.page.views import Views, curve_key

SMALL = PageState(n=120, over="exponent", readout="constant")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cancel_ends_the_process_and_a_third_job_is_refused() -> None:
    jobs = Jobs()
    try:
        first, second = jobs.start(PageState()), jobs.start(PageState())
        pids = [jobs.look(name).process.pid for name in (first, second)]  # type: ignore[union-attr]
        with pytest.raises(Busy, match="2 simulations are running already"):
            jobs.start(PageState())
        jobs.cancel(first)
        jobs.cancel("no-such-job")
        assert jobs.look(first) is None
        assert not alive(pids[0])
        assert alive(pids[1])
    finally:
        jobs.close()
    assert not alive(pids[1])


def test_a_job_that_nobody_watches_or_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = Jobs()
    try:
        left = jobs.start(PageState())
        monkeypatch.setattr(module, "MAX_UNWATCHED", 0.0)
        kept = jobs.start(PageState())
        assert jobs.look(left) is None
        monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
        job = jobs.look(kept)
        assert job is not None
        assert str(job.found) == "stopped after 0 s"
        assert job.process is None
    finally:
        jobs.close()


@pytest.mark.parametrize("over", ["exponent", "samples", "width", "ridge"])
def test_sizes_are_cut_to_a_few_seconds(over: str) -> None:
    small = sized(PageState(n=1_000_000, over=over))
    assert small.n <= 4000
    assert estimate(states.grid(small, POINTS), seeds=SEEDS).flops <= MAX_FLOPS
    assert sized(SMALL.replace(over=over)).n <= SMALL.n


def test_sizes_that_cannot_be_cut_are_refused_in_one_line() -> None:
    with pytest.raises(InvalidProblem, match="simulation must run in a few seconds"):
        sized(PageState(phi=20.0, psi=0.05))


def test_an_overlay_belongs_to_its_curve(views: Views) -> None:
    data = {"n": 120, "x": [0.1]}
    asked = SMALL.replace(n=150)
    views.keep(asked, SMALL, data)
    kept = views.answers(asked.replace(step_exponent=0.2, theme="dark"), "main")[0]["simulated"]
    assert kept["n"] == 120
    assert len(kept["theory"]["x"]) == states.POINTS["exponent"]
    assert views.answers(asked.replace(ridge=0.2), "main")[0]["simulated"] is None
    assert curve_key(asked) != curve_key(SMALL)


def test_a_simulation_has_the_spectrum_at_the_current_point() -> None:
    told: list[float] = []
    state = PageState(n=300, readout="constant")
    found = simulated(state, 2, 2, told.append)["spectrum"]
    mass = np.sum(np.array(found["heights"]) * np.diff(found["ends"]))
    direct = simulated_spectrum(state.problem, seeds=SPECTRUM_SEEDS)
    values = np.sqrt(direct.eigenvalues())
    border = found["ends"][-1]
    assert mass == pytest.approx(np.mean(values <= border), abs=1e-12)
    beyond = sorted(float(value) for value in values[values > border])
    assert sorted(s["singular_value"] for s in found["spikes"]) == pytest.approx(beyond)
    overlaps = direct.power_overlaps()
    for spike in found["spikes"]:
        draw = int(
            np.argmin(np.abs(direct.singular_values()[:, spike["rank"]] - spike["singular_value"]))
        )
        assert spike["power_overlaps"] == pytest.approx(overlaps[draw, spike["rank"]])
    assert [s.singular_value for s in spectrum(state.problem).spikes] == [
        s["singular_value"] for s in found["theory"]["spikes"]
    ]
    assert max(told) <= 1.0


def test_a_job_is_the_simulation_and_is_overlaid_on_both_lanes(views: Views) -> None:
    jobs = Jobs()
    try:
        told = simulation(views, jobs, {"action": "start", "q": SMALL.to_query()})
        name = told["job"]
        job = jobs.look(name)
        assert job is not None
        while told["job"] is not None:
            time.sleep(0.05)
            told = simulation(views, jobs, {"action": "look", "job": name})
        assert (told["done"], told["text"]) == (True, "□ 6 draws")
        assert not isinstance(job.found, Exception)
        found = simulate(states.grid(SMALL, POINTS), seeds=SEEDS)
        expected = found.mean["test_error"].isel(variant=0).values
        np.testing.assert_allclose(job.found["test_error"], expected, rtol=1e-9)
        spread = found.standard_error["test_error"].isel(variant=0).values
        np.testing.assert_allclose(job.found["test_error_error"], spread, rtol=1e-6)
        assert views.answers(SMALL, "main")[0]["simulated"]["n"] == SMALL.n
        seen = views.answers(SMALL.replace(ridge=0.7), "spectrum")[0]["simulated_spectrum"]
        assert seen["n"] == SMALL.n  # the spectrum does not depend on the ridge
        assert views.answers(SMALL.replace(phi=0.4), "spectrum")[0]["simulated_spectrum"] is None
        assert simulation(views, jobs, {"action": "look", "job": name})["job"] is None
    finally:
        jobs.close()
