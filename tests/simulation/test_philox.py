"""Random numbers by counter: the published generator, and the same laws as the host's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from featurestep import InvalidProblem, Problem, Setting, simulate
from featurestep.core.results import QUANTITIES
from featurestep.simulation import STREAMS, Draw, Streams, make_resources
from featurestep.simulation.setting import NORMAL, RowLaw
from featurestep.simulation.streams import DeviceSource

torch = pytest.importorskip("torch")
philox = pytest.importorskip("featurestep.simulation.philox")

PROBLEM = Problem(n=300, d=40, width=50, ridge=0.01, noise_std=0.2, step_size=2.0)
VARIANTS = ("trained", "initial", "spiked:2", "gaussian", "srf")
DEVICES = ["torch", "cuda"] if torch.cuda.is_available() else ["torch"]


def column(*values):
    return torch.tensor(values, dtype=torch.int64)


def test_words_are_those_of_the_published_vector():
    """Counter 0, key 0, from the authors' own list of known answers."""
    zero = column(0)
    found = [int(word) for word in philox.words((zero, zero), (zero, zero))]
    assert found == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def rows(name="data", part=0, start=0, shape=(500, 401), law=NORMAL, *, seed=3, device="torch"):
    resources = make_resources(dtype="float64", device=device)
    source = DeviceSource([Streams(seed)], resources.backend)
    return source.rows(name, part, start, shape, law, reuse=False).cpu().numpy()


@pytest.mark.parametrize("device", DEVICES)
def test_rows_do_not_depend_on_the_blocks_they_come_in(device):
    whole = rows(device=device)
    pieces = [
        rows(start=a, shape=(b - a, 401), device=device)
        for a, b in ((0, 7), (7, 64), (64, 311), (311, 500))
    ]
    assert np.array_equal(whole, np.concatenate(pieces))
    np.testing.assert_allclose(whole, rows(), rtol=0, atol=1e-14)


def test_streams_parts_and_seeds_are_independent():
    kinds = [rows(name, part, shape=(60, 50)) for name in STREAMS for part in range(3)]
    kinds += [rows(seed=seed, shape=(60, 50)) for seed in (4, 5)]
    table = np.corrcoef([kind.ravel() for kind in kinds])
    off = table[np.triu_indices(len(kinds), 1)]
    assert np.abs(off).max() < 5 / np.sqrt(3000)
    assert abs(np.mean(off**2) * 3000 - 1) < 5 * np.sqrt(2 / len(off))


def test_normals_pass_the_tests_of_normality():
    Z = rows(shape=(1000, 400)).ravel()
    assert stats.kstest(Z, "norm").pvalue > 1e-3
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs(np.mean(Z**power) - moment) < 4.5 * np.sqrt(spread / Z.size), power
    X = rows(shape=(1000, 400))
    pairs = {
        "rows": X[1:] * X[:-1],
        "columns": X[:, 1:] * X[:, :-1],
        "the two of a pair": X[:, :200] * X[:, 200:],
        "squares of a pair": (X[:, :200] ** 2 - 1) * (X[:, 200:] ** 2 - 1) / 2,
    }
    for name, products in pairs.items():
        assert abs(products.mean()) < 4.5 / np.sqrt(products.size), name


@pytest.mark.parametrize(
    ("law", "cdf"),
    [
        (RowLaw("uniform"), stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf),
        (RowLaw("student_t", 5.0), lambda x: stats.t(5).cdf(x * np.sqrt(5 / 3))),
    ],
    ids=["uniform", "student_t"],
)
def test_other_laws(law, cdf):
    X = rows(shape=(400, 300), law=law)
    assert stats.kstest(X.ravel(), cdf).pvalue > 1e-3
    assert abs(np.mean(X[:, 1:] * X[:, :-1])) < 4.5 / np.sqrt(X.size)


@pytest.mark.parametrize("inputs", ["gaussian", "rademacher", "uniform", "student_t(9)", "sphere"])
def test_inputs_have_mean_zero_and_variance_one(inputs):
    resources = make_resources(dtype="float64", device="torch", drawn="device")
    draw = Draw(PROBLEM, Setting(inputs=inputs), resources.source([Streams(0)]), 100)
    X = np.concatenate([b.X.numpy() for b in draw.blocks(draw.readout_sample(8192), 1024)])
    assert abs(X.mean()) < 5 / np.sqrt(X.size)
    assert abs((X**2).mean() - 1) < 5 * np.sqrt(5 / X.size)
    if inputs == "sphere":
        np.testing.assert_allclose((X**2).sum(axis=1), X.shape[1], rtol=1e-12)


def test_corrupted_fraction():
    resources = make_resources(dtype="float64", device="torch", drawn="device")
    labels = []
    for corrupted in (0.0, 0.25):
        source = resources.source([Streams(0)])
        draw = Draw(PROBLEM, Setting(corrupted=corrupted), source, 100)
        labels.append(next(iter(draw.blocks(draw.readout_sample(8192), 8192))).clean)
    changed = float((labels[0] != labels[1]).double().mean())
    assert abs(changed - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 8192)


def found(**options):
    arguments = {"seeds": 3, "n_test": 500, "variants": VARIANTS, "device": "torch"}
    return simulate(PROBLEM, **{**arguments, "drawn": "device", **options})


def same(left, right, rtol=1e-10):
    for name in QUANTITIES:
        np.testing.assert_allclose(left.values[name], right.values[name], rtol=rtol)


@pytest.mark.parametrize("options", [{"block_rows": 64}, {"seeds": [0, 1, 2]}], ids=str)
def test_blocks_do_not_matter(options):
    same(found(), found(**options))


def test_draws_at_once_are_the_draws_one_by_one():
    """Three seeds are computed together, one alone is not."""
    together = found()
    for index in range(3):
        alone = found(seeds=[index])
        for name in QUANTITIES:
            left, right = together.values[name][..., [index]], alone.values[name]
            np.testing.assert_allclose(left, right, rtol=1e-10)


def test_device_and_host_draw_from_the_same_laws():
    options = {"seeds": 40, "variants": ("trained",)}
    host, device = found(**options, drawn="host"), found(**options)
    assert (host.record["drawn"], device.record["drawn"]) == ("host", "device")
    for name in QUANTITIES:
        a, b = host.values[name].ravel(), device.values[name].ravel()
        assert abs(a.mean() - b.mean()) < 4.5 * np.sqrt((a.var() + b.var()) / 39)
        assert not np.isclose(a, b).any()


def test_refusals():
    with pytest.raises(InvalidProblem, match="drawn must be host or device; got 'gpu'"):
        found(drawn="gpu")
    with pytest.raises(InvalidProblem, match="drawn must be host where the device is cpu"):
        found(device="cpu")
