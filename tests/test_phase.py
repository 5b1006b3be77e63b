"""Phase diagrams: the published intervals, predictions and simulations side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import spike_counts
from featurestep import (
    FeaturestepError,
    InvalidProblem,
    NotConverged,
    phase_diagram,
    simulated_spectrum,
    spectrum,
)
from featurestep.core.problem import regime_of
from featurestep.meeting import phase as module
from featurestep.meeting import spectra
from featurestep.meeting.phase import EXPONENTS

from .problems import CENTRED_RELU

PROBLEM = CENTRED_RELU
QUICK = PROBLEM.replace(readout="constant")  # a law of few values has a quick spectrum
pytestmark = pytest.mark.usefixtures("solved_once")


@pytest.fixture(scope="module")
def diagram(solved_once):
    laws = ["constant", "rademacher"]
    return phase_diagram(PROBLEM.vary(step_exponent=[0.1, 0.25, 0.3, 0.49], readout=laws), seeds=2)


def test_the_limit_counts_the_powers_of_the_published_intervals(monkeypatch):
    def refuse(problem):
        raise NotConverged("not asked for")

    monkeypatch.setattr(module, "spectrum", refuse)
    found = phase_diagram(
        PROBLEM.replace(n=100, d=50, width=75).vary(step_exponent=[-0.1, 0.1, 0.3, 0.39])
    )
    assert [point.published for point in found.points] == [(), (1,), (1, 2), (1, 2, 4)]
    assert found.dataset.published_count.values.tolist() == [0, 1, 2, 3]
    learned = found.dataset.published_learned
    assert learned.sel(step_exponent=0.39).values.tolist() == [0, 1, 1, 0, 1, 0, 0]
    raw = phase_diagram(PROBLEM.replace(centre=False).vary(step_exponent=[0.1]))
    assert raw.points[0].published == (0, 1)  # an uncentred mean is a spike from the start


def test_predictions_are_those_of_spectrum(diagram):
    for point in diagram.points[::3]:
        expected = spectrum(point.problem)
        assert point.predicted == expected.degrees
        assert point.edge == pytest.approx(expected.edge, rel=1e-6)
        assert point.margin == pytest.approx(expected.margin, rel=1e-4)
        assert point.unresolved == len(expected.spikes) - expected.count
        assert set(point.notes) <= set(expected.notes)


def test_simulated_spikes_are_counted_where_the_prediction_counts(diagram):
    point = diagram.points[-1]
    found = simulated_spectrum(point.problem, seeds=2, top=12)
    counts = (found.singular_values() ** 2 > point.edge + point.margin).sum(axis=1)
    assert [len(degrees) for degrees in point.simulated] == counts.tolist()
    assert all(degrees[:2] == (1, 2) for degrees in point.simulated)
    place = {"step_exponent": 0.49, "readout": "rademacher"}
    assert diagram.dataset.simulated_count.sel(place).item() == pytest.approx(counts.mean())
    assert diagram.dataset.simulated_learned.sel(place).values[:3].tolist() == [0, 1, 1]


def test_an_end_of_an_interval_has_no_limit_and_says_so(diagram):
    point = diagram.points[2]
    assert point.problem.step_exponent == 0.25
    assert point.published is None
    assert "boundary between degree 1 and degree 2" in point.regime
    assert np.isnan(diagram.dataset.published_count.sel(step_exponent=0.25)).all()
    assert point.as_dict()["published_count"] is None
    assert point.predicted is not None


def test_default_exponents_avoid_the_ends_of_intervals():
    assert all(regime_of(exponent).degree is not None for exponent in EXPONENTS)


def test_a_refused_point_keeps_its_status_and_spoils_no_other(monkeypatch):
    true = module.spectrum

    def refuse(problem):
        if problem.readout == "constant":
            raise NotConverged("no edge found")
        return true(problem)

    monkeypatch.setattr(module, "spectrum", refuse)
    found = phase_diagram(PROBLEM.vary(step_exponent=[0.3], readout=["constant", "rademacher"]))
    assert found.dataset.status.values.tolist() == [["not converged: no edge found", "ok"]]
    assert np.isnan(found.dataset.predicted_count.values[0, 0])
    assert found.dataset.predicted_count.values[0, 1] >= 1
    row = found.as_dict()["points"][0]
    assert row["predicted_count"] is row["edge"] is row["unresolved"] is None
    assert row["published_count"] == 1


def test_a_failed_simulation_keeps_the_prediction(monkeypatch):
    def fail(*args, **kwargs):
        raise FeaturestepError("overflow")

    monkeypatch.setattr(spectra, "simulated_spectrum", fail)
    (point,) = phase_diagram(QUICK.vary(step_exponent=[0.3]), seeds=1).points
    assert point.status == "not simulated: refused: overflow"
    assert point.predicted == (1,)
    assert np.isnan(point.count("simulated"))


def test_a_diagram_is_strict_json(diagram):
    text = json.dumps(diagram.as_dict(), allow_nan=False)
    rows = json.loads(text)["points"]
    assert len(rows) == 8
    assert rows[0]["step_exponent"] == 0.1
    assert rows[1]["readout"] == "rademacher"
    assert diagram.as_dict()["seeds"] == [0, 1]


def test_without_seeds_nothing_simulated_is_reported():
    found = phase_diagram(QUICK.vary(step_exponent=[0.3]))
    assert not [name for name in found.dataset if str(name).startswith("simulated")]
    assert found.dataset.status.dims == ("step_exponent",)
    assert found.problem.base is QUICK


def test_progress_counts_points(monkeypatch):
    def refuse(problem):
        raise NotConverged("not asked for")

    monkeypatch.setattr(module, "spectrum", refuse)
    told = []
    phase_diagram(
        QUICK.vary(step_exponent=[0.1, 0.3], d=[100, 200]),
        progress=lambda *done: told.append(done),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"step_size": [1.0]}, "not the step size"),
        ({"width": [1], "d": [2]}, "at most one further field"),
        ({"nonsense": [1]}, "nonsense is not a field"),
        ({"step_exponent": 0.3}, "step_exponent must be a list"),
        ({"step_exponent": [7]}, "step_exponent must be in"),
    ],
)
def test_bad_input_names_the_parameter(axes, words):
    with pytest.raises(InvalidProblem, match=words):
        phase_diagram(PROBLEM.vary(**axes))
    with pytest.raises(InvalidProblem, match="seeds"):
        phase_diagram(PROBLEM, seeds=-1)
    with pytest.raises(InvalidProblem, match="must be a Problem"):
        phase_diagram("relu")  # type: ignore[arg-type]


def test_the_table_of_counts_is_markdown(capsys, monkeypatch):
    of_size = spike_counts.problem
    quick = {"readout": "constant"}
    monkeypatch.setattr(
        spike_counts, "problem", lambda n, *more: of_size(n, *more).replace(**quick)
    )
    spike_counts.main(["--sizes", "200", "400", "--seeds", "1", "--largest", "200"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * len(spike_counts.EXPONENTS)
    assert {line.count("|") for line in lines} == {6}
    assert lines[3].endswith("| – |")


@pytest.mark.slow
def test_outliers_of_single_samples_lie_within_the_margin():
    """With n_step/d of order 1 and c_2 ≠ 0 the step's samples make outliers of their own.

    They carry no function of κ and are no spikes; the margin has their reach.
    """
    large = PROBLEM.replace(n=1000, d=500, width=750)
    found = phase_diagram(large.vary(step_exponent=[0.45], n_step=[1000, 16000]), seeds=3)
    few, many = found.points
    assert few.predicted == many.predicted == (1, 2)
    assert set(few.simulated) == set(many.simulated) == {(1, 2)}
    assert any("may not be spikes" in note for note in few.notes)


@pytest.mark.slow
def test_predicted_and_simulated_counts_agree_in_the_first_three_intervals():
    """Where no spike is nearer to the edge than a tenth, each of the draws has the same count."""
    found = spike_counts.points([spike_counts.problem(n) for n in (1000, 2000)], 3, 2000, "cpu")
    compared = 0
    for point in found.values():
        spikes = spectrum(point.problem).spikes
        if all(abs(spike.distance) > 0.1 for spike in spikes):
            assert {len(degrees) for degrees in point.simulated} == {len(point.predicted)}
            compared += 1
    assert compared >= 4
