"""What a fitted estimator says of itself, against what was planted and what the theory says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from featurestep import InvalidProblem, predict
from featurestep.estimators import OneStepClassifier, OneStepRegressor
from featurestep.estimators.directions import degree_shares, orthonormal_polynomials, stability
from featurestep.estimators.expectation import (
    alignment,
    departures_of_inputs,
    estimated_covariance,
    estimated_target,
    projected_target,
)
from featurestep.functions.targets import resolve_target
from featurestep.plots import render

from .planted import PROBLEM, planted

PLAIN = {"standardise": False, "fit_intercept": False, "split": "half", "width": PROBLEM.width}


@pytest.fixture(scope="module")
def models():
    """Four draws at a given step and ridge, with their directions."""
    found = []
    for seed in range(4):
        X, y, direction = planted(seed, 2000)
        model = OneStepRegressor(step_size=12.0, ridge=0.05, random_state=seed, **PLAIN)
        found.append((model.fit(X, y), direction))
    return found


def test_the_cosine_is_estimated_from_the_data_alone():
    """From the rows of the step, without the direction, over twenty-four draws."""
    estimated = []
    for seed in range(24):
        X, y, _ = planted(seed, 1000)
        estimated.append(stability(X, y[:, None], seed).cosine[0])
    error = np.std(estimated, ddof=1) / len(estimated) ** 0.5
    assert abs(np.mean(estimated) - predict(PROBLEM).alignment) < 3 * error
    assert error < 0.01


def test_noise_alone_has_no_stable_direction():
    rng = np.random.default_rng(0)
    found = stability(rng.standard_normal((500, 100)), rng.standard_normal((500, 1)), 0)
    assert abs(found.mean[0]) < 4 * found.spread[0]
    assert found.cosine[0] < 0.6


def test_the_learned_curve_is_the_predicted_one(models):
    """M(κ) of eq. 12 at quantiles of κ, within the spread over draws."""
    curves = [model.learned_curve_[0] for model, _ in models]
    middle = slice(10, 91, 20)
    values = np.array([np.interp(curves[0].kappa, c.kappa, c.values)[middle] for c in curves])
    error = values.std(axis=0, ddof=1) / 2.0
    expected = predict(PROBLEM).learned(curves[0].kappa[middle])
    assert np.all(np.abs(values.mean(axis=0) - expected) < 4 * error + 0.01)
    assert curves[0].degrees == (1, 2)


def test_degrees_of_known_curves():
    kappa = np.random.default_rng(0).standard_normal(20_000)
    shares = degree_shares(kappa, 3.0 + kappa + (kappa**2 - 1) / 2**0.5)
    assert shares[1] == pytest.approx(0.5, abs=0.03)
    assert shares[2] == pytest.approx(0.5, abs=0.03)
    assert shares[3] + shares[4] + shares["higher"] < 0.01
    assert degree_shares(kappa, np.ones(kappa.size))[1] == 0.0
    basis = orthonormal_polynomials(kappa)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-10)


def test_one_spike_carries_the_direction(models):
    spikes = models[0][0].spikes_
    assert spikes.count == 1
    assert len(spikes.untrained) == 0
    assert spikes.overlaps[0, 0, 1] > 0.8
    assert spikes.values[0] > spikes.edge > spikes.bulk[1]


@pytest.mark.parametrize(("given", "count"), [({"step_size": 0.0}, 0), ({"step_size": 40.0}, 1)])
def test_the_edge_grows_with_the_norms_that_a_large_step_leaves(given, count):
    """An odd activation has one spike at every step size, however wide its bulk has become."""
    X, y, _ = planted(0, 2000)
    model = OneStepRegressor(width=600, activation="tanh", ridge=0.1, random_state=0, **given)
    spikes = model.fit(X, y).spikes_
    assert spikes.count == count
    assert len(spikes.untrained) == 0


def test_importances_are_those_of_the_columns_that_matter():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 10)) * np.array([1.0, 100.0, *[1.0] * 8])
    y = X[:, 1] / 100.0 + 0.5 * X[:, 4]
    for whiten in (False, True):
        model = OneStepRegressor(width=200, random_state=0, whiten=whiten).fit(X, y)
        shares = model.feature_importances_
        assert shares.sum() == pytest.approx(1.0)
        assert list(np.argsort(shares)[::-1][:2]) == [1, 4]
        assert shares[1] == pytest.approx(0.8, abs=0.05)
        assert shares[4] == pytest.approx(0.2, abs=0.05)


def test_importances_are_slopes():
    """Against differences of predictions, column by column."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 5)) * np.array([1.0, 3.0, 1.0, 0.2, 1.0])
    y = np.tanh(X[:, 0]) + X[:, 1] * 0.2
    model = OneStepRegressor(width=50, random_state=0, activation="tanh", whiten=True).fit(X, y)
    squares = []
    for column in range(5):
        step = np.zeros(5)
        step[column] = 1e-4 * X[:, column].std()
        slope = (model.predict(X + step) - model.predict(X - step)) / 2e-4
        squares.append(np.mean(slope**2))
    np.testing.assert_allclose(model.feature_importances_, squares / np.sum(squares), rtol=1e-3)


def test_the_theory_expects_what_is_measured():
    """No intercept, inputs as the theory has them: expected and held-out error agree."""
    ratios = []
    for seed in range(6):
        X, y, _ = planted(seed, 2000)
        model = OneStepRegressor(step_size=12.0, random_state=seed, **PLAIN).fit(X, y)
        (found,) = model.theory_
        assert found.departures == ()
        assert found.problem.n == found.problem.n_step == 1000
        ratios.append(found.expected / found.measured)
        assert "measured" in str(found)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)
    assert np.std(ratios) < 0.1


def single_index(rng, rows, d):
    """Rows, labels with a noise share of 0.19, the direction."""
    X = rng.standard_normal((rows, d))
    direction = rng.standard_normal(d) / d**0.5
    at = X @ direction / np.linalg.norm(direction)
    return X, 0.7 * at + 0.4 * (at**2 - 1) + 0.19**0.5 * rng.standard_normal(rows)


def test_the_target_and_its_noise_are_estimated_to_a_few_per_cent():
    """1,000 rows, from a gradient's direction on; most is the scatter of the labels' variance."""
    rng = np.random.default_rng(3)
    rows, d, draws = 1000, 60, 30
    shares, coefficients = [], []
    for _ in range(draws):
        X, y = single_index(rng, rows, d)
        X, y = X - X.mean(axis=0), (y - y.mean()) / y.std()
        target, noise_std = estimated_target(X, y, X.T @ y / rows)
        shares.append(noise_std**2)
        coefficients.append(target.coefficients)
    error = np.std(shares, ddof=1) / draws**0.5
    assert np.mean(shares) == pytest.approx(0.19, abs=3 * error)
    assert np.std(shares) == pytest.approx(0.018, abs=0.005)  # as docs/estimators.md says
    np.testing.assert_allclose(np.mean(coefficients, axis=0)[:3], [0.0, 0.7, 0.4], atol=0.01)


def test_a_product_with_a_second_direction_is_found_and_noise_is_none():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 40))
    y = X[:, 0] + 0.8 * X[:, 0] * X[:, 1] + 0.4 * rng.standard_normal(3000)
    y = (y - y.mean()) / y.std()
    target, noise_std = estimated_target(X - X.mean(axis=0), y, X.T @ y / len(y))
    assert noise_std**2 == pytest.approx(0.16 / 1.8, rel=0.1)
    z = rng.standard_normal((200_000, 2))
    values = resolve_target(target)(z)
    assert np.mean(values**2) == pytest.approx(1.0 - noise_std**2, rel=0.02)
    assert np.mean(values * z[:, 0] * z[:, 1]) == pytest.approx((0.64 / 1.8) ** 0.5, rel=0.05)
    noise = rng.standard_normal(3000)
    target, noise_std = estimated_target(X, noise, X.T @ noise / len(noise))
    assert noise_std > 0.98


def test_few_rows_have_a_target_from_fresh_projections():
    rng = np.random.default_rng(0)
    s, kappa = rng.standard_normal((2, 40_000))
    cosine = 0.8
    at = cosine * kappa + 0.6 * s
    y = 0.7 * at + 0.4 * (at**2 - 1) + 0.19**0.5 * rng.standard_normal(40_000)
    found, noise_std = projected_target(kappa, y, cosine)
    np.testing.assert_allclose(found.coefficients, [0.0, 0.7, 0.4, 0.0, 0.0], atol=0.02)
    assert noise_std == pytest.approx(0.19**0.5, abs=0.05)
    nothing, noise_std = projected_target(kappa, rng.standard_normal(40_000), 0.05)
    assert nothing.coefficients == (0.0,) * 5
    assert noise_std == pytest.approx(1.0)
    X = rng.standard_normal((150, 100))
    model = OneStepRegressor(width=50, step_size=1.0, ridge=0.1, random_state=0)
    assert np.isfinite(model.fit(X, X[:, 0]).theory_[0].expected)
    for rows in (X[:, :1], X[:, :5] * [1, 0, 1, 1, 0]):  # one column; columns that do not vary
        assert np.isfinite(model.fit(rows, X[:, 0]).theory_[0].expected)
    nothing, noise_std = estimated_target(X[:, :5], np.zeros(150), np.zeros(5))
    assert (nothing.coefficients, noise_std) == ((0.0,) * 5, 1.0)


@pytest.mark.parametrize("split", ["reuse", "half"])
def test_the_logistic_loss_has_its_own_theory_in_shares_of_wrong_signs(split):
    """Labels sign(g(z) + ε/2): expected errors within a tenth of those on fresh rows."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((9000, 60))
        z = X[:, 0]
        y = z + 0.7 * (z**2 - 1) + 0.5 * rng.standard_normal(9000) > 0
        model = OneStepClassifier(
            width=300, loss="logistic", split=split, step_size=52.0, ridge=0.1, random_state=seed
        )
        model.fit(X[:1500], y[:1500])
        (found,) = model.theory_
        assert found.problem.loss == "logistic"
        assert f"{found.expected:.3g} of the signs expected" in str(found)
        ratios.append(found.expected / np.mean(model.predict(X[1500:]) != y[1500:]))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)
    model.set_params(step_size=100.0).fit(X[:200], y[:200])
    with pytest.raises(InvalidProblem, match="step_size must be at most 4√N for theory_"):
        _ = model.theory_


EXAMPLES = {  # rows, dimension, width: those of docs/estimators.md and of its table
    "docs": (1000, 50, 300),
    "single index": (2400, 100, 1000),
    "multi index": (2400, 100, 1000),
}


@pytest.mark.slow
@pytest.mark.parametrize("split", ["reuse", "half"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_theory_expects_the_error_of_the_planted_examples(name, split):
    """Mean over fits of the expected error over that on fresh rows: within a tenth."""
    rows, d, width = EXAMPLES[name]
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(100 + seed)
        X, noise = rng.standard_normal((rows + 10_000, d)), rng.standard_normal(rows + 10_000)
        z, w = X[:, 0], X[:, 1]
        more = z * w if name == "multi index" else 0.7 * (z**2 - 1)
        y = z + more + (0.2 if name == "docs" else 0.3) * noise
        model = OneStepRegressor(width=width, random_state=seed, split=split)
        model.fit(X[:rows], y[:rows])
        true = np.mean((model.predict(X[rows:]) - y[rows:]) ** 2) / y[rows:].var()
        ratios.append(model.theory_[0].expected / true)
    apart = np.abs(np.array(ratios) - 1.0)
    assert abs(np.mean(ratios) - 1.0) < 0.1, ratios
    assert np.std(ratios) < 0.15
    assert np.sum(apart < 0.1) >= 5
    assert apart.max() < 1 / 6


def test_departures_are_named_with_their_size():
    rng = np.random.default_rng(0)
    Z, kappa = rng.standard_normal((1000, 50)), rng.standard_normal(1000)
    assert departures_of_inputs(Z, kappa) == ()
    assert departures_of_inputs(Z * np.linspace(0.5, 2.0, 50), kappa) == ()
    stretched = departures_of_inputs(Z * rng.uniform(0.2, 2.0, (1000, 1)), kappa)
    assert any("squared lengths" in text for text in stretched)
    heavy = departures_of_inputs(Z, kappa**3 / 15**0.5)
    assert any("kurtosis" in text for text in heavy)


def test_the_covariance_of_rows_is_estimated_where_it_is_not_flat():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 50))
    assert estimated_covariance(Z) is None
    scale = np.linspace(0.2, 2.0, 50) ** 2
    found = estimated_covariance(Z * scale)
    assert np.corrcoef(np.diag(found), scale**2)[0, 1] > 0.98
    assert (alignment(0.7, None), alignment(0.7, np.eye(50))) == pytest.approx((0.7, 0.7))


def test_the_theory_has_the_covariance_of_the_rows():
    """Expected and held-out error agree on Gaussian rows with a covariance, to 10 %."""
    rng = np.random.default_rng(1)
    d, scale = 100, np.repeat([2.0, 0.5], [20, 80])
    ratios = []
    for seed in range(4):
        X = rng.standard_normal((2000, d)) * scale
        beta = rng.standard_normal(d) * scale
        y = np.tanh((X / scale) @ beta / np.linalg.norm(beta)) + 0.3 * rng.standard_normal(2000)
        model = OneStepRegressor(step_size=3.0, random_state=seed, **PLAIN).fit(X, y)
        (found,) = model.theory_
        assert found.problem.covariance is not None
        ratios.append(found.expected / found.measured)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_several_outputs_and_reuse_are_departures_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = OneStepClassifier(width=60, split="reuse", random_state=0, steps=2).fit(X, y)
    text = " ".join(model.theory_[0].departures)
    for words in ("3 outputs share", "reuses the step's rows", "here there are 2"):
        assert words in text
    assert len(model.theory_) == len(model.learned_curve_) == 3
    assert model.spikes_.overlaps.shape[1] == 3


def test_two_classes_are_measured_in_variances_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 50))
    model = OneStepClassifier(width=60, step_size=1.0, split="half", random_state=0)
    model.fit(X, X[:, 0] > 0.8)
    rows = model._halves[1]
    labels = model._sample.Y[rows, 0]
    loss = model.selection_.losses[model.selection_.best]
    assert model.theory_[0].measured == pytest.approx(loss / labels.var(), rel=0.1)


def test_the_picture_is_drawn_from_the_model(models):
    axes = models[0][0].plot()
    assert len(axes) == 3
    figure = axes[0].get_figure()
    assert render(figure, "svg").startswith(b"<?xml")
    assert "spikes: 1 (without a step 0)" in axes[1].get_title()
    with pytest.raises(InvalidProblem, match="axes must be 3 Axes; got 2"):
        models[0][0].plot(axes[:2])


def test_an_explanation_is_computed_once_for_each_fit():
    X, y, _ = planted(0, 300)
    model = OneStepRegressor(width=30, step_size=5.0, ridge=0.1, random_state=0).fit(X, y)
    first = model.spikes_
    assert model.spikes_ is first
    assert pickle.loads(pickle.dumps(model)).spikes_.edge == first.edge
    assert model.fit(X, -y).spikes_ is not first
    assert model.spikes_.values != pytest.approx(first.values)


def test_nothing_is_explained_before_the_fit():
    for name in ("directions_", "learned_curve_", "spikes_", "feature_importances_", "theory_"):
        with pytest.raises(NotFittedError):
            getattr(OneStepRegressor(), name)
