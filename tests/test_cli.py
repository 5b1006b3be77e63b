"""The command line: every verb, its tables, strict JSON, figures and exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from featurestep import NotConverged, Problem, __version__, limit, predict, simulate, theory
from featurestep.cli import output
from featurestep.cli.options import Request
from featurestep.core.axes import read_axis
from featurestep.core.problem import FIELDS
from featurestep.functions.activations import NAMED

from . import command

DEFAULT = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01)
VERBS = ("predict", "limit", "baselines", "optimum", "demo")
DRAWN = ("simulate", "compare", "equivalence")
RELU = ["--activation", "relu", "--centre", "--target", "H1 + H2/sqrt(2)"]


def run(*arguments: str) -> str:
    """What a command prints when it has nothing to say on stderr."""
    result = command.run(*arguments)
    assert result.stderr == ""
    return result.stdout


def run_json(*arguments: str):
    return command.strict_json(run(*arguments, "--json"))


def subprocess_run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "featurestep", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        check=False,
    )


def test_bare_command_shows_help():
    assert run() == run("--help")
    assert all(verb in run() for verb in (*VERBS, *DRAWN))


def test_version():
    assert __version__ in run("--version")


@pytest.mark.parametrize("verb", VERBS[:-1])
def test_help_explains_every_field(verb):
    text = run(verb, "--help")
    assert all(f"--{name.replace('_', '-')} " in text for name in FIELDS)
    assert all(name in text for name in NAMED)
    assert "Examples" in text
    assert "[default: 2000]" in text


def test_predict_alone_answers_the_default_problem():
    found = predict(DEFAULT)
    text = run("predict")
    assert f"{found.test_error:.5g}" in text
    assert "step exponent 0.3 is in (0.25, 0.3333): degree 2" in text
    assert "\x1b" not in text


def test_predict_json_is_the_library_result():
    answer = run_json("predict", "--n", "2e3", "--noise-std", "0.1", "--readout", "-1:0.5,1:0.5")
    problem = DEFAULT.replace(noise_std=0.1, readout=[(-1, 0.5), (1, 0.5)])
    assert answer["status"] == "ok"
    assert answer["problem"]["readout"] == [[-1.0, 0.5], [1.0, 0.5]]
    for name, value in predict(problem).as_dict().items():
        assert answer[name] == value


def test_the_first_layer_is_told_where_it_is_not_the_usual():
    line = run("predict", "--initial", "gaussian").splitlines()[0]
    assert line.endswith("residual labels, initial weights gaussian")
    assert "initial weights" not in run("predict", "--initial", "sphere")
    assert run_json("predict", "--initial", "gaussian")["problem"]["initial"] == "gaussian"
    over = run("predict", "--over", "initial=sphere,gaussian")
    assert "initial weights" not in over
    rows = [line.split()[0] for line in over.splitlines() if line.startswith(" ")]
    assert rows[-2:] == ["sphere", "gaussian"]


def test_ratios_replace_sizes():
    answer = run_json("predict", "--phi", "0.3", "--psi", "0.6", "--n", "1000")
    assert (answer["problem"]["d"], answer["problem"]["width"]) == (300, 500)


def test_validity_notes_are_printed():
    arguments = [*RELU, "--step-exponent", "0.5"]
    isotropic = ("--method", "isotropic")
    note = "Note: choose method 'exact': isotropic weights keep only"
    assert note in run("predict", *arguments, *isotropic)
    assert note not in run("predict", *arguments)
    noted = run("predict", *RELU, "--over", "step_exponent=0.5,0.6")
    assert "1 of 2 points" in noted


def test_the_method_is_asked_for_and_told():
    problem = DEFAULT.replace(activation="relu", readout="constant", step_exponent=0.5)
    arguments = ("--activation", "relu", "--readout", "constant", "--step-exponent", "0.5")
    for method in ("exact", "isotropic"):
        answer = run_json("predict", *arguments, "--method", method)
        found = predict(problem, method=method)
        assert answer["method"] == found.method
        assert answer["test_error"] == found.test_error
        rows = run("predict", *arguments, "--method", method).splitlines()
        assert [row.split()[:2] for row in rows if row.startswith(" method")] == [
            ["method", found.method]
        ]
    refused = command.run("predict", "--method", "plain", code=2)
    assert refused.stderr.startswith("error: method must be one of exact, isotropic; got")


def test_curve_has_one_row_a_point():
    answer = run_json("predict", "--over", "ridge=log:0.01:1:3", "--over", "step-exponent=0.1,0.4")
    points = answer["points"]
    assert answer["over"] == {"ridge": [0.01, 0.1, 1.0], "step_exponent": [0.1, 0.4]}
    assert [(p["ridge"], p["step_exponent"]) for p in points][:2] == [(0.01, 0.1), (0.01, 0.4)]
    last = predict(DEFAULT.replace(ridge=1.0, step_exponent=0.4))
    assert points[-1]["test_error"] == pytest.approx(last.test_error, rel=1e-9)
    table = run("predict", "--over", "ridge=log:0.01:1:3")
    assert "status" not in table
    assert len([line for line in table.splitlines() if line.strip().startswith(("0.", "1"))]) == 3


def test_no_column_is_lost_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    row = run("baselines", "--over", "noise_std=0.5,1").splitlines()[-2]
    assert len(row.split()) == 11


def test_ratios_follow_a_varied_n():
    arguments = ["--phi", "0.5", "--psi", "0.8", "--over", "ridge=0.1,1", "--over", "n=400,800"]
    answer = run_json("predict", *arguments)
    problem = Problem.from_ratios(phi=0.5, psi=0.8, n=800, step_exponent=0.3, ridge=0.1)
    (point,) = [p for p in answer["points"] if p["n"] == 800 and p["ridge"] == 0.1]
    assert point["test_error"] == pytest.approx(predict(problem).test_error, rel=1e-9)
    assert (answer["problem"]["phi"], answer["problem"]["psi"]) == (0.5, 0.8)
    assert not {"n", "d", "width", "ridge"} & set(answer["problem"])
    assert "phi = 0.5, psi = 0.8 at every point" in run("predict", *arguments)


def test_a_refused_point_is_null_with_a_status():
    answer = run_json("limit", "--over", "step_exponent=0.1,0.25,0.3")
    statuses = [point["status"] for point in answer["points"]]
    assert statuses[0] == statuses[2] == "ok"
    assert "boundary between degree 1 and degree 2" in statuses[1]
    assert answer["points"][1]["test_error"] is None
    assert answer["points"][2]["degree"] == 2
    table = run("limit", "--over", "step_exponent=0.1,0.25,0.3")
    assert "status" in table
    assert "Note: no number at step_exponent = 0.25: refused: degree must be given" in table
    assert "more points have no number" in run("limit", "--over", "step_exponent=0.6:0.9:20")


def test_limit_and_baselines_json():
    found = limit(DEFAULT)
    assert run_json("limit")["test_error"] == found.test_error
    assert run_json("limit", "--degree", "3")["degree"] == 3
    assert run_json("limit", "--degree", "maximal")["degree"] is None
    assert run_json("baselines")["noise_floor"] == 0.0
    over = run_json("baselines", "--over", "noise_std=0,0.5")
    assert [point["noise_floor"] for point in over["points"]] == [0.0, 0.25]


def test_optimum_searches_within_bounds():
    answer = run_json("optimum", "--best", "ridge=0.5:2")
    assert answer["location"]["ridge"] == pytest.approx(0.5)
    assert len(answer["at_boundary"]) == 1
    text = run("optimum", "--best", "ridge=0.5:2")
    assert "Note: widen the bounds: ridge is at its lower bound" in text


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_plot_writes_a_whole_figure(suffix, tmp_path):
    path = tmp_path / f"learned.{suffix}"
    assert f"Figure: {path}" in run("predict", "--plot", str(path))
    magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix.lower()]
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", *RELU, "--over", "step_exponent=0:0.5:6", "--over", "ridge=0.1,1"],
        ["predict", "--over", "activation=tanh,relu,H1"],
        ["limit", *RELU, "--over", "step_exponent=0.1:0.45:4"],
        ["limit", "--over", "ridge=log:0.01:1:3"],
        ["baselines", "--over", "n=500:1500:3"],
        ["optimum"],
    ],
)
def test_every_curve_can_be_drawn(arguments, tmp_path):
    path = tmp_path / "curve.svg"
    run_json(*arguments, "--plot", str(path))
    assert path.stat().st_size > 5000


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    result = command.run("predict", "--plot", str(tmp_path / "a.png"), code=2)
    assert result.stdout == ""
    assert "No space left on device" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_failures_of_the_solver_exit_with_1(monkeypatch):
    def fail(problem, method):
        raise NotConverged("resolvent equations:\nresidual 1")

    monkeypatch.setattr(theory, "predict", fail)
    result = command.run("predict", code=1)
    assert result.stderr == "error: resolvent equations: residual 1\n"


def test_a_number_that_is_not_finite_is_null_with_a_status(monkeypatch):
    found = theory.baselines(DEFAULT)
    monkeypatch.setattr(theory, "baselines", lambda p: replace(found, untrained=float("nan")))
    answer = run_json("baselines")
    assert answer["untrained"] is None
    assert answer["status"] == "not finite: untrained"


def test_demo_prints_a_table_and_saves_the_figure(tmp_path, monkeypatch):
    monkeypatch.setattr("featurestep.demo._CURVE_POINTS", 11)
    sizes = ("--n", "200", "--d", "60", "--width", "100", "--seeds", "2")
    text = run("demo", "--output", str(tmp_path / "new" / "folder"), *sizes)
    path = tmp_path / "new" / "folder" / "demo.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert f"Figure: {path}" in text
    problem = Problem(
        n=200, d=60, width=100, step_exponent=0.3, ridge=0.1, activation="relu", centre=True,
        target="H1 + H2/sqrt(2)",
    )  # fmt: skip
    assert f"{predict(problem).test_error:.5g}" in text
    assert f"{limit(problem).test_error:.5g}" in text
    found = simulate(problem, seeds=2)
    shown = (float(each.test_error[0]) for each in (found.mean, found.standard_error))
    assert "{:.4f} ± {:.4f}".format(*shown) in text


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(output, "_MIN_WATCHED_POINTS", 2)
    request = Request(over=("ridge=0.1,1,10",), as_json=True)
    seen = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        output.answer(predict, request)
        seen.append(stream.getvalue())
    assert "points" in seen[0]
    assert seen[1] == ""


def test_ctrl_c_is_one_line(monkeypatch):
    def interrupt(problem, method):
        raise KeyboardInterrupt

    monkeypatch.setattr(theory, "predict", interrupt)
    result = command.run("predict", code=130)
    assert result.stdout == ""
    assert result.stderr.strip() == "interrupted: nothing was written"


def test_axes_are_read_as_written():
    assert read_axis("--over", "n=100:400:4") == ("n", (100, 200, 300, 400))
    assert read_axis("--over", "n=log:10:1000:3") == ("n", (10, 100, 1000))
    assert read_axis("--over", "d=1:2:5") == ("d", (1, 2))
    assert read_axis("--over", "step-exponent=0:0.3:4") == ("step_exponent", (0.0, 0.1, 0.2, 0.3))
    assert read_axis("--over", "centre=true,False") == ("centre", (True, False))
    assert read_axis("--over", "target=H1, H1 + 0.5*H2") == ("target", ("H1", "H1 + 0.5*H2"))
    _, values = read_axis("--over", "ridge=log:1e-3:1e3:7")
    assert np.allclose(np.log10(values), range(-3, 4))


def test_as_a_process():
    good = subprocess_run("predict", "--json")
    assert good.returncode == 0
    assert json.loads(good.stdout)["status"] == "ok"
    bad = subprocess_run("predict", "--ridge", "-0.1")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: ridge must be > 0; got -0.1\n"


def test_a_terminal_without_greek_is_no_failure():
    done = subprocess_run("predict", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "test error" in done.stdout


def test_help_needs_no_plotting_library():
    code = "import sys, featurestep.cli; print({'matplotlib', 'xarray', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_examples_in_the_help_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for verb in ("limit", "baselines"):
        for arguments in command.examples(verb):
            run(*arguments)
    assert {path.name for path in Path().iterdir()} == {"staircase.pdf", "baselines.png"}


def test_an_option_of_other_commands_names_them():
    told = command.run("predict", "--inputs", "rademacher", code=2).stderr
    assert told.startswith("error: No such option '--inputs': simulate, compare, ")
    assert told.endswith(" and phase have it (see featurestep predict --help)\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("predict", "--lr", "1"), "'--lr'; did you mean '--step-size'?"),
        (("predict", "--alpha", ".4"), "'--alpha'; did you mean '--step-exponent'?"),
        (("predict", "--lamda", "1"), "'--lamda'; did you mean '--ridge'?"),
        (("predict", "--wdith", "9"), "'--wdith'; did you mean '--width'? (see"),
        (("predict", "--xyzzy", "9"), "No such option '--xyzzy' (see"),
        (("sweep", "run", "--wrkers", "2"), "'--wrkers'; did you mean '--workers'?"),
        (("predict", "--activation", "swish"), "did you mean 'silu'?; got 'swish'"),
        (("figure",), "NAME must be all or one of spectrum, "),
        (("figure", "maximal"), "did you mean 'maximal-step'?; got 'maximal'"),
        (("train",), "did you mean 'simulate'?"),
        (("predict", "--target", "x^2"), "or a formula such as 'z^3 - z'"),
    ],
)
def test_other_names_of_a_thing_get_a_suggestion(arguments, told):
    assert told in command.run(*arguments, code=2).stderr


def test_sweep_by_itself_lists_its_commands():
    listed = command.run("sweep").stdout
    assert listed == command.run("sweep", "--help").stdout
    assert "\n  retry " in listed


def test_the_list_of_commands_is_not_cut_off():
    listed = command.run("--help").stdout.partition("Commands:")[2]
    assert "..." not in listed
