"""Wrong inputs: each is refused by name, with its rule and its value, in one line."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, baselines, function, limit, optimum, predict

from .command import run

GOOD: dict[str, Any] = {"n": 200, "d": 100, "width": 150, "step_exponent": 0.3, "ridge": 0.1}
RATIOS: dict[str, Any] = {"phi": 0.5, "psi": 0.7, "n": 200, "step_exponent": 0.3, "ridge": 0.1}
CUI: dict[str, Any] = {"alpha": 2.0, "alpha0": 2.0, "eta_tilde": 1.0, "lambda_": 0.1, "d": 100}
BASE = Problem(**GOOD)


def exp_square(s):
    return np.exp(s**2)


def hidden_kink(s):
    return np.abs(s - 0.3) + s


def hidden_jump(s):
    return np.where(s > 1.25, 1.0, 0.0) + s


def not_a_number(s):
    return s * np.nan


def pole(s):
    return 1.0 / (s - 0.5)


def one_value(s):
    return 1.0


def first_row(s):
    return s[0]


def complex_valued(s):
    return s * 1j


def vanishing(s):
    return 0.0 * s


def fast_sine(s):
    return np.sin(1e6 * s)


# One field of an otherwise good Problem: (field, value, what the message must show).
FIELDS = [
    *((name, 0, "got 0") for name in ("n", "d", "width", "n_step")),
    ("n", -3, "-3"),
    ("d", math.nan, "nan"),
    ("width", math.inf, "inf"),
    ("n", 2.5, "2.5"),
    ("d", True, "True"),
    ("width", "150", "'150'"),
    ("n_step", [200], "[200]"),
    ("n", None, "None"),
    ("d", 10**16, "10000000000000000"),
    ("n_step", 1 + 0j, "(1+0j)"),
    ("ridge", 0, "must be > 0; got 0"),
    ("ridge", -0.1, "must be > 0; got -0.1"),
    ("ridge", math.nan, "nan"),
    ("ridge", math.inf, "inf"),
    ("ridge", "0.1", "'0.1'"),
    ("ridge", None, "None"),
    ("ridge", True, "True"),
    ("ridge", [0.1], "[0.1]"),
    ("noise_std", -0.1, "must be >= 0; got -0.1"),
    ("noise_std", math.nan, "nan"),
    ("noise_std", "0", "'0'"),
    ("noise_std", None, "None"),
    ("step_exponent", math.nan, "nan"),
    ("step_exponent", 2.5, "2.5"),
    ("step_exponent", "0.3", "'0.3'"),
    ("step_exponent", None, "None"),
    ("step_scale", 0, "got 0"),
    ("step_scale", math.nan, "nan"),
    ("step_size", 1.0, "together with step_exponent"),
    ("residual", "gradient", "'gradient'"),
    ("residual", None, "None"),
    ("initial", "uniform", "must be one of sphere, gaussian; got 'uniform'"),
    ("initial", None, "None"),
    ("initial", ["sphere"], "['sphere']"),
    ("centre", 1, "got 1"),
    ("centre", "yes", "'yes'"),
    ("activation", "swish", "'swish'"),
    ("activation", "Tanh", "'Tanh'"),
    ("activation", None, "None"),
    ("activation", 3, "got 3"),
    ("activation", "abs", "c_1 = E[zσ(z)] ≠ 0"),
    ("activation", "H2", "c_1 = E[zσ(z)] ≠ 0"),
    ("activation", "H0 + H2", "'H0 + H2'"),
    ("target", 3, "got 3"),
    ("target", ["tanh"], "['tanh']"),
    ("readout", "normal", "'normal'"),
    ("readout", None, "None"),
    ("readout", 3, "got 3"),
    ("readout", [], "()"),
    ("readout", [1, 1], "[1, 1]"),
    ("readout", [(1,)], "[(1,)]"),
    ("readout", [("a", 1)], "'a'"),
    ("readout", [(1, 0.5), (-1, 0.6)], "sum to 1; got 1.1"),
    ("readout", [(1, 0.5)], "sum to 1; got 0.5"),
    ("readout", [(1, -0.5), (-1, 1.5)], "-0.5"),
    ("readout", [(1, 0.5), (1, 0.5)], "differ"),
    ("readout", [(2, 1.0)], "E g² = 1; got 4.0"),
    ("readout", [(math.nan, 1)], "nan"),
    ("readout", [(math.inf, 1)], "inf"),
    ("readout", [(1.0, 1 / 65)] * 65, "1 to 64"),
]
FORMULAS = [
    ("H1 +", "ends too early"),
    ("H1*H2", "one Hermite polynomial at most"),
    ("H99", "up to 20"),
    ("H1/0", "at character 4: division by zero"),
    ("H1/H1", "divisor must be a number"),
    ("sqrt(-1)", "negative"),
    ("sqrt(H1)", "must be a number"),
    ("__import__('os')", "__import__('os')"),
    ("H1**2", "the base of a power must be a number"),
    ("H1 H2", "at character 4: unexpected 'H2'"),
    ("(H1", "ends too early"),
    ("H1)", "unexpected ')'"),
    ("H1; H2", "unexpected ';'"),
    ("H1\nfoo", r"'H1\nfoo'"),
    ("", "nothing given"),
    ("nan", "'nan'"),
    ("H1 - H1", "zero function"),
    (" + ".join(["H1"] * 200), "at most 400 characters"),
    ("(" * 60 + "H1" + ")" * 60, "nested too deeply"),
    ("-" * 60 + "H1", "nested too deeply"),
]
CALLABLES = [
    (exp_square, "too fast a growth"),
    (hidden_kink, "near s = 0.3"),
    (hidden_jump, "near s = 1.25"),
    (not_a_number, "non-finite"),
    (pole, "s = 0.5"),
    (one_value, "got ()"),
    (first_row, "vectorised"),
    (complex_valued, "complex128"),
    (vanishing, "vanishing"),
    (fast_sine, "varies faster"),
]
# Other calls: (call, its arguments, the parameter blamed, what the message must show).
TOGETHER = {"step_exponent": None, "step_size": 1.0}
CALLS = [
    (Problem, {**GOOD, **TOGETHER, "step_size": -1}, "step_size", "-1"),
    (Problem, {**GOOD, **TOGETHER, "step_size": "1"}, "step_size", "'1'"),
    (Problem, {**GOOD, **TOGETHER, "step_scale": 2.0}, "step_scale", "2.0"),
    (
        Problem,
        {**GOOD, "readout": "constant", "residual": "full", "activation": "relu"},
        "residual",
        "centre=True",
    ),
    (
        Problem,
        {**GOOD, "activation": function(np.tanh, derivative=np.ones_like)},
        "activation",
        "match its derivative",
    ),
    (Problem.from_ratios, {**RATIOS, "phi": 0}, "phi", "got 0"),
    (Problem.from_ratios, {**RATIOS, "phi": "half"}, "phi", "'half'"),
    (Problem.from_ratios, {**RATIOS, "phi": 1e-9}, "phi", "d = phi·n"),
    (Problem.from_ratios, {**RATIOS, "psi": math.inf}, "psi", "inf"),
    (Problem.from_ratios, {**RATIOS, "psi": 1e-30}, "psi", "width = d/psi"),
    (Problem.from_ratios, {**RATIOS, "d": 3}, "d", "is set by phi and psi; got 3"),
    (Problem.from_ratios, {**RATIOS, "n": 0}, "n", "got 0"),
    (Problem.from_ratios, {**RATIOS, "phi_step": math.nan}, "phi_step", "nan"),
    (Problem.from_ratios, {**RATIOS, "phi_step": 0.5, "n_step": 3}, "n_step", "got 3"),
    (Problem.from_cui, {**CUI, "alpha": 0}, "alpha", "got 0"),
    (Problem.from_cui, {**CUI, "alpha0": -1}, "alpha0", "-1"),
    (Problem.from_cui, {**CUI, "width_ratio": math.nan}, "width_ratio", "nan"),
    (Problem.from_cui, {**CUI, "eta_tilde": -1}, "eta_tilde", "-1"),
    (Problem.from_cui, {**CUI, "lambda_": 0}, "lambda_", "got 0"),
    (Problem.from_cui, {**CUI, "ridge": 0.1}, "ridge", "0.1"),
    (BASE.replace, {"alpha": 1}, "alpha", "not a field"),
    (BASE.replace, {"ridge": -1}, "ridge", "-1"),
    (BASE.replace, {"step_exponent": None}, "step_exponent", "None"),
    (BASE.vary, {}, "vary", "at least one field"),
    (BASE.vary, {"alpha": [1]}, "alpha", "not a field"),
    (BASE.vary, {"ridge": []}, "ridge", "[]"),
    (BASE.vary, {"ridge": "0.1"}, "ridge", "'0.1'"),
    (BASE.vary, {"ridge": 0.1}, "ridge", "0.1"),
    (BASE.vary, {"activation": "tanh"}, "activation", "'tanh'"),
    (BASE.vary, {"step_size": [1], "step_exponent": [0.1]}, "vary", "not both"),
    (function, {"call": 3}, "function", "got 3"),
    (function, {"call": np.tanh, "derivative": 3}, "derivative", "got 3"),
    (function, {"call": np.tanh, "kinks": ["a"]}, "kinks", "['a']"),
    (function, {"call": np.tanh, "kinks": [math.nan]}, "kinks", "nan"),
    *((verb, {"problem": 3}, "problem", "got 3") for verb in (predict, limit, baselines, optimum)),
    (optimum, {"problem": BASE.vary(ridge=[0.1])}, "over", "'ridge'"),
    *(
        (limit, {"problem": BASE, "degree": degree}, "degree", repr(degree))
        for degree in (-1, 31, 1.5, "two", True)
    ),
    (limit, {"problem": BASE.replace(step_exponent=0.25)}, "degree", "exponent 0.25"),
    (limit, {"problem": BASE.replace(step_exponent=0.6)}, "degree", "exponent 0.6"),
    (optimum, {"problem": BASE, "over": ()}, "over", "()"),
    (optimum, {"problem": BASE, "over": ("n",)}, "over", "'n'"),
    (optimum, {"problem": BASE, "over": ("ridge", "ridge")}, "over", "'ridge', 'ridge'"),
    (optimum, {"problem": BASE, "minimise": "loss"}, "minimise", "'loss'"),
    (optimum, {"problem": BASE, "bounds": {"ridge": (0, 1)}}, "bounds", "(0, 1)"),
    (optimum, {"problem": BASE, "bounds": {"ridge": (2, 1)}}, "bounds", "(2, 1)"),
    (optimum, {"problem": BASE, "bounds": {"ridge": (1, math.nan)}}, "bounds", "nan"),
    (optimum, {"problem": BASE, "bounds": {"step_size": (1, 2)}}, "bounds", "'step_size'"),
]
# Command lines, and what the one line on stderr must show.
COMMANDS = [
    ("predict --ridge -0.1", "error: ridge must be > 0; got -0.1"),
    ("predict --ridge small", "'small'"),
    ("predict --n 2.5", "2.5"),
    ("predict --n nan", "nan"),
    ("predict --width -7", "-7"),
    ("predict --activation swish", "'swish'"),
    ("predict --target H1+", "'H1+'"),
    ("predict --activation abs", "c_1"),
    ("predict --readout -1:0.5,1:0.6", "sum to 1; got 1.1"),
    ("predict --readout 1:a", "'1:a'"),
    ("predict --readout 1:0.5:2", "'1:0.5:2'"),
    ("predict --residual none", "'none'"),
    ("predict --initial uniform", "error: initial must be one of sphere, gaussian; got 'uniform'"),
    ("predict --over initial=sphere,1", "initial must be one of sphere, gaussian; got '1'"),
    ("predict --initial sphere --over initial=sphere,gaussian", "while --initial is given"),
    ("predict --step-size 1 --step-exponent 0.3", "together with step_exponent"),
    ("predict --phi 0.5", "psi must be given together with phi"),
    ("predict --phi 0.5 --psi 0.5 --d 100", "together with d"),
    ("predict --phi 0 --psi 0.5", "phi must be > 0; got 0"),
    ("predict --phi 0.5 --psi 0.5 --over width=100,200", "together with width"),
    ("predict --rige 0.1", "--rige"),
    ("predict --ridge", "--ridge"),
    ("predict extra", "extra"),
    ("predict --over ridge", "FIELD=START:STOP:COUNT"),
    ("predict --over ridge=", "FIELD=START:STOP:COUNT"),
    ("predict --over lambda=0.1,1", "'lambda'"),
    ("predict --over ridge=0:1", "'ridge=0:1'"),
    ("predict --over ridge=0:1:many", "'ridge=0:1:many'"),
    ("predict --over ridge=0.1:1:0", "COUNT"),
    ("predict --over ridge=0.1:1:2.5", "COUNT"),
    ("predict --over ridge=0.1:1:1000000", "at most 100000 points"),
    ("predict --over ridge=log:0:1:5", "> 0 on a log scale"),
    ("predict --over ridge=-1,1", "ridge must be > 0; got -1"),
    ("predict --over ridge=0.1:1:500 --over n=100:900:500", "at most 100000 points"),
    ("predict --over ridge=1,2 --over ridge=3,4", "two different"),
    ("predict --over ridge=1,2 --over n=100,200 --over d=1,2", "two different"),
    ("predict --ridge 0.1 --over ridge=1,2", "while --ridge is given"),
    ("predict --step-exponent 0.1 --over step_size=1,2", "while --step-exponent is given"),
    ("predict --over step_size=1,2 --over step_exponent=0.1,0.2", "not both"),
    ("predict --plot curve.gif", "'curve.gif'"),
    ("predict --plot curve", "'curve'"),
    ("predict --plot missing/curve.png", "'missing/curve.png'"),
    ("predict --plot folder.png", "'folder.png'"),
    ("limit --step-exponent 0.25", "exponent 0.25"),
    ("limit --degree two", "'two'"),
    ("baselines --over n=100,200 --over d=50,60 --plot bars.png", "single --over"),
    ("optimum --best n", "'n'"),
    ("optimum --best ridge=1", "NAME=LOW:HIGH"),
    ("optimum --best ridge=2:1", "(2, 1)"),
    ("optimum --minimise loss", "'loss'"),
    ("demo --target H1", "--target"),
    ("demo --n 0", "got 0"),
    ("demo --output file", "'file'"),
    ("train", "train"),
    ("--loud", "--loud"),
]


def cases():
    for name, value, shown in FIELDS:
        call = partial(Problem, **{**GOOD, name: value})
        yield pytest.param(call, name, shown, id=f"{name}={value!r}"[:40])
    for name in ("activation", "target"):
        for text, shown in FORMULAS:
            call = partial(Problem, **{**GOOD, name: text})
            yield pytest.param(call, name, shown, id=f"{name}={text!r}"[:40])
        for user, shown in CALLABLES:
            call = partial(Problem, **{**GOOD, name: user})
            yield pytest.param(call, name, shown, id=f"{name}={user.__name__}")
    for verb, arguments, name, shown in CALLS:
        yield pytest.param(partial(verb, **arguments), name, shown, id=f"{verb.__name__}-{shown}")


@pytest.mark.parametrize(("call", "parameter", "shown"), list(cases()))
def test_refused_in_one_line_that_names_parameter_and_value(call, parameter, shown):
    with np.errstate(all="ignore"), pytest.raises(InvalidProblem) as caught:
        call()
    message = str(caught.value)
    assert caught.value.parameter == parameter
    assert message.startswith(parameter)
    assert shown in message
    assert len(message.splitlines()) == 1
    assert len(message) < 400


@pytest.mark.parametrize(
    "values", [{"ridge": [0.1, -1.0]}, {"n": [100, 2.5]}, {"target": ["H1 +"]}]
)
def test_a_wrong_value_inside_a_grid_is_named(values):
    (name,) = values
    with pytest.raises(InvalidProblem, match=f"^{name} "):
        predict(BASE.vary(**values))


@pytest.mark.parametrize(("line", "shown"), COMMANDS)
def test_command_line_refuses_in_one_line_and_writes_nothing(line, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder.png").mkdir()
    Path("file").write_text("kept")
    result = run(*line.split(), code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert shown in result.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder.png"]
    assert Path("file").read_text() == "kept"
