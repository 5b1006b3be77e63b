"""`featurestep simulate` and `compare`: tables, JSON, figures, checks, refusals and Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from featurestep import Note, Problem, compare, feature_gap, predict, simulate, simulation
from featurestep.cli import output
from featurestep.cli.simulate_commands import memory
from featurestep.core.display import plus_minus
from featurestep.core.problem import FIELDS
from featurestep.core.results import QUANTITIES
from featurestep.functions.activations import NAMED

from .command import examples, run, run_json, run_until_work, stop

COMPARE = sys.modules["featurestep.meeting.comparison"]
SIZES = ["--n", "120", "--d", "60", "--width", "90", "--n-test", "200"]
PROBLEM = Problem(n=120, d=60, width=90, step_exponent=0.3, ridge=0.01)


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_help_explains_every_option(verb):
    text = run(verb, "--help").stdout
    assert all(f"--{name.replace('_', '-')} " in text for name in FIELDS)
    assert all(name in text for name in NAMED)
    assert all(law in text for law in ("rademacher", "student_t(df)", "sphere", ".npy"))
    assert "[default: 1000]" in text
    assert "Examples" in text


def test_examples_in_the_help_are_valid(tmp_path, monkeypatch):
    """Each is read, checked and costed; the run itself is replaced."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(simulation, "simulate", stop)
    monkeypatch.setattr("featurestep.cli.simulate_commands.compare_problems", stop)
    lines = [*examples("simulate"), *examples("compare")]
    assert len(lines) >= 10
    for arguments in lines:
        run_until_work(arguments)


def test_simulate_prints_the_estimate_first_and_the_rate_last():
    result = run("simulate", *SIZES, "--seeds", "3")
    assert result.stderr.startswith("estimate: ")
    assert result.stderr.count("\n") == 1
    assert "MiB of memory" in result.stderr
    assert "flops" in result.stderr
    found = simulate(PROBLEM, seeds=3, n_test=200)
    mean = found.mean.test_error.item()
    error = found.standard_error.test_error.item()
    assert plus_minus(mean, error) in result.stdout
    assert "cosine with the target" in result.stdout
    assert "Gflop/s)" in result.stdout.splitlines()[-1]


def test_simulate_json_has_every_seed():
    answer = run_json("simulate", *SIZES, "--seeds", "4,7", "--variants", "trained,initial")
    found = simulate(PROBLEM, seeds=[4, 7], n_test=200, variants=["trained", "initial"])
    assert answer["seeds"] == [4, 7]
    assert [point["variant"] for point in answer["points"]] == ["trained", "initial"]
    for v, point in enumerate(answer["points"]):
        for name in QUANTITIES:
            values = found.values[name][v]
            assert point[name]["by_seed"] == pytest.approx(values.tolist(), rel=1e-9)
            assert point[name]["mean"] == pytest.approx(values.mean(), rel=1e-9)
            error = values.std(ddof=1) / 2**0.5
            assert point[name]["standard_error"] == pytest.approx(error, rel=1e-9)
    assert answer["points"][0]["alignment"][0]["cosine"]["mean"] > 0.3
    assert answer["flops"] == answer["estimate"]["flops"] == found.flops
    assert answer["rate"] == pytest.approx(answer["flops"] / answer["wall_time"])


def test_the_first_layer_reaches_the_simulation():
    shown = run_json("simulate", *SIZES, "--seeds", "2", "--over", "initial=sphere,gaussian")
    grid = PROBLEM.vary(initial=["sphere", "gaussian"])
    expected = simulate(grid, seeds=2, n_test=200).mean.test_error.values.ravel()
    found = [point["test_error"]["mean"] for point in shown["points"]]
    assert found == pytest.approx(expected, rel=1e-9)
    alone = run_json("simulate", *SIZES, "--seeds", "2", "--initial", "gaussian")
    assert alone["points"][0]["test_error"]["mean"] == pytest.approx(found[1], rel=1e-9)
    assert found[0] != pytest.approx(found[1], rel=1e-6)


def test_simulate_a_grid_with_sizes_that_follow_n():
    ratios = ["--phi", "0.5", "--psi", "0.8", "--n-test", "100", "--seeds", "2"]
    answer = run_json("simulate", *ratios, "--over", "n=100,160", "--over", "ridge=0.1,1")
    assert [(p["n"], p["ridge"]) for p in answer["points"]] == [
        (100, 0.1), (100, 1.0), (160, 0.1), (160, 1.0),
    ]  # fmt: skip
    assert answer["problem"]["phi"] == 0.5
    assert not {"n", "d", "width", "ridge"} & set(answer["problem"])
    one = Problem.from_ratios(phi=0.5, psi=0.8, n=160, step_exponent=0.3, ridge=0.1)
    expected = simulate(one, seeds=2, n_test=100).mean.test_error.item()
    assert answer["points"][2]["test_error"]["mean"] == pytest.approx(expected, rel=1e-9)
    text = run("simulate", *ratios, "--over", "n=100,160").stdout
    assert "phi = 0.5, psi = 0.8 at every point" in text


def test_settings_reach_the_simulation(tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.random.default_rng(0).standard_normal((600, 60)))
    options = ["--inputs", str(path), "--corrupted", "0.2"]
    options += ["--step-sizes", "4,2", "--batches", "same"]
    answer = run_json("simulate", *SIZES, *options, "--seeds", "1")
    assert len(answer["notes"]) == 2
    assert answer["problem"]["step_sizes"] == [4, 2]
    assert answer["problem"]["batches"] == "same"
    (point,) = answer["points"]
    assert [step["step"] for step in point["alignment"]] == [1, 2]
    assert point["test_error"]["standard_error"] is None
    text = run("simulate", *SIZES, "--inputs", "student_t(5)", "--rows", "same", "--seeds", "1")
    assert "inputs are student_t(5), not Gaussian" in text.stdout
    assert "±" not in text.stdout
    assert "the readout on the step's rows" in text.stdout
    single = run_json("simulate", *SIZES, "--dtype", "float32", "--covariance", "2,1,0.5")
    assert single["record"]["dtype"] == "float32"


def test_compare_has_the_numbers_of_the_library():
    arguments = [*SIZES, "--over", "ridge=0.01,0.1", "--seeds", "3"]
    answer = run_json("compare", *arguments)
    found = compare(PROBLEM.vary(ridge=[0.01, 0.1]), seeds=3, n_test=200)
    for row, expected in zip(answer["rows"], found.rows, strict=True):
        assert row["point"] == expected.point
        assert row["predicted"] == pytest.approx(expected.predicted, rel=1e-9)
        assert row["simulated"] == pytest.approx(expected.simulated, rel=1e-9)
        assert row["z"] == pytest.approx(expected.z, rel=1e-6)
        assert row["relative_gap"] == pytest.approx(expected.relative_gap, rel=1e-6)
    assert answer["worst"]["z"] == pytest.approx(found.worst.z, rel=1e-6)
    text = run("compare", *arguments).stdout
    row = found.rows[0]
    assert plus_minus(row.simulated, row.standard_error) in text
    assert f"{row.z:+.2f}" in text
    assert f"{100 * row.relative_gap:+.2f} %" in text
    assert "Worst: " in text


def wrong_prediction(monkeypatch):
    def multiplied(problem):
        found = predict(problem)
        if isinstance(problem, Problem):
            return replace(found, test_error=found.test_error * 5)
        columns = {**found.columns, "test_error": found.columns["test_error"] * 5}
        return replace(found, columns=columns)

    monkeypatch.setattr(COMPARE, "predict", multiplied)


def test_check_passes_where_theory_and_simulation_agree():
    result = run("compare", *SIZES, "--check")
    assert "disagrees" not in result.stdout
    assert result.stderr.count("\n") == 1


def test_check_fails_and_says_where(monkeypatch):
    wrong_prediction(monkeypatch)
    arguments = [*SIZES, "--over", "ridge=0.01,0.1"]
    result = run("compare", *arguments, "--check", code=1)
    assert "check failed, |z| > 4: test error at ridge = 0." in result.stderr
    assert "train loss" not in result.stderr
    assert "disagrees" in result.stdout
    answer = run_json("compare", *arguments, "--check", code=1)
    assert answer["agrees"] is False
    assert run("compare", *arguments).stderr.count("\n") == 1


def test_a_note_excuses_a_failed_check(monkeypatch):
    wrong_prediction(monkeypatch)
    note = Note("large step: far too large")
    monkeypatch.setattr("featurestep.theory.prediction.prediction_notes", lambda *asked: (note,))
    result = run("compare", *SIZES, "--check")
    assert "Note: large step: far too large." in result.stdout
    assert "see note" in result.stdout
    assert run_json("compare", *SIZES, "--check")["agrees"] is True


def test_a_refused_prediction_fails_the_check(monkeypatch):
    def refused(problem):
        found = predict(problem)
        missing = {name: found.columns[name] * [np.nan, 1.0] for name in QUANTITIES}
        return replace(found, columns=missing, statuses=("not converged: residual 1", "ok"))

    monkeypatch.setattr(COMPARE, "predict", refused)
    arguments = [*SIZES, "--over", "ridge=0.01,0.1"]
    result = run("compare", *arguments, "--check", code=1)
    assert "test error at ridge = 0.01, not converged: residual 1" in result.stderr
    assert "no prediction" in result.stdout
    assert "Note: 1 of 2 points, the last at ridge = 0.01: not converged" in result.stdout
    assert run_json("compare", *arguments)["rows"][0]["z"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate"],
        ["simulate", "--variants", "trained,initial", "--over", "step_exponent=0,0.2"],
        ["simulate", "--over", "ridge=0.1,1", "--over", "step_exponent=0,0.2", "--seeds", "1"],
        ["compare"],
        ["compare", "--over", "ridge=log:0.01:1:3", "--over", "step_exponent=0.1,0.3"],
        ["compare", "--over", "activation=tanh,relu"],
        ["compare", "--over", "ridge=0.1"],
        ["compare", "--over", "n=100:140:3"],
    ],
)
def test_every_result_can_be_drawn(arguments, tmp_path):
    path = tmp_path / "figure.svg"
    sizes = SIZES[2:] if "n=100:140:3" in arguments else SIZES
    seeds = [] if "--seeds" in arguments else ["--seeds", "2"]
    assert f"Figure: {path}" in run(*arguments, *sizes, *seeds, "--plot", str(path)).stdout
    assert path.stat().st_size > 5000


def test_equivalence_prints_the_gaps_of_the_library(tmp_path):
    answer = run_json("equivalence", *SIZES[:6], "--degrees", "1,3", "--seeds", "0,2")
    gaps = feature_gap(PROBLEM, degrees=[1, 3], seeds=[0, 2])
    assert answer["gap"] == pytest.approx(gaps.gap.tolist())
    assert answer["gap_error"] == pytest.approx(gaps.gap_error.tolist())
    ratios = ["--phi", "0.5", "--psi", "0.8", "--over", "n=60,100"]
    path = tmp_path / "gaps.svg"
    assert "gap 2" in run("equivalence", *ratios, "--plot", str(path)).stdout
    assert path.stat().st_size > 5000
    assert run("equivalence", "--degrees", "x", code=2).stderr.startswith("error: variants must be")
    assert "No such option" in run("equivalence", "--drawn", "host", code=2).stderr


BAD = [
    (["--seeds", "1.5"], "seeds must be"),
    (["--seeds", "two"], "seeds must be"),
    (["--seeds", "3,3"], "seeds must be"),
    (["--seeds", "0"], "seeds must be"),
    (["--n-test", "0"], "n_test must be"),
    (["--n-test", "many"], "n_test must be"),
    (["--dtype", "float16"], "dtype must be"),
    (["--device", "tpu"], "device must be"),
    (["--max-memory", "lots"], "max_memory must read as 2GB"),
    (["--max-memory", "-1GB"], "max_memory must read as 2GB"),
    (["--max-memory", "0"], "max_memory must be"),
    (["--max-memory", "100kB"], "needs at least"),
    (["--inputs", "cauchy"], "inputs must be"),
    (["--inputs", "student_t(1)"], "inputs student_t needs"),
    (["--inputs", "missing.npy"], "inputs must be a readable .npy file (No such file"),
    (["--covariance", "1,-1"], "covariance must have eigenvalues >= 0"),
    (["--covariance", "one"], "covariance must be"),
    (["--covariance", "power(-1)"], "covariance must have an exponent"),
    (["--covariance", "missing.npy"], "covariance must be a readable .npy file (No such file"),
    (["--covariance", "6:0.1,1:0.5"], "covariance must have shares > 0 of sum 1"),
    (["--target-exponent", "1"], "target_exponent needs a covariance"),
    (["--covariance", "2,1", "--target-mass", "1"], "target_mass must have one number for each"),
    (["--corrupted", "2"], "corrupted must be"),
    (["--corrupted", "half"], "corrupted must be"),
    (["--rows", "old"], "rows must be"),
    (["--rows", "same", "--n-step", "7"], "n_step must be n = "),
    (["--step-sizes", "1,x"], "step_sizes must be"),
    (["--step-sizes", "1,2", "--step-size", "2"], "step_sizes must not be given together"),
    (["--step-sizes", "1,2", "--steps", "3"], "steps must be left out: step_sizes has 2"),
    (["--data", "same"], "--data is --rows now; got 'same'"),
    (["--spectrum", "2,1"], "--spectrum is --covariance now"),
    (["--direction", "1"], "--direction is --target-direction now"),
    (["--steps", "0"], "steps must be"),
    (["--steps", "1,x"], "steps must be"),
    (["--batches", "big"], "batches must be"),
    (["--ridge", "0"], "ridge must be"),
    (["--over", "depth=1,2"], "--over must name a field"),
    (["--plot", "figure.jpg"], "--plot must end in"),
    (["--plot", "no/such/folder/a.png"], "--plot must be in a directory"),
]


@pytest.mark.parametrize("verb", ["simulate", "compare"])
@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: " ".join(value)[:40])
def test_bad_input_is_one_line_before_anything_runs(verb, arguments, message, monkeypatch):
    monkeypatch.setattr(simulation, "simulate", pytest.fail)
    monkeypatch.setattr(COMPARE, "simulate", pytest.fail)
    result = run(verb, *SIZES, *arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "--variants", "fancy"], "variants must be"),
        (["simulate", "--variants", "trained,trained"], "variants must be"),
        (["simulate", "--variants", "srf", "--steps", "2"], "variants must be trained, initial"),
        (
            ["simulate", "--variants", "trained,initial", "--over", "ridge=1,2",
             "--over", "noise_std=0,1", "--plot", "a.png"],
            "--plot takes a single --over",
        ),
        (["compare", "--seeds", "1"], "seeds must be at least 2"),
        (["compare", "--seeds", "5,"], "seeds must be"),
    ],
)  # fmt: skip
def test_refusals_of_one_verb(arguments, message):
    result = run(*arguments, code=2)
    assert result.stderr.startswith(f"error: {message}")
    assert result.stdout == ""


def test_a_file_that_is_no_array_is_refused(tmp_path):
    path = tmp_path / "text.npy"
    path.write_text("not an array")
    result = run("simulate", "--inputs", str(path), code=2)
    assert result.stderr.startswith("error: inputs must be a readable .npy file (not an array)")


@pytest.mark.parametrize("verb", ["simulate", "compare"])
@pytest.mark.parametrize("phase", ["run", "figure", "write"])
def test_ctrl_c_leaves_a_message_and_nothing_else(verb, phase, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    if phase == "run":
        monkeypatch.setattr("featurestep.simulation.network.run.GroupRun.execute", interrupt)
    elif phase == "figure":
        monkeypatch.setattr("featurestep.plots.style.render", interrupt)
    else:
        monkeypatch.setattr(output.os, "replace", interrupt)
    path = tmp_path / "figure.png"
    result = run(verb, *SIZES, "--seeds", "2", "--plot", str(path), code=130)
    assert result.stdout == ""
    assert result.stderr.splitlines()[1:] == ["interrupted: nothing was written"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_real_signal(tmp_path):
    big = ["--n", "4000", "--d", "2000", "--width", "3000", "--plot", str(tmp_path / "a.png")]
    process = subprocess.Popen(
        [sys.executable, "-m", "featurestep", "simulate", *big],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        assert process.stderr.readline().startswith("estimate: ")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, output) == (130, "")
    assert errors == "interrupted: nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    from featurestep.cli.output import watched

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    seen = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with watched(10, lambda done: f"{done} of 10 Gflop") as advance:
            if advance is not None:
                advance(10, 10)
        seen.append(stream.getvalue())
    assert "10 of 10 Gflop" in seen[0]
    assert seen[1] == ""


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2e9), ("1.5 GiB", 1.5 * 2**30), ("500mb", 5e8), ("4K", 4e3), ("1e9", 1e9), ("7B", 7)],
)
def test_memory_is_read_with_its_unit(text, size):
    assert memory(text) == size


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.108123, 0.00141, "0.1081 ± 0.0014"),
        (12.3456, 0.5, "12.35 ± 0.50"),
        (1234.5, 120.0, "1234.5 ± 1.2e+02"),
        (1.0, 2e-10, "1 ± 2e-10"),
        (0.5, None, "0.5"),
    ],
)
def test_means_are_rounded_to_their_errors(mean, error, text):
    assert plus_minus(mean, error) == text
