"""The logistic readout: its optimum, its probabilities, weights of rows and classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from featurestep import InvalidProblem
from featurestep.estimators import OneStepClassifier, OneStepRegressor

GIVEN = {"width": 60, "random_state": 0, "step_size": 5.0, "ridge": 0.01}


def labelled(seed, n, d=20, slope=3.0):
    """Rows and classes with P(1|x) = expit(slope·(z + z² − 1)), z the first column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X[:, 0]
    truth = expit(slope * (z + z**2 - 1.0))
    return X, (rng.uniform(size=n) < truth).astype(int), truth


@pytest.mark.parametrize("width", [60, 400])
def test_the_readout_is_that_of_scikit_learn(width):
    X, y, _ = labelled(0, 300)
    model = OneStepClassifier(loss="logistic", **{**GIVEN, "width": width}).fit(X, y)
    reference = LogisticRegression(C=1.0 / (0.01 * 300), tol=1e-10, max_iter=10_000)
    reference.fit(model.transform(X), y)
    np.testing.assert_allclose(model.readout_, reference.coef_[0], atol=2e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=2e-5)


def test_probabilities_are_calibrated():
    """Bins of predicted probability on fresh rows: their frequencies within 3.5 errors."""
    X, y, _ = labelled(1, 4000, d=10)
    fresh, classes, truth = labelled(2, 20_000, d=10)
    model = OneStepClassifier(width=300, loss="logistic", random_state=0).fit(X, y)
    found = model.predict_proba(fresh)[:, 1]
    frequency, mean = calibration_curve(classes, found, n_bins=10)
    counts = np.histogram(found, bins=np.linspace(0, 1, 11))[0]
    errors = np.sqrt(mean * (1 - mean) / counts[counts > 0])
    # The fit itself has an error: 4000 rows are a fifth of the fresh ones.
    assert np.all(np.abs(frequency - mean) < 3.5 * np.sqrt(6.0) * errors)
    best = log_loss(classes, truth)
    assert log_loss(classes, found) < 1.1 * best
    # With a free intercept the mean of the training rows' probabilities is their frequency.
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=1e-8)


def test_more_classes_have_probabilities_that_agree_with_the_prediction():
    X, _, _ = labelled(3, 600, d=5)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = OneStepClassifier(width=80, loss="logistic", random_state=0).fit(X[:400], y[:400])
    found = model.predict_proba(X[400:])
    assert found.shape == (200, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.all(model.classes_[found.argmax(axis=1)] == model.predict(X[400:]))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[400:])), found)
    assert np.mean(model.predict(X[400:]) == y[400:]) > 0.85
    assert log_loss(y[400:], found) < 0.4
    # Each class alone: the frequency in the training rows.
    each = expit(model.decision_function(X[:400])).mean(axis=0)
    np.testing.assert_allclose(each, [np.mean(y[:400] == k) for k in "abc"], atol=1e-8)


def test_the_square_loss_has_no_probabilities():
    model = OneStepClassifier()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        _ = model.predict_proba
    X, y, _ = labelled(0, 40)
    with pytest.raises(InvalidProblem, match="loss must be one of square, logistic; got 'hinge'"):
        OneStepClassifier(loss="hinge").fit(X, y)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_weights_count_as_repetitions(loss):
    """Whole weights, 0 among them, give the model of the repeated rows."""
    X, y, _ = labelled(4, 120)
    w = np.random.default_rng(0).integers(0, 4, 120)
    model = OneStepClassifier(loss=loss, **GIVEN).fit(X, y, sample_weight=w)
    rows = np.repeat(np.arange(120), w)
    again = OneStepClassifier(loss=loss, **GIVEN).fit(X[rows], y[rows])
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-7)
    if loss == "square":
        number = OneStepRegressor(**GIVEN).fit(X, X[:, 1], sample_weight=w)
        same = OneStepRegressor(**GIVEN).fit(X[rows], X[rows, 1])
        np.testing.assert_allclose(number.predict(X), same.predict(X), atol=1e-8)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_class_weights_are_weights_of_the_rows(loss):
    X, y, _ = labelled(5, 200)
    weighted = OneStepClassifier(loss=loss, class_weight={0: 1.0, 1: 3.0}, **GIVEN).fit(X, y)
    by_rows = OneStepClassifier(loss=loss, **GIVEN).fit(X, y, sample_weight=1.0 + 2.0 * y)
    np.testing.assert_allclose(
        weighted.decision_function(X), by_rows.decision_function(X), atol=1e-8
    )
    balanced = OneStepClassifier(loss=loss, class_weight="balanced", **GIVEN).fit(X, y)
    counts = np.bincount(y)
    rows = OneStepClassifier(loss=loss, **GIVEN).fit(X, y, sample_weight=100.0 / counts[y])
    np.testing.assert_allclose(balanced.decision_function(X), rows.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("split", ["half", "reuse"])
def test_the_ridge_is_chosen_by_the_likelihood_of_held_out_rows(split):
    X, y, _ = labelled(6, 400, slope=1.0)
    model = OneStepClassifier(loss="logistic", width=80, split=split, random_state=0).fit(X, y)
    tried = model.selection_
    assert tried.method == "held-out half"
    assert len(tried.step_sizes) == 1  # chosen before, with the square loss
    assert tried.losses[tried.best] == tried.losses.min() < np.log(2.0)
