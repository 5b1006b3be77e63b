"""Sweep files: what they can say, and every refusal with the path of its key."""

from __future__ import annotations

import math

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, Setting, Teacher, function
from featurestep.functions.activations import HermiteSum
from featurestep.sweeps import load_sweep, make_plan, read_sweep

PROBLEM = {"n": 60, "d": 30, "width": 40, "step_exponent": 0.3, "ridge": 0.01}


def planned(grid=None, tasks=("predict",), **problem):
    content = {"problem": {**PROBLEM, **problem}, "tasks": list(tasks)}
    return make_plan(read_sweep(content if grid is None else {**content, "grid": grid}))


def test_without_a_grid_there_is_one_point():
    plan = planned()
    assert plan.problems == (Problem(**PROBLEM),)
    assert plan.sweep.shape == ()


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ([0.1, 0.2], [0.1, 0.2]),
        ((0.3,), [0.3]),
        (np.array([0.1, 0.2]), [0.1, 0.2]),
        ({"start": 0.1, "stop": 0.5, "count": 5}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"start": 0.1, "stop": 0.45, "step": 0.1}, [0.1, 0.2, 0.3, 0.4]),
        ({"start": 0.1, "stop": 0.4, "step": 0.1}, [0.1, 0.2, 0.3, 0.4]),
        ({"start": 0.5, "stop": 0.1, "step": -0.2}, [0.5, 0.3, 0.1]),
        ({"start": 0.01, "stop": 1, "count": 3, "scale": "log"}, [0.01, 0.1, 1.0]),
    ],
)
def test_lists_and_ranges(axis, expected):
    plan = planned({"ridge": axis})
    assert [p.ridge for p in plan.problems] == expected


def test_sizes_are_whole_and_each_comes_once():
    plan = planned({"n": {"start": 2, "stop": 3, "count": 7}})
    assert [p.n for p in plan.problems] == [2, 3]


def test_axes_multiply_in_the_order_written():
    plan = planned({"ridge": [0.1, 0.2], "noise_std": [0.0, 1.0, 2.0]})
    assert plan.sweep.shape == (2, 3)
    assert [(p.ridge, p.noise_std) for p in plan.problems][:4] == [
        (0.1, 0.0),
        (0.1, 1.0),
        (0.1, 2.0),
        (0.2, 0.0),
    ]


def test_zipped_fields_go_together():
    grid = {"zip": {"size": {"n": [60, 120], "d": [30, 60], "width": [40, 80]}}, "ridge": [0.1, 1]}
    plan = planned(grid)
    assert plan.sweep.shape == (2, 2)
    assert [(p.n, p.d, p.width, p.ridge) for p in plan.problems] == [
        (60, 30, 40, 0.1),
        (60, 30, 40, 1.0),
        (120, 60, 80, 0.1),
        (120, 60, 80, 1.0),
    ]


@pytest.mark.parametrize("kind", ["sobol", "random"])
def test_a_longer_design_begins_with_the_shorter_one(kind):
    box = {"ridge": {"low": 1e-4, "high": 1.0, "scale": "log"}, "n": [50, 500]}
    short, long = (
        planned({"design": {"kind": kind, "points": k, "seed": 3, "box": box}}).problems
        for k in (5, 12)
    )
    assert long[:5] == short
    assert all(1e-4 <= p.ridge <= 1 and 50 <= p.n <= 500 for p in long)
    assert len({p.ridge for p in long}) == 12


def test_a_sobol_design_fills_the_box_evenly():
    box = {"noise_std": [0.0, 1.0], "step_exponent": [0.0, 0.4]}
    plan = planned({"design": {"kind": "sobol", "points": 64, "box": box}})
    counts, _ = np.histogram([p.noise_std for p in plan.problems], bins=8, range=(0, 1))
    assert set(counts) == {8}


def test_ratios_follow_n():
    problem = {"phi": 0.5, "psi": 0.75, "step_exponent": 0.3, "ridge": 0.1}
    content = {"problem": problem, "grid": {"n": [60, 120]}, "tasks": ["predict"]}
    plan = make_plan(read_sweep(content))
    assert [(p.n, p.d, p.width) for p in plan.problems] == [(60, 30, 40), (120, 60, 80)]


def test_a_varied_step_replaces_that_of_the_base():
    assert [p.step_size for p in planned({"step_size": [0.0, 2.0]}).problems] == [0.0, 2.0]


def test_a_grid_from_python_is_the_same_sweep_as_its_mapping(base):
    ours = make_plan(read_sweep(base.vary(ridge=[0.1, 1.0]), ["predict"]))
    content = {
        "problem": {k: v for k, v in base.given.items() if v is not None},
        "grid": {"ridge": [0.1, 1.0]},
        "tasks": ["predict"],
    }
    assert ours.units == make_plan(read_sweep(content)).units


@pytest.mark.parametrize(
    "axes",
    [
        {"n": [60, 120], "phi": 0.5, "psi": 0.75},
        {"phi": [0.5, 1.0]},
        {"psi": [0.5], "d": [30, 60]},
        {"phi": [0.5, 1.0], "d": [30, 60]},
    ],
)
def test_sizes_of_a_grid_from_python_follow_its_ratios(base, axes):
    grid = base.vary(**axes)
    assert make_plan(read_sweep(grid, ["predict"])).problems == tuple(grid)


def test_a_file_puts_its_store_beside_it(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("[problem]\nn=60\nd=30\nwidth=40\nridge=0.1\nstep_size=1.0\n[tasks.predict]\n")
    sweep = load_sweep(path)
    assert (sweep.name, sweep.store) == ("study", tmp_path / "study.sqlite")
    path.write_text("store = 'other.db'\n" + path.read_text())
    assert load_sweep(path).store == tmp_path / "other.db"


SQUARE = {"kind": "sobol", "points": 4, "box": {"ridge": [0.1, 1.0]}}
BAD_GRIDS = [
    ({}, "grid must not be empty; got {}"),
    ({"ridge": []}, "grid.ridge must not be empty; got []"),
    ({"ridge": "abc"}, "grid.ridge must be > 0 (a number); got 'abc'"),
    ({"ridge": 3}, "grid.ridge must be a list; got 3"),
    ({"ridge": [0.1, -1.0]}, "grid.ridge must be > 0; got -1.0"),
    ({"ridge": ["a"]}, "grid.ridge must be > 0 (a number); got 'a'"),
    ({"ridge": [0.1, 0.1]}, "grid.ridge must have distinct values; got [0.1, 0.1]"),
    ({"lambda": [1]}, "grid.lambda is not a known name here"),
    ({"ridge": {"start": 1, "stop": 2}}, "grid.ridge must have either count or step"),
    ({"ridge": {"start": 1, "stop": 2, "count": 0}}, "grid.ridge.count must be a whole number"),
    ({"ridge": {"start": 1, "stop": 2, "count": 1e9}}, "grid.ridge.count must be at most 1e+06"),
    ({"ridge": {"start": 1, "stop": 2, "num": 3}}, "grid.ridge.num is not a known name here"),
    ({"ridge": {"start": 1, "count": 3}}, "grid.ridge.stop must be a number; got None"),
    ({"ridge": {"start": 1, "stop": 2, "step": -1}}, "grid.ridge.step must have the sign of stop"),
    ({"ridge": {"start": 1, "stop": 2, "step": 0}}, "grid.ridge.step must have the sign of stop"),
    ({"ridge": {"start": 1, "stop": 2, "step": 1e-12}}, "grid.ridge.step must give at most"),
    (
        {"ridge": {"start": 0, "stop": 2, "count": 3, "scale": "log"}},
        "grid.ridge must have ends > 0 on a log scale; got [0.0, 2.0]",
    ),
    (
        {"ridge": {"start": 1, "stop": 2, "step": 1, "scale": "log"}},
        "grid.ridge.step needs a linear scale; got 1",
    ),
    ({"ridge": {"start": 1, "stop": math.inf, "count": 3}}, "grid.ridge.stop must be finite"),
    (
        {"step_size": [1.0], "step_exponent": [0.1]},
        "grid.step_size must not be varied together with grid.step_exponent",
    ),
    ({"phi": [0.5], "d": [20]}, "grid.phi must not be varied together with grid.d"),
    ({"phi": [0.5]}, "problem.psi must be given together with phi"),
    ({"phi": [0.5], "psi": [0.5]}, "problem.d is set by phi and psi; got 30"),
    ({"zip": {}}, "grid.zip must not be empty; got {}"),
    ({"zip": {"size": {}}}, "grid.zip.size must not be empty; got {}"),
    ({"zip": {"size": {"n": [1, 2], "d": [1]}}}, "grid.zip.size must have lists of equal length"),
    ({"zip": {"size": {"foo": [1]}}}, "grid.zip.size.foo is not a known name here"),
    ({"zip": {"seed": {"n": [1, 2]}}}, "grid.zip.seed must be named by a word"),
    ({"zip": {"size": {"n": [60, 0]}}}, "grid.zip.size.n must be a whole number"),
    (
        {"n": [10], "zip": {"size": {"n": [1, 2]}}},
        "grid.zip.size.n must not be varied twice (also in grid.n); got [1, 2]",
    ),
    ({"design": {**SQUARE, "kind": "lhs"}}, "grid.design.kind must be one of sobol, random"),
    ({"design": {**SQUARE, "points": 0}}, "grid.design.points must be a whole number"),
    ({"design": {**SQUARE, "seed": -1}}, "grid.design.seed must be a whole number >= 0; got -1"),
    ({"design": {**SQUARE, "box": {}}}, "grid.design.box must not be empty; got {}"),
    (
        {"design": {**SQUARE, "box": {"ridge": [1, 1]}}},
        "grid.design.box.ridge must have low < high",
    ),
    ({"design": {**SQUARE, "box": {"ridge": [1]}}}, "grid.design.box.ridge must be [low, high]"),
    ({"design": {**SQUARE, "box": {"ridge": [-2, -1]}}}, "grid.design.box.ridge must be > 0"),
    (
        {"ridge": {"start": 1, "stop": 2, "count": 10**5}, "noise_std": list(range(10**5))},
        "grid must have at most 1e+06 points; got 10000000000",
    ),
]


@pytest.mark.parametrize(("grid", "message"), BAD_GRIDS, ids=lambda value: str(value)[:40])
def test_a_bad_grid_is_one_line_with_its_path(grid, message):
    with pytest.raises(InvalidProblem) as caught:
        planned(grid)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


BAD_TASKS = [
    ([], "tasks must not be empty; got []"),
    ({}, "tasks must name some of predict"),
    ("predict", "tasks must be a list; got 'predict'"),
    (["guess"], "tasks must be one of predict, limit"),
    (["predict", "predict"], "tasks must name each task once"),
    ({"guess": {}}, "tasks.guess is not a task"),
    ({"predict": 3}, "tasks.predict must be a table; got 3"),
    ({"predict": {"speed": 1}}, "tasks.predict.speed is not a known name here"),
    ({"limit": {"degree": 31}}, "tasks.limit.degree must be a whole number from 0 to 30"),
    ({"limit": {"degree": "x"}}, "tasks.limit.degree must be a whole number"),
    ({"limit": {"degree": -1}}, "tasks.limit.degree must be a whole number from 0 to 30"),
    ({"limit": {"degree": 2.0}}, "tasks.limit.degree must be a whole number from 0 to 30"),
    ({"limit": {"norm_growth": 1}}, "tasks.limit.norm_growth must be true or false; got 1"),
    ({"simulate": {"seeds": 0}}, "tasks.simulate.seeds must be a number >= 1"),
    ({"simulate": {"seeds": [1, 1]}}, "tasks.simulate.seeds must be distinct"),
    ({"simulate": {"variants": ["x"]}}, "tasks.simulate.variants must be some of trained"),
    ({"simulate": {"n_test": 0}}, "tasks.simulate.n_test must be a whole number"),
    ({"simulate": {"dtype": "int"}}, "tasks.simulate.dtype must be one of float64, float32"),
    ({"simulate": {"device": "tpu"}}, "tasks.simulate.device must be one of cpu, cuda, torch"),
    ({"simulate": {"max_memory": -1}}, "tasks.simulate.max_memory must be > 0; got -1"),
    ({"simulate": {"setting": 3}}, "tasks.simulate.setting must be a table; got 3"),
    ({"simulate": {"setting": {"x": 3}}}, "tasks.simulate.setting.x is not a known name here"),
    ({"simulate": {"setting": {"inputs": "x"}}}, "tasks.simulate.setting.inputs must be one of"),
    (
        {"simulate": {"setting": {"data": "same"}}},
        "tasks.simulate.setting.data is a field of the problem now: Problem(rows=…)",
    ),
]


@pytest.mark.parametrize(("tasks", "message"), BAD_TASKS, ids=lambda value: str(value)[:40])
def test_a_bad_task_is_one_line_with_its_path(tasks, message):
    with pytest.raises(InvalidProblem) as caught:
        make_plan(read_sweep({"problem": PROBLEM, "tasks": tasks}))
    assert str(caught.value).startswith(message)


def test_variants_of_one_step_are_refused_for_several():
    tasks = {"simulate": {"variants": ["srf"]}}
    with pytest.raises(InvalidProblem) as caught:
        make_plan(read_sweep({"problem": {**PROBLEM, "steps": 2}, "tasks": tasks}))
    message = "tasks.simulate.variants must be trained, initial or gaussian"
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 3}, "colour is not a known name here"),
        ({"problem": 3}, "problem must be a table; got 3"),
        ({"problem": {**PROBLEM, "lambda": 3}}, "problem.lambda is not a known name here"),
        ({"problem": {"n": 3}}, "problem.d or problem.phi must be given; got None"),
        ({"problem": {**PROBLEM, "ridge": -1}}, "problem.ridge must be > 0; got -1"),
        ({"problem": {**PROBLEM, "activation": 3}}, "problem.activation must be a name"),
        (
            {"problem": {**PROBLEM, "step_size": 1.0}},
            "problem.step_size must not be given together",
        ),
        ({"store": ""}, "store must be text; got ''"),
        ({"name": 3}, "name must be text; got 3"),
        ({"engine": 3}, "engine must be a table; got 3"),
        ({"engine": "gpu"}, "engine.kind must be one of processes, serial, dask; got 'gpu'"),
        ({"engine": {"workers": 0}}, "engine.workers must be a whole number"),
        ({"engine": {"workers": 5000}}, "engine.workers must be at most 4096"),
        (
            {"engine": {"kind": "serial", "workers": 2}},
            "engine.workers needs the engine processes or dask",
        ),
        ({"engine": {"scheduler": "tcp://x"}}, "engine.scheduler needs the engine dask"),
        (
            {"engine": {"kind": "dask", "scheduler": "tcp://x", "workers": 2}},
            "engine.workers must not be given with a scheduler",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_tables_are_one_line_with_their_path(change, message):
    with pytest.raises(InvalidProblem) as caught:
        make_plan(read_sweep({"problem": PROBLEM, "tasks": ["predict"], **change}))
    assert str(caught.value).startswith(message)


def test_what_is_no_sweep_is_refused():
    with pytest.raises(InvalidProblem, match="sweep must be a sweep file"):
        read_sweep(3)
    with pytest.raises(InvalidProblem, match="tasks goes with a Problem or a grid"):
        read_sweep({"problem": PROBLEM, "tasks": ["predict"]}, ["limit"])


def test_functions_are_refused_because_content_cannot_tell_them(base):
    with pytest.raises(
        InvalidProblem, match="a Python function cannot be identified in the store"
    ) as caught:
        make_plan(read_sweep(base.replace(target=np.sin)))
    assert "\n" not in str(caught.value)
    lying = HermiteSum("tanh", (0.0, 1.0))
    with pytest.raises(InvalidProblem, match="cannot be identified"):
        make_plan(read_sweep(base.replace(target=lying)))
    with pytest.raises(InvalidProblem, match="cannot be identified"):
        make_plan(read_sweep(base.vary(activation=[function(np.arctan, name="tanh")])))


@pytest.mark.parametrize(
    ("setting", "which"),
    [
        (Setting(teacher=Teacher(2, lambda z: z[:, 0])), "teacher"),
        (Setting(inputs=np.zeros((3, 30))), "inputs"),
    ],
)
def test_settings_without_content_are_refused(base, setting, which):
    with pytest.raises(InvalidProblem, match=rf"tasks\.simulate\.setting\.{which} must be a name"):
        read_sweep(base, {"simulate": {"setting": setting}})
