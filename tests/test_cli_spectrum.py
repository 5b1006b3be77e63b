"""`featurestep spectrum`, `critical` and `phase`: tables, JSON, figures, refusals and Ctrl-C."""

from __future__ import annotations

import json

import pytest

from featurestep import NotConverged, Problem, phase_diagram, simulated_spectrum, spectrum
from featurestep.core.problem import FIELDS
from featurestep.meeting import phase as phase_module

from .command import examples, run, run_json, run_until_work, stop
from .problems import known_critical_steps

ANY_LAW = ["--activation", "relu", "--centre", "--n", "200", "--d", "100", "--width", "150"]
SIZES = [*ANY_LAW, "--readout", "constant"]  # a law of few values has a quick spectrum
PROBLEM = Problem(
    activation="relu", centre=True, n=200, d=100, width=150, step_exponent=0.3, ridge=0.01,
    readout="constant",
)  # fmt: skip
VERBS = ("spectrum", "critical", "phase")
pytestmark = pytest.mark.usefixtures("solved_once")


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_every_option(verb):
    text = run(verb, "--help").stdout
    step = () if verb == "spectrum" else ("step_exponent", "step_size")
    assert all(f"--{name.replace('_', '-')} " in text for name in FIELDS if name not in step)
    assert "Examples" in text
    assert "κ" in text or "α" in text


def test_examples_in_the_help_are_valid(tmp_path, monkeypatch):
    """Each is read and checked; the work itself is replaced."""
    monkeypatch.chdir(tmp_path)
    for name in ("theory.spectrum", "theory.critical_steps", "phase_diagram"):
        monkeypatch.setattr(f"featurestep.cli.spectrum_commands.{name}", stop)
    monkeypatch.setattr("featurestep.meeting.spectra.spectrum_beside", stop)
    lines = [arguments for verb in VERBS for arguments in examples(verb)]
    assert len(lines) >= 10
    for arguments in lines:
        run_until_work(arguments)


def test_a_spectrum_has_the_numbers_of_the_library(monkeypatch):
    answer = run_json("spectrum", *SIZES, "--step-exponent", "0.45")
    found = spectrum(PROBLEM.replace(step_exponent=0.45))
    assert answer["edges"] == [pytest.approx(pair) for pair in found.edges]
    assert answer["count"] == found.count
    assert answer["degrees"] == list(found.degrees)
    for row, spike in zip(answer["spikes"], found.spikes, strict=True):
        assert row["location"] == pytest.approx(spike.location)
        assert row["overlaps"] == pytest.approx(spike.overlaps)
        assert row["singular_value"] ** 2 == pytest.approx(row["location"])
    assert answer["weights"]["spike"]["alignment"] == pytest.approx(found.weights.spike.alignment)
    assert "simulated" not in answer
    monkeypatch.setattr("featurestep.cli.spectrum_commands.theory.spectrum", lambda problem: found)
    text = run("spectrum", *SIZES, "--step-exponent", "0.45").stdout
    assert f"{found.spikes[0].singular_value:.5g}" in text
    assert f"{found.intervals[-1].high:.5g}" in text
    assert "along β⋆" in text
    assert all(f"Note: {note}." in text for note in found.notes)


def test_a_spectrum_beside_real_networks(tmp_path):
    path = tmp_path / "spectrum.png"
    arguments = ["spectrum", *SIZES, "--step-exponent", "0.4", "--seeds", "2"]
    result = run(*arguments, "--plot", str(path))
    assert result.stderr.startswith("estimate: ")
    assert "Simulated spikes, seed by seed: " in result.stdout
    assert "W simulated" in result.stdout
    assert result.stdout.splitlines()[-1] == f"Figure: {path}"
    assert path.read_bytes().startswith(b"\x89PNG")
    answer = run_json(*arguments)["simulated"]
    expected = simulated_spectrum(
        PROBLEM.replace(step_exponent=0.4), seeds=2, variants=("trained", "weights")
    )
    assert answer["seeds"] == [0, 1]
    values = expected.singular_values("trained")
    assert answer["singular_values"] == [pytest.approx(row) for row in values.tolist()]
    assert len(answer["counts"]) == 2


def test_a_spectrum_over_a_field(tmp_path, monkeypatch):
    class Nothing:
        steps = ()  # where spikes appear: `critical` below searches for that

    monkeypatch.setattr("featurestep.plots.answers.critical_steps", lambda problem: Nothing)
    path = tmp_path / "tracks.svg"
    arguments = ["spectrum", *SIZES, "--over", "step_exponent=0.1,0.4", "--seeds", "1"]
    answer = run_json(*arguments, "--plot", str(path))
    assert path.read_text().startswith("<?xml")
    found = spectrum(PROBLEM.vary(step_exponent=[0.1, 0.4]))
    assert [point["count"] for point in answer["points"]] == found["count"].values.tolist()
    last = answer["points"][-1]
    assert last["edge"] == pytest.approx(found.edge.values[-1])
    assert last["location"][0] == pytest.approx(found.location.values[-1, 0])
    assert last["simulated_value"][0] ** 2 == pytest.approx(last["location"][0], rel=0.4)
    assert answer["seeds"] == [0]
    assert "simulated count" in run(*arguments).stdout


def test_sizes_follow_n_where_ratios_are_given():
    sizes = ["--phi", "0.5", "--psi", "0.8", "--readout", "constant"]
    over = ["--over", "n=100,200"]
    answer = run_json("spectrum", *sizes, *over, "--over", "step_exponent=0.2,0.4")
    assert [(p["n"], p["step_exponent"]) for p in answer["points"]] == [
        (100, 0.2), (100, 0.4), (200, 0.2), (200, 0.4),
    ]  # fmt: skip
    fields = {"step_exponent": 0.4, "ridge": 0.01, "readout": "constant"}
    one = Problem.from_ratios(phi=0.5, psi=0.8, n=200, **fields)
    assert answer["points"][-1]["edge"] == pytest.approx(spectrum(one).edge, rel=1e-6)
    assert not {"n", "d", "width"} & set(answer["problem"])
    assert {len(point["location"]) for point in answer["points"]} == {0, 1}
    same = ["--activation", "tanh", "--target", "tanh"]  # phase has a problem of its own
    phases = run_json("phase", *sizes, *same, *over, "--over", "step_exponent=0.4")
    assert [p["n"] for p in phases["points"]] == [100, 200]
    assert phases["points"][-1]["edge"] == pytest.approx(answer["points"][-1]["edge"], rel=1e-6)


def test_critical_has_the_numbers_of_the_library(tmp_path, monkeypatch):
    problem = PROBLEM.replace(target="H1 + H2")
    found = known_critical_steps(problem)  # searched for in `tests/theory/test_critical.py`

    def known(asked, *, degrees):
        assert (asked.replace(step_exponent=0.3), degrees) == (problem, 2)
        return found

    monkeypatch.setattr("featurestep.plots.answers.TRACK", (0.0, 0.25, 0.5))
    monkeypatch.setattr("featurestep.cli.spectrum_commands.theory.critical_steps", known)
    arguments = ["critical", *SIZES, "--degrees", "2", "--target", "H1 + H2"]
    answer = run_json(*arguments)
    assert answer["degrees"] == json.loads(json.dumps(found.as_dict()["degrees"]))
    path = tmp_path / "critical.pdf"
    text = run(*arguments, "--plot", str(path)).stdout
    assert "spike leaves at η" in text
    assert f"{found[1].spike_step:.5g}" in text
    assert all(f"Note: degree {k}: {note}." in text for k in (1, 2) for note in found[k].notes)
    assert path.read_bytes().startswith(b"%PDF")


def test_phase_has_the_numbers_of_the_library(tmp_path, monkeypatch):
    path = tmp_path / "phase.png"
    true = phase_module.spectrum

    def known(problem):
        if problem.readout == "gaussian":  # whose spectrum takes seconds: its limit is enough
            raise NotConverged("no time")
        return true(problem)

    monkeypatch.setattr(phase_module, "spectrum", known)
    over = ["--over", "step_exponent=0.25,0.4625", "--over", "readout=gaussian,rademacher"]
    arguments = ["phase", *ANY_LAW, "--target", "tanh", *over, "--seeds", "1"]
    answer = run_json(*arguments)
    found = phase_diagram(
        PROBLEM.vary(step_exponent=[0.25, 0.4625], readout=["gaussian", "rademacher"]), seeds=1
    )
    assert answer["points"] == json.loads(json.dumps(found.as_dict()["points"]))
    result = run(*arguments, "--plot", str(path))
    assert "estimate: " in result.stderr
    assert "1, 2, 4, 6, 8, 10, …" in result.stdout
    assert path.exists()


def test_phase_supplies_the_exponents(monkeypatch):
    def refuse(problem):
        raise NotConverged("not asked for")

    monkeypatch.setattr(phase_module, "spectrum", refuse)
    axes = {"step_exponent": (0.1, 0.3)}
    monkeypatch.setattr("featurestep.cli.spectrum_commands.Phases.AXES", axes)
    answer = run_json("phase", *SIZES, "--over", "n_step=50,100")
    assert answer["over"] == {"step_exponent": [0.1, 0.3], "n_step": [50, 100]}
    assert len(answer["points"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["spectrum", "--seeds", "-1"], "seeds"),
        (["spectrum", "--seeds", "two"], "seeds"),
        (["spectrum", "--plot", "spectrum.txt"], "--plot must end in"),
        (["spectrum", "--over", "d=100,200", "--over", "n=100,200", "--plot", "a.png"], "single"),
        (["spectrum", "--over", "spikes=1"], "--over must name a field"),
        (["critical", "--degrees", "9"], "degrees must be from 1 to 6; got 9"),
        (["critical", "--degrees", "many"], "degrees must be"),
        (["critical", "--step-exponent", "0.3"], "No such option"),
        (["phase", "--over", "n=100,200", "--over", "d=50,60"], "must name step_exponent"),
        (["phase", "--over", "step_size=1,2"], "not both"),
        (["phase", "--over", "noise_std=0:1:5000"], "at most 100000 points"),
        (["phase", "--over", "step_exponent=7"], "step_exponent must be in [-4, 2]; got 7"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    result = run(*arguments, code=2)
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_writes_nothing(verb, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    for name in ("theory.spectrum", "theory.critical_steps", "phase_diagram"):
        monkeypatch.setattr(f"featurestep.cli.spectrum_commands.{name}", interrupt)
    path = tmp_path / "figure.png"
    result = run(verb, *SIZES, "--plot", str(path), code=130)
    assert result.stderr == "interrupted: nothing was written\n"
    assert not list(tmp_path.iterdir())


def test_a_point_without_a_simulation_says_why(monkeypatch):
    def fail(*args, **kwargs):
        raise NotConverged("the draw failed")

    monkeypatch.setattr("featurestep.meeting.spectra.simulated_spectrum", fail)
    text = run("spectrum", *SIZES, "--over", "step_exponent=0.1,0.2", "--seeds", "1").stdout
    assert "not simulated: not converged: the draw failed" in text
    result = run("spectrum", *SIZES, "--seeds", "1", code=1)
    assert "error: the draw failed" in result.stderr
