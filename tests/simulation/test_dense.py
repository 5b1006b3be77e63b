"""Every variant, law, residual and kind of input against the plain second implementation."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import Problem, Setting, Teacher, function, simulate
from featurestep.core.results import QUANTITIES

from .dense import dense, draw_of, trained_weights, whole

VARIANTS = ("trained", "initial", "spiked:1", "spiked:3", "gaussian", "gaussian+spiked:2", "srf")
N_TEST = 150


def problem(**changes):
    base = {"n": 60, "d": 30, "width": 45, "n_step": 50, "ridge": 0.02, "noise_std": 0.3}
    return Problem(**{**base, "step_size": 2.5, "activation": "relu", "target": "tanh", **changes})


def check(p, setting=None, variants=("trained",), **options):
    found = simulate(
        p, seeds=[3], n_test=N_TEST, variants=variants, setting=setting, **options
    ).dataset
    draw = draw_of(p, setting, seed=3, n_test=N_TEST)
    for variant in variants:
        expected = dense(p, draw, variant)
        for name in QUANTITIES:
            got = float(found[name].sel(variant=variant).squeeze())
            assert got == pytest.approx(getattr(expected, name), rel=1e-10, abs=1e-13), (
                variant,
                name,
            )


@pytest.mark.parametrize("residual", ["labels", "full"])
@pytest.mark.parametrize("sizes", [{}, {"width": 80}, {"n": 45}, {"n_step": 130, "n": 130}])
def test_variants(residual, sizes):
    check(problem(residual=residual, **sizes), variants=VARIANTS)


@pytest.mark.parametrize(
    "law", ["gaussian", "rademacher", "constant", "uniform", [(2.0, 0.2), (-0.5, 0.8)]]
)
@pytest.mark.parametrize("residual", ["labels", "full"])
def test_laws(law, residual):
    check(problem(readout=law, residual=residual, centre=True), variants=("trained", "srf"))


@pytest.mark.parametrize("residual", ["labels", "full"])
@pytest.mark.parametrize("sizes", [{}, {"width": 80}, {"n": 45}])
def test_gaussian_first_layer(residual, sizes):
    check(problem(initial="gaussian", residual=residual, **sizes), variants=VARIANTS)


def test_gaussian_first_layer_after_several_steps():
    p = problem(initial="gaussian", **sizes(4.0, 2.0))
    check(p, variants=("trained", "initial"))


@pytest.mark.parametrize(
    "activation",
    [
        *("tanh", "erf", "leaky_relu", "softplus", "gelu", "silu", "sigmoid", "sin", "hard_tanh"),
        *("H1 + 0.3*H2", function(lambda s: s / (1 + s * s) ** 0.5)),
    ],
    ids=str,
)
def test_activations(activation):
    check(problem(activation=activation), variants=("trained", "gaussian+spiked:2"))


def sizes(*values):
    """Fields of several steps."""
    return {"step_sizes": values, "step_size": None, "step_exponent": None}


@pytest.mark.parametrize(
    "setting",
    [
        *({"inputs": law} for law in ("rademacher", "uniform", "student_t(3.5)", "sphere")),
        {"teacher": Teacher(2, lambda k: k[:, 0] * k[:, 1] + np.tanh(k[:, 0]))},
        {"corrupted": 0.3},
        {"inputs": np.random.default_rng(0).laplace(size=(400, 30))},
    ],
    ids=str,
)
@pytest.mark.parametrize("residual", ["labels", "full"])
def test_settings(setting, residual):
    check(problem(residual=residual), Setting(**setting), VARIANTS)


@pytest.mark.parametrize(
    ("fields", "inputs"),
    [
        ({"covariance": (2.0, 1.0, 0.1)}, "gaussian"),
        ({"covariance": (0.5, 1.5)}, "uniform"),
        ({"covariance": "power(0.6)", "target_exponent": 0.5}, "gaussian"),
        ({"covariance": [(3.0, 0.2), (0.5, 0.8)], "target_mass": (0.7, 0.3)}, "gaussian"),
        ({"covariance": np.diag(np.arange(1.0, 31.0)), "target_direction": 2}, "gaussian"),
        ({"target_direction": 4}, "mixture(2, 1.5)"),
        ({"rows": "same", "n_step": None}, "gaussian"),
        ({"rows": "same", "n_step": None}, np.random.default_rng(0).laplace(size=(400, 30))),
        ({"rows": "half", "n_step": 131, "n": 70}, "gaussian"),
        ({"rows": "half"}, np.random.default_rng(0).laplace(size=(245, 30))),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("residual", ["labels", "full"])
def test_fields_beyond_the_plain_problem(fields, inputs, residual):
    check(problem(residual=residual, **fields), Setting(inputs=inputs), VARIANTS)


@pytest.mark.parametrize("inputs", ["gaussian", np.random.default_rng(0).laplace(size=(500, 30))])
def test_half_of_the_rows_of_the_step_are_the_readouts_first(inputs):
    """⌊n_step/2⌋ of them; the others are the step's rows at these places with rows fresh."""
    p = problem(rows="half", n_step=151, n=90)
    setting = Setting(inputs=inputs)
    draw = draw_of(p, setting, n_test=100)
    fresh = draw_of(p.replace(rows="fresh"), setting, n_test=100)
    step, readout = (whole(draw, s) for s in (draw.step_sample(0), draw.readout_sample(p.n)))
    own = whole(fresh, fresh.step_sample(0))
    for found, shared, others in zip(step, readout, own, strict=True):
        assert np.array_equal(found[:75], shared[:75])
        assert np.array_equal(found[75:], others[75:])
    small = list(draw.blocks(draw.step_sample(0).within((64, 151)), 64))
    assert [block.start for block in small] == [64, 75, 128]
    tested = whole(draw, draw.test_sample())[0]
    used = {row.tobytes() for row in np.concatenate([step[0], readout[0]])}
    assert not used.intersection(row.tobytes() for row in tested)


@pytest.mark.parametrize("batches", ["fresh", "same"])
@pytest.mark.parametrize("rows", ["fresh", "half", "same"])
@pytest.mark.parametrize("steps", [{"steps": 3}, {"step_sizes": (4.0, 2.0)}], ids=str)
def test_several_steps(batches, rows, steps):
    fields = {"n_step": None, **(sizes(*steps["step_sizes"]) if "step_sizes" in steps else steps)}
    p = problem(residual="full", batches=batches, rows=rows, **fields)
    check(p, variants=("trained", "initial", "gaussian"))


def test_alignment_after_every_step():
    p, setting = problem(**sizes(4.0, 2.0, 8.0)), Setting(teacher=Teacher(2, lambda k: k.sum(1)))
    found = simulate(p, seeds=[1], n_test=20, setting=setting).dataset
    draw = draw_of(p, setting, seed=1, n_test=20)
    W0, *path = trained_weights(p, draw)
    for step, W in enumerate(path):
        energy = np.sum((W @ draw.directions.T) ** 2) / np.sum(W**2)
        learned = (W - W0).T @ draw.readout
        cosine = np.linalg.norm(draw.directions @ learned) / np.linalg.norm(learned)
        assert float(found.energy[0, step]) == pytest.approx(energy, rel=1e-10)
        assert float(found.cosine[0, step]) == pytest.approx(cosine, rel=1e-10)


def test_one_step_alignment_shared_and_separate():
    p = problem()
    alone = simulate(p, seeds=[1], n_test=20).dataset
    grid = simulate(p.vary(step_size=[1.0, 2.5, 4.0]), seeds=[1], n_test=20).dataset
    shared = grid.sel(step_size=2.5)
    np.testing.assert_allclose(alone.cosine, shared.cosine, rtol=1e-10)
    np.testing.assert_allclose(alone.energy, shared.energy, rtol=1e-10)


@pytest.mark.parametrize(
    "axes",
    [
        {"step_size": [0.0, 1.0, 2.0, 5.0], "ridge": [0.001, 0.1]},
        {"noise_std": [0.0, 0.2, 0.5], "step_size": [0.0, 1.0, 2.0]},
        {"n": [30, 45, 50, 64, 100, 131], "ridge": [0.01, 0.1]},
        {"n": [40, 70], "n_step": [None, 33], "step_exponent": [0.2, 0.6]},
        {"activation": ["tanh", "relu"], "target": ["H2", "tanh"], "centre": [False, True]},
        {"readout": ["gaussian", [(1.0, 1.0)]], "residual": ["labels"], "width": [20, 90]},
        {"d": [10, 40]},
        {"initial": ["sphere", "gaussian"], "step_size": [1.0, 2.0], "ridge": [0.01, 0.1]},
    ],
    ids=lambda axes: "-".join(axes),
)
def test_grids_equal_single_points(axes):
    """Sharing changes nothing: each grid point is the dense answer for its own problem."""
    base = problem(centre=True)
    grid = base.vary(**axes)
    variants = ("trained", "spiked:2", "gaussian")
    values = simulate(grid, seeds=[5], n_test=N_TEST, variants=variants).values
    for index, p in enumerate(grid):
        draw = draw_of(p, seed=5, n_test=N_TEST)
        for v, variant in enumerate(variants):
            expected = dense(p, draw, variant)
            for name in QUANTITIES:
                got = values[name].reshape(len(variants), -1)[v, index]
                assert got == pytest.approx(getattr(expected, name), rel=1e-10, abs=1e-13)
