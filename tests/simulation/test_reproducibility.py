"""One seed is one experiment: whatever the blocks, the memory, the threads or the grid."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from featurestep import Problem, Setting, estimate, simulate
from featurestep.core.results import QUANTITIES
from featurestep.simulation import STREAMS, Streams
from featurestep.simulation.streams import CHUNK

from .dense import draw_of

PROBLEM = Problem(n=300, d=40, width=50, ridge=0.01, noise_std=0.2, step_size=2.0)
VARIANTS = ("trained", "initial", "spiked:2", "gaussian", "srf")


def values(problem=PROBLEM, **options):
    return simulate(problem, **{"seeds": 2, "n_test": 500, "variants": VARIANTS, **options}).values


def same(left, right, rtol=1e-10):
    for name in QUANTITIES:
        np.testing.assert_allclose(left[name], right[name], rtol=rtol)


@pytest.mark.parametrize("rows", [1, 64, 100, 128, 512, 10_000])
def test_block_size_does_not_matter(rows):
    same(values(), values(block_rows=rows))


@pytest.mark.parametrize("inputs", ["rademacher", "uniform", "student_t(5)", "sphere"])
def test_block_size_does_not_matter_for_other_inputs(inputs):
    setting = Setting(inputs=inputs, corrupted=0.2)
    same(values(setting=setting), values(setting=setting, block_rows=64))


def test_tight_memory_changes_passes_but_not_numbers():
    grid = PROBLEM.vary(step_size=[1.0, 2.0, 3.0, 4.0], ridge=[0.01, 0.1])
    free = estimate(grid, n_test=500, variants=VARIANTS)
    tight = free.memory - 8 * 50 * 50 * 6
    assert estimate(grid, n_test=500, variants=VARIANTS, max_memory=tight).memory <= tight
    same(values(grid), values(grid, max_memory=tight))


def test_held_and_streamed_samples_agree():
    grid = PROBLEM.vary(step_size=list(np.linspace(1, 5, 40)))  # 40 Gram matrices: held
    same(values(grid, variants=("trained",)), values(grid, variants=("trained",), max_memory=27e6))


def test_many_ridges_by_eigenvectors_agree_with_few_by_cholesky():
    ridges = list(np.geomspace(1e-3, 1, 31))
    many = values(PROBLEM.vary(ridge=ridges))
    few = values(PROBLEM.vary(ridge=ridges[::10]))
    same({name: many[name][:, ::10] for name in QUANTITIES}, few)


def test_seeds_differ_and_repeat():
    first, again, other = values(seeds=[4]), values(seeds=[4]), values(seeds=[5])
    same(first, again, rtol=1e-13)
    assert not np.isclose(first["test_error"], other["test_error"]).any()


def test_grid_points_see_the_same_draw():
    grid = values(PROBLEM.vary(ridge=[0.01, 0.1]))
    same({name: grid[name][:, 0] for name in QUANTITIES}, values())


@pytest.mark.parametrize("name", ["data", "initialisation", "readout", "noise", "test", "teacher"])
def test_each_stream_varies_alone(name):
    """Pinning a stream to another seed changes the drawn objects of that stream and no others."""
    base, moved = draw_of(PROBLEM), draw_of(PROBLEM, streams={name: 99})
    for stream, look in LOOKS.items():
        equal = np.array_equal(look(base), look(moved))
        assert equal == (stream != name), (stream, name)
    assert not np.array_equal(
        values(seeds=1)["test_error"], values(seeds=1, streams={name: 99})["test_error"]
    )


def first_block(draw, sample):
    return next(iter(draw.blocks(sample, 64)))


LOOKS = {
    "data": lambda draw: first_block(draw, draw.readout_sample(64)).X.copy(),
    "noise": lambda draw: first_block(draw, draw.readout_sample(64)).noise,
    "test": lambda draw: first_block(draw, draw.test_sample()).X.copy(),
    "initialisation": lambda draw: draw.initial_weights(),
    "readout": lambda draw: draw.readout,
    "teacher": lambda draw: draw.directions,
}


def test_samples_are_nested():
    fill = lambda g, out: g.standard_normal(out=out)  # noqa: E731
    long, short = np.empty((3 * CHUNK, 4)), np.empty((CHUNK + 7, 4))
    Streams(1).rows("data", 0, 0, long, fill)
    Streams(1).rows("data", 0, 0, short, fill)
    assert np.array_equal(long[: len(short)], short)


def test_first_layer_on_the_sphere_is_as_it_was():
    """Numbers of the version that knew no other first layer."""
    W0 = draw_of(PROBLEM).initial_weights()
    pinned = [-0.13153077886146386, -0.023689682128230468, -0.29053525052095197]
    np.testing.assert_allclose(W0[[0, 7, 49], [0, 3, 39]], pinned, rtol=1e-13)
    errors = [
        *(0.09953398679536565, 0.10037975327816945, 0.09996906304433267),
        *(0.10775291597351029, 0.1001643528511946),
    ]
    np.testing.assert_allclose(values(seeds=1)["test_error"].ravel(), errors, rtol=1e-10)


def test_first_layers_are_the_same_normals():
    """Either is the other up to the norms of its rows, and no other stream is touched."""
    sphere, gaussian = draw_of(PROBLEM), draw_of(PROBLEM.replace(initial="gaussian"))
    W0 = gaussian.initial_weights()
    unit = W0 / np.linalg.norm(W0, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, sphere.initial_weights(), rtol=1e-13)
    for stream, look in LOOKS.items():
        assert np.array_equal(look(sphere), look(gaussian)) == (stream != "initialisation")


def test_norms_of_the_first_layer():
    """‖w‖² is χ²_d/d: mean 1, variance 2/d; on the sphere it is 1."""
    p = PROBLEM.replace(width=8192, initial="gaussian")
    d, N = p.d, p.width
    W0 = draw_of(p).initial_weights()
    squares = (W0**2).sum(axis=1)
    assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / d / N)
    fourth = 12 / d**2 + 48 / d**3  # E(‖w‖² − 1)⁴
    assert abs(((squares - 1) ** 2).mean() - 2 / d) < 5 * np.sqrt((fourth - 4 / d**2) / N)
    assert abs((d * W0**2).mean() - 1) < 5 * np.sqrt(2 / W0.size)
    assert abs(W0.mean()) < 5 / np.sqrt(d * W0.size)
    on_sphere = draw_of(p.replace(initial="sphere")).initial_weights()
    np.testing.assert_allclose((on_sphere**2).sum(axis=1), 1.0, rtol=1e-13)


def test_streams_are_distinct():
    draws = {Streams(0).generator(name, part).random() for name in STREAMS for part in range(3)}
    assert len(draws) == 3 * len(STREAMS)


@pytest.mark.parametrize("inputs", ["gaussian", "rademacher", "uniform", "student_t(9)", "sphere"])
def test_inputs_have_mean_zero_and_variance_one(inputs):
    draw = draw_of(PROBLEM, Setting(inputs=inputs))
    X = np.concatenate([b.X.copy() for b in draw.blocks(draw.readout_sample(8192), 1024)])
    count = X.size
    assert abs(X.mean()) < 5 / np.sqrt(count)
    assert abs((X**2).mean() - 1) < 5 * np.sqrt(5 / count)  # Var x² is at most 5 here
    kinds = {"rademacher": np.abs(X) == 1, "uniform": np.abs(X) <= 3**0.5}
    assert np.all(kinds.get(inputs, True))
    if inputs == "sphere":
        np.testing.assert_allclose((X**2).sum(axis=1), X.shape[1], rtol=1e-12)


def test_spectrum_sets_the_variances():
    draw = draw_of(PROBLEM.replace(covariance=(4.0, 1.0, 0.25, 0.0)))
    X = next(iter(draw.blocks(draw.readout_sample(8192), 8192))).X
    shares = (X**2).mean(axis=0).reshape(4, -1).mean(axis=1)
    np.testing.assert_allclose(shares, np.array([4, 1, 0.25, 0]) / 1.3125, rtol=0.03)


def test_corrupted_fraction():
    clean, dirty = draw_of(PROBLEM), draw_of(PROBLEM, Setting(corrupted=0.25))
    pairs = zip(
        clean.blocks(clean.readout_sample(8192), 8192),
        dirty.blocks(dirty.readout_sample(8192), 8192),
        strict=True,
    )
    changed = np.concatenate([a.clean != b.clean for a, b in pairs])
    assert abs(changed.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 8192)
    a, b = (next(iter(d.blocks(d.test_sample(), 64))).clean for d in (clean, dirty))
    assert np.array_equal(a, b)


def test_single_precision_is_close_and_recorded():
    single = simulate(PROBLEM, seeds=2, n_test=500, variants=VARIANTS, dtype="float32")
    same(values(), single.values, rtol=2e-3)
    assert not np.array_equal(values()["test_error"], single.values["test_error"])
    assert single.record["dtype"] == "float32"
    assert {"numpy", "scipy", "python", "blas", "device", "n_test"} <= set(single.record)


@pytest.mark.parametrize("width", [60, 400])
def test_thread_count_does_not_matter(width):
    grid = PROBLEM.replace(width=width).vary(step_size=[0.5, 2.0], ridge=[0.01, 0.1, 1.0])
    usual = simulate(grid, seeds=2, n_test=300)
    with threadpool_limits(limits=1):
        alone = simulate(grid, seeds=2, n_test=300)
    for name in QUANTITIES:
        np.testing.assert_allclose(usual.values[name], alone.values[name], rtol=1e-10)


def test_no_step_is_a_departure_from_the_theory():
    for exponent in (0.3, 0.7):
        found = simulate(PROBLEM.replace(step_exponent=exponent), seeds=1, n_test=50)
        assert found.notes == ()
