"""Bad arguments, non-finite features, singular systems and too little memory."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import (
    InsufficientMemory,
    InvalidProblem,
    NonFiniteFeatures,
    Problem,
    Setting,
    SingularSystem,
    Teacher,
    estimate,
    function,
    simulate,
)
from featurestep.simulation.setting import MOVED

PROBLEM = Problem(n=60, d=20, width=30, ridge=0.1, step_size=1.0)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"seeds": 0}, "seeds"),
        ({"seeds": -1}, "seeds"),
        ({"seeds": 1.5}, "seeds"),
        ({"seeds": True}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": "3"}, "seeds"),
        ({"n_test": 0}, "n_test"),
        ({"n_test": 2.5}, "n_test"),
        ({"n_test": True}, "n_test"),
        ({"variants": ()}, "variants"),
        ({"variants": "trained"}, "variants"),
        ({"variants": ["trained", "trained"]}, "variants"),
        ({"variants": ["spiked"]}, "variants"),
        ({"variants": ["spiked:0"]}, "variants"),
        ({"variants": ["spiked:21"]}, "variants"),
        ({"variants": [3]}, "variants"),
        ({"dtype": "float16"}, "dtype"),
        ({"device": "tpu"}, "device"),
        ({"max_memory": 0}, "max_memory"),
        ({"max_memory": float("nan")}, "max_memory"),
        ({"max_memory": "1GB"}, "max_memory"),
        ({"block_rows": 0}, "block_rows"),
        ({"block_rows": 2.5}, "block_rows"),
        ({"streams": {"luck": 1}}, "streams"),
        ({"streams": {"data": -1}}, "streams['data']"),
        ({"streams": 3}, "streams"),
        ({"progress": 3}, "progress"),
        ({"setting": "gaussian"}, "setting"),
        ({"setting": Setting(teacher=Teacher(21, lambda k: k[:, 0]))}, "directions"),
        ({"setting": Setting(teacher=Teacher(2, lambda k: k))}, "teacher"),
        ({"setting": Setting(inputs=np.ones((9000, 7)))}, "inputs"),
        ({"setting": Setting(inputs=np.ones((4119, 20)))}, "inputs"),
    ],
)
def test_bad_arguments(options, parameter):
    with pytest.raises(InvalidProblem) as caught:
        simulate(PROBLEM, **{"seeds": 1, **options})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("variant", ["srf", "gaussian+spiked:1"])
def test_variants_of_one_step(variant):
    with pytest.raises(InvalidProblem, match="variants must be trained, initial or gaussian"):
        simulate(PROBLEM.replace(steps=2), seeds=1, variants=[variant])


def test_an_array_of_just_enough_rows_is_accepted():
    rows = np.random.default_rng(0).standard_normal((4120, 20))  # 60 + 60 + 4000
    assert simulate(PROBLEM, seeds=1, setting=Setting(inputs=rows)).values["test_error"] > 0


@pytest.mark.parametrize("problem", [None, 3, [PROBLEM]])
def test_not_a_problem(problem):
    with pytest.raises(InvalidProblem, match="must be a Problem"):
        simulate(problem)


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"inputs": "cauchy"}, "inputs"),
        ({"inputs": "student_t(2)"}, "inputs"),
        ({"inputs": "student_t(df)"}, "inputs"),
        ({"inputs": [1.0, 2.0]}, "inputs"),
        ({"inputs": [[1.0, np.inf]]}, "inputs"),
        ({"inputs": None}, "inputs"),
        ({"teacher": "tanh"}, "teacher"),
        ({"corrupted": -0.1}, "corrupted"),
        ({"corrupted": 1.1}, "corrupted"),
        ({"corrupted": float("nan")}, "corrupted"),
        ({"corrupted": "half"}, "corrupted"),
        *(({name: 1}, name) for name in MOVED),
    ],
)
def test_bad_settings(fields, parameter):
    with pytest.raises(InvalidProblem) as caught:
        Setting(**fields)
    assert caught.value.parameter == parameter
    if parameter in MOVED:
        assert f"is a field of the problem now: Problem({MOVED[parameter]})" in str(caught.value)


@pytest.mark.parametrize("arguments", [(0, np.sum), (1.5, np.sum), (True, np.sum), (2, "sum")])
def test_bad_teachers(arguments):
    with pytest.raises(InvalidProblem):
        Teacher(*arguments)


@pytest.mark.parametrize("n", [60, 20])
@pytest.mark.parametrize(
    ("activation", "step_size", "error"),
    [
        ("H1 + H20", 1e12, NonFiniteFeatures),
        (function(np.exp, derivative=np.exp), 1e4, InvalidProblem),  # refused by the function
    ],
)
def test_overflowing_features_are_refused(activation, step_size, error, n):
    """Finite at the start, not after a huge step."""
    p = PROBLEM.replace(activation=activation, step_size=step_size, n=n)
    with pytest.raises(error, match=r"not finite|must be finite"):
        simulate(p, seeds=1, n_test=50)


def test_non_finite_targets_are_refused():
    setting = Setting(teacher=Teacher(1, lambda k: np.log(k[:, 0])))
    with pytest.raises(NonFiniteFeatures, match="target is not finite"):
        simulate(PROBLEM, seeds=1, setting=setting)


@pytest.mark.parametrize("ridges", [[1e-15], list(np.linspace(1e-15, 2e-15, 30))])
def test_singular_systems_are_refused(ridges):
    """A linear network wider than its inputs has rank d, and so no inverse without a ridge."""
    p = PROBLEM.replace(activation="identity")
    with pytest.raises(SingularSystem, match="raise the ridge"):
        simulate(p.vary(ridge=ridges), seeds=1, n_test=50)


def test_too_little_memory_is_refused_before_allocation():
    p = Problem(n=10**6, d=10**5, width=10**6, ridge=0.1, step_size=1.0)  # 8 TB a Gram matrix
    assert estimate(p).memory > 8e12
    with pytest.raises(InsufficientMemory, match="max_memory is"):
        simulate(p, seeds=1, max_memory=2**34)


def test_one_seed_has_no_standard_error():
    found = simulate(PROBLEM, seeds=1, n_test=50)
    assert np.isfinite(float(found.mean.test_error[0]))
    with pytest.raises(InvalidProblem, match="seeds"):
        _ = found.standard_error
