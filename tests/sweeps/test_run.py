"""`sweep`: computes what is missing, once, and returns everything."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.idle_task import Idle
from featurestep import (
    InvalidProblem,
    Problem,
    SingularSystem,
    StoreError,
    baselines,
    limit,
    predict,
    simulate,
    spectrum,
    sweep,
)
from featurestep.sweeps import (
    TASKS,
    Store,
    execute,
    make_plan,
    make_status,
    read_sweep,
    serial,
)

from .test_engines import executed


def test_predictions_are_those_of_predict(base):
    grid = base.vary(ridge=[0.01, 0.1], step_exponent=[0.0, 0.2, 0.4])
    found, expected = sweep(grid, engine="serial"), predict(grid)
    for name in ("test_error", "train_loss", "train_mse", "readout_norm", "alignment"):
        np.testing.assert_array_equal(found[f"predict_{name}"], expected[name])
    assert found.predict_test_error.dims == ("ridge", "step_exponent")
    assert found.predict_test_error.attrs["long_name"].startswith("test error")


def test_the_task_of_the_benchmark_runs(base, monkeypatch):
    monkeypatch.setitem(TASKS, "idle", Idle)
    found = sweep(base.vary(ridge=[0.01, 0.1]), tasks=["idle"], engine="serial")
    assert found.idle_ridge.values.tolist() == [0.01, 0.1]


def test_limits_and_baselines_are_their_own(base):
    tasks = {"limit": {"degree": 2, "norm_growth": True}, "baselines": {}}
    found = sweep(base.vary(ridge=[0.01, 0.1]), tasks=tasks, engine="serial")
    for i, ridge in enumerate([0.01, 0.1]):
        problem = base.replace(ridge=ridge)
        one = limit(problem, degree=2, norm_growth=True)
        assert found.limit_test_error.values[i] == one.test_error
        assert found.limit_powers.values[i] == "; ".join(map(str, one.powers))
        assert found.baselines_untrained.values[i] == baselines(problem).untrained


def test_spectra_are_those_of_spectrum():
    base = Problem(
        activation="relu", centre=True, n=200, d=100, width=150, step_exponent=0.4, ridge=0.1,
        readout="rademacher",
    )  # fmt: skip
    grid = base.vary(step_exponent=[0.0, 0.4])
    found, expected = sweep(grid, tasks=["spectrum"], engine="serial"), spectrum(grid)
    np.testing.assert_array_equal(found.spectrum_edge, expected.edge)
    np.testing.assert_array_equal(found.spectrum_count, expected["count"])
    for rank in range(expected.sizes["spike"]):
        there = expected.location[:, rank]
        np.testing.assert_array_equal(found[f"spectrum_location_{rank + 1}"], there)
        np.testing.assert_array_equal(
            found[f"spectrum_degree_{rank + 1}"], expected.degree[:, rank].where(there.notnull())
        )


def test_simulations_are_those_of_simulate(base):
    grid = base.vary(ridge=[0.01, 0.1], step_size=[0.0, 2.0])
    options = {"seeds": [3, 5], "variants": ["trained", "initial"], "n_test": 200}
    found = sweep(grid, tasks={"simulate": options}, engine="serial")
    expected = simulate(grid, **options).dataset
    for name in ("test_error", "train_loss", "train_mse", "readout_norm"):
        assert found[f"simulate_{name}"].dims == ("variant", "ridge", "step_size", "seed")
        np.testing.assert_allclose(found[f"simulate_{name}"], expected[name], rtol=1e-10)
    cosine = found.simulate_cosine.sel(variant="trained")
    np.testing.assert_allclose(cosine, expected.cosine.isel(step=0), rtol=1e-10)
    assert np.all(np.isnan(found.simulate_cosine.sel(variant="initial")))


def test_first_layers_are_told_apart(base):
    """As an axis, beside step sizes that share a draw, and in a mapping as a file has it."""
    axes = {"initial": ["sphere", "gaussian"], "step_size": [1.0, 2.0]}
    options = {"seeds": 2, "n_test": 50}
    found = sweep(base.vary(**axes), tasks={"simulate": options}, engine="serial")
    expected = simulate(base.vary(**axes), **options).dataset
    np.testing.assert_allclose(found.simulate_test_error, expected.test_error, rtol=1e-10)
    assert found.initial.values.tolist() == axes["initial"]
    problem = {"n": 60, "d": 30, "width": 40, "step_size": 1.0, "ridge": 0.01, "noise_std": 0.1}
    content = {"problem": {**problem, "initial": "gaussian"}, "tasks": {"simulate": options}}
    alone = sweep(content, engine="serial").simulate_test_error
    chosen = found.simulate_test_error.sel(initial="gaussian", step_size=1.0)
    np.testing.assert_allclose(alone, chosen, rtol=1e-10)


def test_several_steps_have_an_alignment_each(base):
    options = {"seeds": 1, "n_test": 100, "setting": {"inputs": "uniform"}}
    problem = base.replace(step_sizes=(4.0, 2.0))
    found = sweep(problem, tasks={"simulate": options}, engine="serial")
    assert {"simulate_cosine_1", "simulate_cosine_2"} <= set(found.data_vars)
    assert found.simulate_status.dims == ("variant", "seed")


def test_several_steps_have_the_variants_of_simulate(base):
    options = {"seeds": 1, "n_test": 50, "variants": ["trained", "gaussian"]}
    problem = base.replace(steps=2)
    found = sweep(problem, tasks={"simulate": options}, engine="serial")
    expected = simulate(problem, **options).dataset
    np.testing.assert_allclose(found.simulate_test_error, expected.test_error, rtol=1e-10)


def test_one_refused_point_leaves_the_others(base):
    found = sweep(base.vary(step_exponent=[0.1, 0.25]), tasks=["limit"], engine="serial")
    ok, refused = found.limit_status.values
    assert ok == "ok"
    assert refused.startswith("refused: degree must be given")
    assert np.isfinite(found.limit_test_error.values).tolist() == [True, False]


def test_a_singular_point_does_not_take_its_draw_along(base, monkeypatch):
    """Units of one draw are computed together; only the culprit is refused."""
    from featurestep.sweeps import tasks as module

    def picky(points, **options):
        if any(p.ridge == 1.0 for p in points):
            raise SingularSystem("singular")
        return simulate(points, **options)

    monkeypatch.setattr(module, "simulate", picky)
    grid = base.vary(ridge=[0.5, 1.0, 2.0])
    found = sweep(grid, tasks={"simulate": {"seeds": 1, "n_test": 50}}, engine="serial")
    assert found.simulate_status.values.ravel().tolist() == ["ok", "refused: singular", "ok"]


def test_running_again_computes_nothing(grid, tmp_path):
    log, store = tmp_path / "log", tmp_path / "s.sqlite"
    for _ in range(2):
        sweep(grid, tasks={"chore": {"log": str(log)}}, store=store, engine="serial")
    assert set(executed(log).values()) == {1}


def test_a_larger_grid_reuses_the_smaller_one(base, tmp_path):
    log, store = tmp_path / "log", tmp_path / "s.sqlite"
    for ridges in ([1.0, 2.0], [0.5, 1.0, 2.0, 3.0]):
        grid = base.vary(ridge=ridges)
        found = sweep(grid, tasks={"chore": {"log": str(log)}}, store=store, engine="serial")
    assert found.chore_double.values.tolist() == [1.0, 2.0, 4.0, 6.0]
    assert set(executed(log).values()) == {1}


def test_more_seeds_and_variants_reuse_what_is_there(base, tmp_path):
    store = tmp_path / "s.sqlite"
    seen = []
    for options in ({"seeds": 1}, {"seeds": 2}, {"seeds": 2, "variants": ["trained", "initial"]}):
        tasks = {"simulate": {**options, "n_test": 50}}
        counted = []
        sweep(base, tasks=tasks, store=store, engine="serial", progress=counted.append)
        seen.append((counted[-1].total, counted[-1].known))
    assert seen == [(1, 0), (2, 1), (4, 2)]


def test_progress_counts_every_unit_and_failure(grid):
    told = []
    options = {"fail": 2.0, "refuse": 9.0}
    sweep(grid, tasks={"chore": options}, engine="serial", progress=told.append)
    assert [p.done for p in told] == [0, 4, 8, 10]
    assert (told[-1].ok, told[-1].refused, told[-1].failed) == (8, 1, 1)


def test_retry_does_what_failed_and_nothing_else(grid, tmp_path):
    log = tmp_path / "log"
    with Store.for_writing(tmp_path / "s.sqlite") as store:
        plan = make_plan(read_sweep(grid, {"chore": {"fail": 2.0, "refuse": 9.0}}))
        execute(plan, store, serial)
        assert make_status(plan, store).count("failed") == 1
        mended = make_plan(read_sweep(grid, {"chore": {"log": str(log)}}))
        execute(mended, store, serial)
        assert not log.exists(), "a plain run leaves failures alone"
        execute(mended, store, serial, retry=True)
        status = make_status(mended, store)
    assert dict(executed(log)) == {2.0: 1}
    assert (status.count("ok"), status.count("refused"), status.executions) == (9, 1, 11)


def test_an_interrupted_sweep_keeps_what_is_done(grid, tmp_path):
    store = tmp_path / "s.sqlite"

    def stop(progress):
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(grid, tasks=["chore"], store=store, engine="serial", progress=stop)
    told = []
    sweep(grid, tasks=["chore"], store=store, engine="serial", progress=told.append)
    assert (told[0].known, told[-1].done) == (4, 10)


def test_a_file_and_its_zipped_and_designed_dimensions(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("""
        engine = "serial"
        [problem]
        step_exponent = 0.3
        noise_std = 0.1
        [grid.zip.size]
        n = [60, 120]
        d = [30, 60]
        width = [40, 80]
        [grid.design]
        kind = "random"
        points = 3
        box = { ridge = { low = 0.001, high = 1.0, scale = "log" } }
        [tasks.predict]
    """)
    found = sweep(path)
    assert found.predict_test_error.dims == ("size", "sample")
    assert found.n.dims == found.width.dims == ("size",)
    assert found.ridge.dims == ("sample",)
    one = Problem(
        n=120, d=60, width=80, step_exponent=0.3, noise_std=0.1, ridge=float(found.ridge[2])
    )
    assert found.predict_test_error.values[1, 2] == predict(one).test_error
    assert (tmp_path / "study.sqlite").exists()


def test_bad_places_for_a_store(grid, tmp_path):
    with pytest.raises(InvalidProblem, match="store must be in a directory that exists"):
        sweep(grid, tasks=["chore"], store=tmp_path / "no" / "s.sqlite")
    with pytest.raises(InvalidProblem, match="store must be a file, not a directory"):
        sweep(grid, tasks=["chore"], store=tmp_path)


def test_bad_input_leaves_no_store(grid, tmp_path):
    for wrong in ({"engine": "gpu"}, {"workers": -1}, {"tasks": ["guess"]}):
        with pytest.raises(InvalidProblem):
            sweep(grid, store=tmp_path / "s.sqlite", **{"tasks": ["chore"], **wrong})
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_breaks_stops_the_sweep_in_one_line(grid, tmp_path, monkeypatch):
    def full(self, report, descriptions):
        raise StoreError("the store is full")

    monkeypatch.setattr(Store, "record", full)
    with pytest.raises(StoreError, match="the store is full"):
        sweep(grid, tasks=["chore"], store=tmp_path / "s.sqlite", workers=2)
    monkeypatch.undo()
    Store.for_writing(tmp_path / "s.sqlite").close()
