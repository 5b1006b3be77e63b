"""Clusters, covariances and chosen directions, and requests that do not fit the machine."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import (
    InsufficientMemory,
    InvalidProblem,
    Problem,
    Setting,
    Teacher,
    feature_gap,
    simulate,
    simulated_spectrum,
)
from featurestep.simulation import Draw, Source, Streams, make_backend, torch_backend
from featurestep.simulation import backend as backends
from featurestep.simulation.setting import corners

P = Problem(n=400, d=12, width=30, step_exponent=0.2, ridge=0.1, noise_std=0.2)
FEW = {"seeds": 2, "n_test": 300}


def inputs(setting: Setting, rows: int = 40_000, block: int = 1024, p: Problem = P) -> np.ndarray:
    draw = Draw(p, setting, Source([Streams(3)], make_backend("cpu", "float64")), 1)
    blocks = draw.blocks(draw.readout_sample(rows), block)
    return np.concatenate([one.X.copy() for one in blocks])


@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_corners_are_a_regular_simplex(clusters):
    centres = corners(clusters, 1.5)
    assert np.allclose(centres.sum(axis=0), 0.0)
    gram = centres @ centres.T
    assert np.allclose(np.diagonal(gram), 1.5**2)
    assert np.allclose(gram[~np.eye(clusters, dtype=bool)], -(1.5**2) / (clusters - 1))


@pytest.mark.parametrize("law", ["mixture(2)", "mixture(3, 4)"])
def test_a_mixture_has_unit_covariance_and_its_clusters(law):
    X = inputs(Setting(inputs=law))
    error = 4 / len(X) ** 0.5
    assert np.abs(X.mean(axis=0)).max() < error
    assert np.abs(np.cov(X.T) - np.eye(P.d)).max() < 2 * error
    fourth = (X**4).mean(axis=0)  # 3 of a normal coordinate, with variance 96
    assert np.abs(fourth[2:] - 3.0).max() < 4 * (96 / len(X)) ** 0.5
    assert fourth[0] < 2.0


def test_clusters_do_not_depend_on_blocks():
    setting = Setting(inputs="mixture(3, 1.5)")
    assert np.array_equal(inputs(setting, 1000, 64), inputs(setting, 1000, 512))


def test_a_covariance_is_that_of_the_inputs():
    root = np.random.default_rng(1).standard_normal((P.d, P.d)) / P.d**0.5
    S = root @ root.T + 0.1 * np.eye(P.d)
    p = P.replace(covariance=S)
    X = inputs(Setting(), p=p)
    S = S * P.d / np.trace(S)
    assert p.input_covariance.factor == pytest.approx(np.trace(root @ root.T) / P.d + 0.1)
    errors = np.sqrt((np.outer(np.diag(S), np.diag(S)) + S**2) / len(X))
    assert np.all(np.abs(X.T @ X / len(X) - S) < 5 * errors)


def test_a_diagonal_covariance_is_a_spectrum():
    spectrum = (4.0, 1.0, 0.25)
    diagonal = np.diag(np.repeat(spectrum, P.d // 3))
    one, other = (
        inputs(Setting(), 500, p=P.replace(covariance=given)) for given in (spectrum, diagonal)
    )
    assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_the_chosen_direction_is_an_eigenvector():
    S = np.diag(np.arange(1.0, P.d + 1))
    source = Source([Streams(0)], make_backend("cpu", "float64"))
    draw = Draw(P.replace(covariance=S, target_direction=2), Setting(), source, 1)
    assert np.allclose(np.abs(draw.directions), np.eye(P.d)[P.d - 2])
    shaped = P.replace(covariance=(1.0, 9.0), target_direction=1)
    plain = Draw(shaped, Setting(), source, 1)
    assert np.argmax(np.abs(plain.directions)) == P.d // 2
    beta = np.arange(1.0, P.d + 1)
    given = Draw(P.replace(covariance=S, target_direction=beta), Setting(), source, 1)
    np.testing.assert_allclose(given.unit_directions[0], beta / np.linalg.norm(beta), rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "mass"),
    [
        ({"covariance": [(6.0, 1 / 12), (2.0, 11 / 12)]}, (6 / 28, 22 / 28)),
        ({"covariance": (6.0, 2.0), "target_exponent": 1.0}, (0.9, 0.1)),
        ({"covariance": (6.0, 2.0), "target_mass": (0.2, 0.8)}, (0.2, 0.8)),
    ],
)
def test_the_target_has_its_mass_in_every_class_and_variance_one(fields, mass):
    p = P.replace(**fields)
    cov = p.input_covariance
    assert p.target_law.class_mass(cov) == pytest.approx(mass)
    for seed in range(3):
        draw = Draw(p, Setting(), Source([Streams(seed)], make_backend("cpu", "float64")), 1)
        ends = np.cumsum(cov.counts)[:-1]
        found = [part @ part for part in np.split(draw.directions[0], ends)]
        assert found == pytest.approx(mass)
        assert draw.raw_directions[0] ** 2 @ cov.variances == pytest.approx(1.0)


def test_covariances_are_equal_by_value():
    S = np.eye(P.d)
    assert P.replace(covariance=S) == P.replace(covariance=S.copy())
    assert hash(P.replace(covariance=S)) == hash(P.replace(covariance=S.copy()))
    assert P.replace(covariance=S) != P.replace(covariance=2 * S)
    assert Setting(inputs=S).given == {"inputs": f"array {(P.d, P.d)}"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": "mixture(1, 2)"}, "inputs mixture needs"),
        ({"inputs": "mixture(-1)"}, "inputs mixture needs"),
        ({"inputs": "mixture(x)"}, "inputs must be one of"),
    ],
)
def test_bad_shapes_are_one_line(options, message):
    with pytest.raises(InvalidProblem, match=message) as caught:
        Setting(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Setting(inputs="mixture(13, 1)"), "at most d = 12 clusters"),
        (Setting(teacher=Teacher(2, lambda z: z[:, 0])), "target of several directions"),
    ],
)
def test_shapes_that_do_not_fit_the_problem_are_refused(setting, message):
    with pytest.raises(InvalidProblem, match=message):
        simulate(P.replace(target_direction=1), **FEW, setting=setting)


WITH = {"covariance": (2.0, 1.0)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"covariance": np.array([[1.0, 2.0], [0.0, 1.0]])}, "covariance must be 'power"),
        ({"covariance": np.ones((2, 3))}, "covariance must be 'power"),
        ({"covariance": np.diag([1.0] * 11 + [-1.0])}, "covariance must have eigenvalues >= 0"),
        ({"covariance": np.eye(3)}, "covariance must be 12 × 12"),
        ({"covariance": "wide"}, "covariance must be 'power"),
        ({"covariance": "power(9)"}, "covariance must have an exponent in"),
        ({"covariance": (0.0,)}, "covariance must have eigenvalues >= 0, not all 0"),
        ({"covariance": (-1.0, 1.0)}, "covariance must have eigenvalues >= 0, not all 0"),
        ({"covariance": (float("nan"),)}, "covariance must have eigenvalues >= 0, not all 0"),
        ({"covariance": ()}, "covariance must be 'power"),
        ({"covariance": 1.0}, "covariance must be 'power"),
        ({"covariance": (1.0,) * 13}, "covariance must give every class at least one of d = 12"),
        ({"covariance": [(1.0, 0.5), (2.0, 0.4)]}, "covariance must have shares > 0 of sum 1"),
        ({"covariance": [(1.0, 0.01), (2.0, 0.99)]}, "at least one of d = 12 coordinates"),
        ({"target_exponent": 1.0}, "target_exponent needs a covariance"),
        ({"target_mass": (1.0,)}, "target_mass needs a covariance"),
        ({**WITH, "target_mass": (1.0,)}, "target_mass must have one number for each of 2"),
        ({**WITH, "target_mass": (0.9, 0.2)}, "target_mass must be a list of numbers >= 0"),
        ({**WITH, "target_mass": (0.5, 0.5), "target_exponent": 1.0}, "given together"),
        ({**WITH, "target_direction": 0}, "target_direction must be a whole number"),
        ({**WITH, "target_direction": 13}, "target_direction must be <= d = 12"),
        ({**WITH, "target_direction": (1.0, 0.0)}, "target_direction must have d = 12 numbers"),
        ({"covariance": (1.0, 0.0), "target_direction": 12}, "all eigenvalues are 0"),
        ({"covariance": (1.0, 0.0), "target_mass": (0.5, 0.5)}, "0 where the eigenvalue is 0"),
        ({"covariance": (1.0, 0.0), "target_exponent": -2.0}, "must be > -1 with an eigenvalue 0"),
    ],
    ids=lambda value: str(value)[:40].replace("\n", ""),
)
def test_bad_covariances_and_targets_are_one_line(fields, message):
    with pytest.raises(InvalidProblem) as caught:
        P.replace(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_teacher_that_fails_is_one_line():
    wrong = Teacher(2, lambda z: z[:, 5])
    with pytest.raises(InvalidProblem, match=r"^teacher must map an array .* \(IndexError\)"):
        P.replace(target=wrong)
    with pytest.raises(InvalidProblem, match=r"^teacher must map an array .* \(IndexError\)"):
        simulate(P, **FEW, setting=Setting(teacher=wrong))


@pytest.mark.parametrize(
    "verb",
    [
        lambda p: simulate(p, **FEW),
        lambda p: simulated_spectrum(p, seeds=1, top=2),
        lambda p: feature_gap(p, seeds=1),
    ],
)
def test_what_does_not_fit_the_machine_is_refused_with_the_numbers(verb, monkeypatch):
    monkeypatch.setattr(backends, "usable_memory", lambda: 10_000)
    with pytest.raises(InsufficientMemory, match=r"needs at least .* usable memory is 0 MiB"):
        verb(P)
    monkeypatch.setattr(backends, "usable_memory", lambda: None)
    verb(P)


def test_the_machine_tells_its_memory():
    found = backends.usable_memory()
    assert found is None or 0 < found < 1 << 50


def test_a_device_without_torch_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(torch_backend, "import_module", missing)
    with pytest.raises(InvalidProblem, match=r"^device needs torch: pip install .*\[gpu\]'"):
        simulate(P, **FEW, device="cuda")
