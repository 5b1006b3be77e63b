"""Two workers give what one process gives; progress, failures and dead workers."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from featurestep import (
    FeaturestepError,
    InvalidProblem,
    Problem,
    Setting,
    SingularSystem,
    compare,
    estimate,
    simulate,
    simulated_spectrum,
)
from featurestep.simulation import ClusterError, row_ranges

distributed = pytest.importorskip("distributed")

PROBLEM = Problem(n=700, d=40, width=50, ridge=0.01, noise_std=0.2, step_size=2.0)
VARIANTS = ("trained", "initial", "spiked:2", "gaussian", "srf")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Two single-threaded processes."""
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(folder),
            memory_limit="1GB",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def same(left, right, rtol=1e-10):
    for name in right.values:
        np.testing.assert_allclose(left.values[name], right.values[name], rtol=rtol, atol=1e-14)


GRID = PROBLEM.vary(step_size=[0.0, 1.0, 2.0], ridge=[0.01, 0.1], noise_std=[0.1, 0.2])
TIGHT = estimate(GRID, n_test=300, variants=VARIANTS).memory - 6 * 8 * PROBLEM.width**2


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (PROBLEM, {}),
        (GRID, {}),
        (GRID, {"max_memory": TIGHT}),  # several passes
        (PROBLEM.replace(residual="full"), {"setting": Setting(inputs="sphere", corrupted=0.2)}),
        (PROBLEM.replace(step_size=0.0), {}),
    ],
    ids=["point", "grid", "passes", "setting", "no step"],
)
def test_rows_of_one_draw_over_workers(client, problem, options):
    options = {"seeds": 1, "n_test": 300, "variants": VARIANTS, **options}
    calls = []
    found = simulate(
        problem, **options, scheduler=client, progress=lambda *call: calls.append(call)
    )
    same(found, simulate(problem, **options))
    assert found.record["shared"] == "rows"
    promised = estimate(problem, **{k: v for k, v in options.items() if k != "scheduler"}).flops
    assert calls[-1] == (promised, promised)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_draws_over_workers_by_address(client):
    address = client.scheduler.address
    found = simulate(GRID, seeds=4, n_test=300, variants=VARIANTS, scheduler=address)
    same(found, simulate(GRID, seeds=4, n_test=300, variants=VARIANTS))
    assert found.record["shared"] == "draws"
    assert found.record["scheduler"] == address
    assert distributed.default_client() is client, "others' computations stay where they were"


def test_what_is_no_sum_over_rows_runs_whole(client):
    """n ≤ width has no normal equations, and several steps no single gradient."""
    for problem in (PROBLEM.replace(n=40), PROBLEM.replace(steps=2)):
        options = {"seeds": 1, "n_test": 100}
        found = simulate(problem, **options, scheduler=client)
        assert found.record["shared"] == "draws"
        same(found, simulate(problem, **options))


def test_each_worker_computes_on_its_device(client):
    pytest.importorskip("torch")
    options = {"seeds": 1, "n_test": 200, "device": "torch", "drawn": "device"}
    found = simulate(PROBLEM, **options, scheduler=client)
    assert found.record["device"] == "torch"
    same(found, simulate(PROBLEM, **options))


def test_compare(client):
    found = compare(PROBLEM, seeds=2, n_test=200, scheduler=client)
    same(found.simulation, simulate(PROBLEM, seeds=2, n_test=200))


@pytest.mark.parametrize("seeds", [1, 3])
def test_spectrum(client, seeds):
    options = {"seeds": seeds, "variants": ("trained", "weights", "initial"), "top": 4}
    found = simulated_spectrum(PROBLEM, **options, scheduler=client)
    plain = simulated_spectrum(PROBLEM, **options)
    for name in found.found:
        for one, other in zip(found.found[name], plain.found[name], strict=True):
            np.testing.assert_allclose(one.top, other.top, rtol=1e-10)
            np.testing.assert_allclose(one.left, other.left, rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(one.right, other.right, rtol=1e-7, atol=1e-10)
    assert found.record["shared"] == ("rows" if seeds == 1 else "draws")


def test_a_refusal_on_a_worker_is_the_same_refusal(client):
    hopeless = PROBLEM.replace(activation="identity", ridge=1e-15)
    with pytest.raises(SingularSystem):
        simulate(hopeless, seeds=1, n_test=50, scheduler=client)


def test_an_interrupted_run_leaves_nothing_behind(client):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(PROBLEM, seeds=1, n_test=50, scheduler=client, progress=stop)
    for _ in range(100):
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return
        time.sleep(0.05)
    pytest.fail("the scheduler still has tasks")


def test_a_killed_worker_is_survived(client):
    options = {"seeds": 1, "n_test": 200}
    problem = PROBLEM.replace(n=20_000)
    killed = []

    def kill(done, total):
        if not killed:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    found = simulate(problem, **options, scheduler=client, progress=kill)
    assert killed
    same(found, simulate(problem, **options))
    client.wait_for_workers(2, timeout=60)  # Dask starts another: the next test counts on two


def test_refusals():
    with pytest.raises(InvalidProblem, match="scheduler must be an address, a file or a Client"):
        simulate(PROBLEM, scheduler=3)
    with pytest.raises(InvalidProblem, match="scheduler must be a file that exists"):
        simulate(PROBLEM, scheduler="nowhere.json")
    with pytest.raises(ClusterError, match="no Dask scheduler at"):
        simulate(PROBLEM, scheduler="nonsense://here")
    assert issubclass(ClusterError, FeaturestepError)


def test_ranges_cover_every_row_once():
    for count, parts in ((1, 3), (64, 2), (1000, 7), (200_000, 8)):
        found = row_ranges(count, parts, 64)
        assert [a for a, _ in found] == [0, *(b for _, b in found[:-1])]
        assert found[-1][1] == count
        assert all(a % 64 == 0 for a, _ in found)
        assert len(found) <= parts


@pytest.mark.slow
def test_a_long_sample_on_two_workers(client):
    """The single-process answer, with one worker killed, and memory under the workers' limit."""
    problem = Problem(
        n=200_000, n_step=20_000, d=300, width=2000, ridge=0.01, noise_std=0.1, step_size=3.0
    )
    options = {"seeds": 1, "n_test": 4000}
    peaks: dict[int, int] = {}
    watching, pids = threading.Event(), set(_workers(client))

    def watch():
        while not watching.wait(0.2):
            for pid in list(pids):
                peaks[pid] = max(peaks.get(pid, 0), _resident(pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    killed = []

    def kill(done, total):
        if not killed and done > 0.4 * total:
            killed.append(_workers(client)[0])
            os.kill(killed[0], signal.SIGKILL)
        elif killed:
            pids.update(_workers(client))

    found = simulate(problem, **options, scheduler=client, progress=kill)
    watching.set()
    watcher.join()
    assert killed
    same(found, simulate(problem, **options))
    assert found.record["shared"] == "rows"
    assert max(peaks.values()) < 1e9


def _workers(client):
    return [int(pid) for pid in client.run(os.getpid).values()]


def _resident(pid):
    try:
        with open(f"/proc/{pid}/status") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0
