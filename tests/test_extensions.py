"""Fields beyond the plain problem: every verb knows them or refuses them in one line."""

from __future__ import annotations

from typing import Any

import pytest

import featurestep as fs
from featurestep import InvalidProblem, Problem
from featurestep.core.results import PLAIN, departing, require_known

BASE: dict[str, Any] = {"n": 60, "d": 30, "width": 40, "step_exponent": 0.3, "ridge": 0.1}
CONSTANT = Problem(**BASE, readout="constant")  # the quickest to answer
PROBLEMS = {  # one for each field
    "loss": CONSTANT.replace(loss="logistic", target="H1", noise_std=0.5),
    "intercept": CONSTANT.replace(intercept=True),
    "rows": CONSTANT.replace(rows="same"),
    "steps": CONSTANT.replace(steps=2),
    "batches": CONSTANT.replace(batches="same"),
    "covariance": CONSTANT.replace(covariance="power(0.6)"),
}
GRIDS = {
    "loss": Problem(**BASE).vary(loss=["square", "huber"]),
    "intercept": Problem(**BASE).vary(intercept=[False, True]),
    "rows": Problem(**BASE).vary(rows=["fresh", "same"]),
    "steps": CONSTANT.vary(steps=[1, 2]),
    "batches": Problem(**BASE).vary(batches=["fresh", "same"]),
    "covariance": Problem(**BASE).vary(covariance=[None, "power(0.6)"]),
}
STEPS = {"rows", "steps", "batches"}
LOSS = {"loss", "intercept"}
# Every public verb, and the fields that it knows.
VERBS: dict[str, tuple[Any, set[str]]] = {
    "predict": (fs.predict, LOSS | {"steps", "covariance", "rows"}),
    "compare": (
        lambda p: fs.compare(p, seeds=2, n_test=50),
        LOSS | {"steps", "covariance", "rows"},
    ),
    "limit": (fs.limit, set()),
    "baselines": (fs.baselines, LOSS | {"rows"}),
    "optimum": (
        lambda p: fs.optimum(p, bounds={"ridge": (0.05, 0.5)}),
        LOSS | {"steps", "covariance", "rows"},
    ),
    "learnable": (fs.learnable, set()),
    "spectrum": (fs.spectrum, {"steps", "rows"}),
    "critical_steps": (fs.critical_steps, set()),
    "phase_diagram": (fs.phase_diagram, set()),
    "simulate": (lambda p: fs.simulate(p, seeds=1, n_test=50), set(PLAIN)),
    "estimate": (lambda p: fs.estimate(p, seeds=1, n_test=50), set(PLAIN)),
    "simulated_spectrum": (
        lambda p: fs.simulated_spectrum(p, seeds=1, top=2),
        STEPS | {"covariance"},
    ),
    "estimate_spectrum": (
        lambda p: fs.estimate_spectrum(p, seeds=1, top=2),
        STEPS | {"covariance"},
    ),
    "feature_gap": (lambda p: fs.feature_gap(p, seeds=1), {"rows", "covariance"}),
    **{
        f"sweep {task}": (
            lambda p, task=task: fs.sweep(
                p.vary(ridge=[0.1, 0.2]) if isinstance(p, Problem) else p,
                tasks=[task],
                engine="serial",
            ),
            known,
        )
        for task, known in (
            ("predict", LOSS | {"steps", "covariance", "rows"}),
            ("limit", set()),
            ("baselines", LOSS | {"rows"}),
            ("spectrum", {"steps", "rows"}),
            ("simulate", set(PLAIN)),
        )
    },
}


@pytest.mark.parametrize("field", PLAIN)
@pytest.mark.parametrize("name", VERBS)
def test_fields_that_a_verb_does_not_know_are_refused_in_one_line(name, field):
    verb, known = VERBS[name]
    kinds = (PROBLEMS,) if name == "estimate_spectrum" else (PROBLEMS, GRIDS)
    for kind in kinds if field not in known else ():
        with pytest.raises(InvalidProblem) as caught:
            verb(kind[field])
        text = str(caught.value)
        assert text.count("\n") == 0
        assert f"{field} {PLAIN[field][1]} for " in text


@pytest.mark.parametrize(
    ("name", "field"),
    [(name, field) for name, (_, known) in VERBS.items() for field in PLAIN if field in known],
)
def test_fields_that_a_verb_knows_are_answered(name, field):
    if not name.startswith("sweep"):
        VERBS[name][0](PROBLEMS[field])
        return
    task = name.split()[1]
    options = {"seeds": 1, "n_test": 50} if task == "simulate" else {}
    found = fs.sweep(PROBLEMS[field], tasks={task: options}, engine="serial")
    assert set(found[f"{task}_status"].values.ravel()) == {"ok"}


def test_every_verb_is_in_the_table():
    known = {name.split()[0] for name in VERBS}
    others = {"function", "find_spikes"}  # which take no problem
    assert {name for name in fs.__all__ if name[0].islower()} == known | others


def test_every_field_is_tried():
    assert list(PROBLEMS) == list(GRIDS) == list(PLAIN)
    for field in PLAIN:
        assert list(departing(PROBLEMS[field])) == list(departing(GRIDS[field])) == [field]
    assert departing(Problem(**BASE)) == {}
    sizes = Problem(**BASE).vary(step_sizes=[(1.0,), (1.0, 2.0)])
    assert departing(sizes) == {"steps": 2}


def test_an_intercept_is_known_with_rows_of_the_step():
    both = PROBLEMS["rows"].replace(intercept=True)
    for name in ("predict", "compare", "baselines", "optimum"):
        VERBS[name][0](both)
    with pytest.raises(
        InvalidProblem, match="rows must be fresh for predict with loss huber and intercept"
    ):
        fs.predict(both.replace(loss="huber"))


def test_fields_that_are_known_apart_are_refused_together():
    both = Problem(**BASE, rows="same", steps=2)
    require_known(both, "it", {"rows", "steps"})
    require_known(PROBLEMS["rows"], "it", {"loss"}, {"rows"})
    with pytest.raises(InvalidProblem, match="steps must be 1 for it with rows same; got 2"):
        require_known(both, "it", {"rows"}, {"loss"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rows": "twice"}, "rows must be one of fresh, half, same"),
        (
            {"rows": "half", "n_step": 121},
            "n_step must be at most 2n = 120 with rows half; got 121",
        ),
        ({"rows": "same", "n_step": 50}, "n_step must be n = 60 with rows same; got 50"),
        ({"batches": None}, "batches must be one of fresh, same"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"steps": 1001}, "steps must be at most 1000"),
        ({"steps": (1.0, 0.5)}, "steps must be a whole number"),
        ({"step_sizes": (1.0, 2.0)}, "step_sizes must not be given together with step_exponent"),
        ({"step_exponent": None, "step_sizes": 2.0}, "step_sizes must be a list"),
        ({"step_exponent": None, "step_sizes": ("x",)}, "step_sizes must be >= 0"),
        ({"step_exponent": None, "step_sizes": (1.0, -1.0)}, "step_sizes must be >= 0"),
        ({"step_exponent": None, "step_sizes": (1.0, 2.0), "steps": 3}, "steps must be left out"),
        (
            {"step_exponent": None, "step_sizes": (1.0,), "step_scale": 2.0},
            "step_scale can only be given with step_exponent",
        ),
    ],
)
def test_bad_steps_and_rows_are_refused_in_one_line(fields, message):
    with pytest.raises(InvalidProblem) as caught:
        Problem(**{**BASE, **fields})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_steps_and_sizes_are_known_in_both_ways():
    p = Problem(**BASE, steps=3)
    assert p.step_sizes == (p.step_size,) * 3
    q = p.replace(step_sizes=(4.0, 2.0))
    assert (q.steps, q.step_size, q.step_sizes) == (2, 4.0, (4.0, 2.0))
    assert Problem(**BASE).step_sizes == (Problem(**BASE).step_size,)
    assert repr(q).endswith("step_sizes=(4.0, 2.0))")
    with pytest.raises(InvalidProblem, match="must not be given together with step_size"):
        q.replace(step_size=1.0)
    assert Problem(**BASE, rows="same").replace(n=80).n_step == 80
