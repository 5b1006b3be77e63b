"""The largest direction of the inputs, conditioned on (section 44)."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import Prediction, Problem, predict
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact import columns, inputs, visible
from featurestep.theory.exact.inputs import direction_shares, input_classes, sees_direction
from featurestep.theory.exact.step import ProblemRow, build_step

BASE = Problem(
    activation="sin(z+0.6)",
    target="H1 + H2/sqrt(2)",
    n=800,
    d=300,
    width=600,
    n_step=600,
    step_size=0.5 * 600**0.5,
    ridge=0.03,
    noise_std=0.2,
    readout="constant",
    covariance="power(0.9)",
)


@pytest.fixture(scope="module")
def predicted() -> Prediction:
    return predict(BASE)


def test_which_problems_have_such_a_direction():
    share = direction_shares(BASE, spiked_weights(BASE))
    assert share[0] > 0.1 > share[1]
    assert sees_direction(BASE)
    others = [
        {"covariance": "power(0.2)"},  # a small share
        {"covariance": [(10.0, 0.02), (40 / 49, 0.98)]},  # six directions of the same eigenvalue
        {"readout": "gaussian"},
        {"target_direction": 1},  # nothing is left of the target beside it
        {"activation": "z"},
    ]
    assert not any(sees_direction(BASE.replace(**each)) for each in others)
    assert sees_direction(BASE.replace(readout="gaussian", step_size=0.0))


def test_the_loss_grows_with_the_ridge_by_the_square_of_the_readout(predicted):
    """dL/dλ = ‖â‖², through the whole adjoint."""
    step = 1e-4
    up, down = (predict(BASE.replace(ridge=BASE.ridge * (1 + e))) for e in (step, -step))
    slope = (up.train_loss - down.train_loss) / (2 * step * BASE.ridge)
    assert slope == pytest.approx(predicted.readout_norm**2, rel=1e-6)


@pytest.mark.parametrize("step_size", [0.0, 0.5])
def test_a_small_share_leaves_the_other_theory(step_size, monkeypatch):
    """Conditioning on a direction that carries nearly nothing changes nearly nothing."""
    p = BASE.replace(covariance="power(0.2)", step_size=step_size * BASE.width**0.5)
    assert direction_shares(p, spiked_weights(p))[0] < 0.02
    expected = predict(p)
    monkeypatch.setattr(inputs, "VISIBLE_SHARE", 0.0)
    assert sees_direction(p)
    found = predict(p)
    for name in ("test_error", "train_loss", "train_mse"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.005)


def test_errors_by_kappa_average_to_the_test_error(predicted):
    k = np.linspace(-7.0, 7.0, 281)
    w = np.exp(-0.5 * k**2)
    error = predicted.network.error(k)
    assert w @ error / w.sum() == pytest.approx(predicted.test_error, rel=1e-5)


def test_sharp_functions_of_the_direction_are_resolved(monkeypatch):
    """With a shift of 15 along it, of which nodes of x itself would miss what lies near 0."""
    p = Problem(
        activation="gelu",
        centre=True,
        target="H1",
        n=800,
        d=800,
        width=1200,
        n_step=800,
        step_size=0.25 * 1200**0.5,
        ridge=0.01,
        noise_std=0.3,
        readout="constant",
        covariance=[(139.0, 1 / 800), (661 / 799, 799 / 800)],
        target_exponent=0.5,
    )
    expected = predict(p)
    assert expected.groups.shift[0] > 10.0
    for name in ("PLACES", "MORE_PLACES"):
        monkeypatch.setattr(visible, name, 9)
    found = predict(p)
    for name in ("test_error", "train_loss", "train_mse"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-4)


def test_numbers_of_nodes_do_not_matter(monkeypatch, predicted):
    for name, value in (("GROUPS", 9), ("PLACES", 17), ("_STEP_PLACES", 13), ("_OVERLAPS", 25)):
        monkeypatch.setattr(visible, name, value)
    assert predict(BASE).test_error == pytest.approx(predicted.test_error, rel=5e-3)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sin(3*z) + z"])
def test_averages_between_places_are_interpolated(activation):
    """By polynomials through 12 of them; where places are few they are computed themselves."""
    rng, sigma = np.random.default_rng(0), BASE.replace(activation=activation).sigma
    place = rng.uniform(-6.0, 6.0, size=(2, 1000, 3)) * np.array([0.3, 1.0, 2.0])
    for norm in (rng.uniform(0.3, 2.0, (2, 1, 3)), np.repeat([[[0.5, 1.0, 2.0]]], 1000, axis=1)):
        expected = sigma.averages(norm, place, 2)
        found = columns.averages_along(sigma, norm, place, 2)
        assert np.any(found != expected)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)
    few = place[:, :40]
    found = columns.averages_along(sigma, norm[:, :1], few, 2)
    assert np.all(found == sigma.averages(norm[:, :1], few, 2))


def test_weights_of_networks_along_the_direction():
    """Moments of L by groups, and norms and shifts elsewhere, against drawn weights."""
    p, rng, draws = BASE.replace(n_step=2000, target="tanh"), np.random.default_rng(7), 24
    values, _, _ = input_classes(p)
    s = np.arange(1.0, p.d + 1.0) ** -0.9
    s /= s.mean()
    assert values[0] == pytest.approx(s[0])
    theta = np.sqrt(s / s.sum())  # whitened, of mass ∝ the eigenvalue
    e = p.step_size / p.width**0.5
    step = build_step([ProblemRow(p)], (np.ones(1), np.ones(1)), 14, higher=True)
    share = step.neurons[0] / step.neurons[0].sum()
    loading = step.visible.loading[0]
    found = []
    for _ in range(draws):
        W = rng.standard_normal((600, p.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        X = rng.standard_normal((p.n_step, p.d))
        t = X @ theta
        r = np.tanh(t) + p.noise_std * rng.standard_normal(p.n_step)
        X = X * np.sqrt(s)
        W = W + e * (np.cos(X @ W.T + 0.6) * r[:, None]).T @ X / p.n_step
        W = W * np.sqrt(s)
        first = W[:, 0]
        whole = (W**2).sum(axis=1)
        found.append([first.mean(), first.var(), whole.mean()])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / draws**0.5
    total = step.norm[0] ** 2 + step.shift[0] ** 2 + step.visible.aside[0] ** 2 + loading**2
    centre = share @ loading
    expected = [centre, share @ loading**2 - centre**2, share @ total]
    assert np.all(error < 0.03 * mean)
    assert np.all(np.abs(np.array(expected) - mean) < 3.0 * error), (expected, mean, error)
