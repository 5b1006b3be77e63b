"""Keys: the same content has the same key, and everything that matters changes it."""

from __future__ import annotations

import pytest

from featurestep import Problem
from featurestep.functions.activations import NAMED, resolve
from featurestep.sweeps import describe, key_of, make_plan, read_sweep, under

BASE = {"n": 60, "d": 30, "width": 40, "step_exponent": 0.3, "ridge": 0.01}


def key(task="predict", options=None, numerics="0123", **changes):
    return key_of(describe(Problem(**{**BASE, **changes}), task, options or {}, numerics))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"ridge": 1}, {"ridge": 1.0}),
        ({"n": 60.0}, {"n": 60}),
        ({"n_step": 60}, {"n_step": None}),
        ({"target": "H1 + H2"}, {"target": "H2 + 1.0*H1"}),
        ({"activation": NAMED["relu"]}, {"activation": "relu"}),
        ({"target": resolve("H1 + H2", "target")}, {"target": "H1+H2"}),
        ({"readout": "rademacher"}, {"readout": [(-1, 0.5), (1, 0.5)]}),
        ({"step_scale": 1}, {"step_scale": 1.0}),
        ({"initial": "sphere"}, {}),
        ({"loss": "square", "intercept": False, "flip": 0}, {}),
    ],
)
def test_spelling_does_not_matter(one, other):
    assert key(**one) == key(**other)


@pytest.mark.parametrize(
    "changes",
    [
        {"ridge": 0.011},
        {"n": 61},
        {"d": 31},
        {"width": 41},
        {"n_step": 61},
        {"step_exponent": 0.31},
        {"step_scale": 2.0},
        {"noise_std": 0.1},
        {"activation": "relu"},
        {"target": "relu"},
        {"readout": "uniform"},
        {"residual": "full"},
        {"initial": "gaussian"},
        {"loss": "logistic"},
        {"intercept": True},
        {"loss": "hinge", "flip": 0.1},
        {"centre": True},
        {"task": "limit"},
        {"options": {"seed": 1}},
        {"numerics": "0124"},
    ],
    ids=str,
)
def test_everything_else_does(changes):
    assert key(**changes) != key()


def test_keys_of_older_stores_hold():
    """Pinned before `initial` was a field: what it adds must leave them as they are."""
    pinned = {
        "labels": "83e8de65c64f47756ff4468ebf16a88a303e406f099eaf00c17b5ba0a471c75e",
        "full": "7b6dd8d055b34786b0871ca9ac5d0b2ad383dc49887d8b26e7159cac1b11d124",
    }
    for residual, expected in pinned.items():
        description = describe(Problem(**BASE, residual=residual), "predict", {}, "0123")
        assert key_of(under(description, 1)).hex() == expected


def test_the_company_of_a_unit_does_not_change_its_key(base):
    """A default that looked at the whole grid would."""
    small = make_plan(read_sweep(base.vary(n=[60]), {"simulate": {"seeds": 1}}))
    large = make_plan(read_sweep(base.vary(n=[60, 9000]), {"simulate": {"seeds": 2}}))
    assert small.units[0].key == large.units[0].key
    assert len({unit.key for unit in large.units}) == 4


def test_points_of_one_draw_travel_together_a_few_steps_at_a_time(base):
    grid = base.vary(ridge=[0.1, 1.0], step_size=[float(k) for k in range(12)])
    plan = make_plan(
        read_sweep(grid, {"simulate": {"seeds": 2, "variants": ["trained", "initial"]}})
    )
    jobs = list(plan.jobs({unit.key for unit in plan.units}))
    assert sorted(len(job.units) for job in jobs) == [16, 16, 32, 32]
    assert all(len({unit.part.seed for unit in job.units}) == 1 for job in jobs)
    assert sum(len(job.units) for job in jobs) == len(plan.units) == 96


def test_a_resumed_plan_keeps_its_bundles(base):
    plan = make_plan(read_sweep(base.vary(ridge=[float(k) for k in range(1, 2501)])))
    whole = [job.keys for job in plan.jobs({unit.key for unit in plan.units})]
    assert [len(keys) for keys in whole] == [1000, 1000, 500]
    rest = [job.keys for job in plan.jobs({*whole[0], *whole[2]})]
    assert rest == [whole[0], whole[2]]


def test_equal_points_are_computed_once(base):
    content = {
        "problem": BASE,
        "grid": {"zip": {"pair": {"ridge": [0.1, 0.1, 0.2], "noise_std": [0.0, 0.0, 0.0]}}},
        "tasks": ["predict"],
    }
    plan = make_plan(read_sweep(content))
    assert len(plan.units) == 3
    assert sum(len(job.units) for job in plan.jobs({u.key for u in plan.units})) == 2
