"""Leave-one-out in closed form is leave-one-out; a held-out half sees no label twice."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep.estimators import OneStepClassifier, OneStepRegressor
from featurestep.estimators.readouts import centred, held_out
from featurestep.simulation import make_backend

RIDGES = (1e-4, 0.03, 2.0)


def brute_force(F, Y, ridge, intercept, w=None):
    """Refit without each row in turn; the penalty λn stays that of all rows."""
    n = len(F)
    w = np.ones(n) if w is None else w
    design = np.column_stack([np.ones(n), F]) if intercept else F
    penalty = ridge * n * np.eye(design.shape[1])
    if intercept:
        penalty[0, 0] = 0.0
    missed = np.empty_like(Y)
    for i in range(n):
        kept = np.arange(n) != i
        A = design[kept]
        weighted = w[kept, None] * A
        fitted = np.linalg.solve(weighted.T @ A + penalty, weighted.T @ Y[kept])
        missed[i] = Y[i] - design[i] @ fitted
    return missed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(40, 15), (30, 30), (25, 60)])
def test_it_equals_brute_force(shape, intercept, weighted):
    rng = np.random.default_rng(3)
    F = rng.standard_normal(shape) + rng.standard_normal(shape[1])  # columns with a mean
    Y = rng.standard_normal((shape[0], 2)) + 3.0
    backend = make_backend("cpu", "float64")
    w = rng.uniform(0.1, 2.0, len(F)) if weighted else np.ones(len(F))
    features, labels, _, _ = centred(backend, F.copy(), Y, w, intercept=intercept)
    found = held_out(backend, features, labels, w, np.array(RIDGES), intercept=intercept)
    for ridge, missed in zip(RIDGES, found, strict=True):
        expected = brute_force(F, Y, ridge, intercept, w)
        assert np.max(np.abs(missed - expected)) < 1e-8 * np.max(np.abs(expected))


@pytest.mark.parametrize("width", [20, 80])
def test_the_selection_of_a_fit_is_what_brute_force_gives(width):
    """From the fitted estimator's own weights, rows and table of scores."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    y = X[:, 0] + X[:, 0] ** 2 + 0.1 * rng.standard_normal(100)
    model = OneStepRegressor(width=width, split="half", random_state=5).fit(X, y)
    tried = model.selection_
    step, ridge = tried.best
    assert (model.step_size_, model.ridge_) == (tried.step_sizes[step], tried.ridges[step, ridge])
    rows = model._halves[1]
    F, Y = model.transform(X)[rows], y[rows, None]
    for index, value in enumerate(tried.ridges[step]):
        if index % 4:
            continue
        missed = brute_force(F, Y, value, True)
        expected = np.mean(missed**2) / Y.var()
        assert tried.losses[step, index] == pytest.approx(expected, rel=1e-8)


def test_classes_are_judged_by_accuracy_of_held_out_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 5))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    model = OneStepClassifier(width=15, split="half", random_state=0, step_size=3.0).fit(X, y)
    rows = model._halves[1]
    F, Y = model.transform(X)[rows], np.eye(3)[y[rows]]
    for value, score in zip(model.selection_.ridges[0], model.selection_.scores[0], strict=True):
        guess = Y - brute_force(F, Y, value, True)
        assert score == pytest.approx(np.mean(guess.argmax(axis=1) == y[rows]), abs=1e-12)


def test_leave_one_out_would_be_optimistic_where_the_step_has_seen_the_labels():
    """Pure noise: a held-out half shows it, leave-one-out after a step on all rows does not."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 100)), rng.standard_normal(200)
    model = OneStepRegressor(width=100, random_state=0, step_size=50.0).fit(X, y)
    assert model.selection_.method == "held-out half"
    assert model.selection_.losses.min() > 0.97
    backend, w = make_backend("cpu", "float64"), np.ones(200)
    F, labels, _, _ = centred(backend, model.transform(X), y[:, None], w, intercept=True)
    missed = held_out(backend, F, labels, w, model.selection_.ridges[0], intercept=True)
    assert np.mean(missed**2, axis=(1, 2)).min() / y.var() < 0.8


@pytest.mark.parametrize("width", [20, 90])
def test_the_selection_by_a_held_out_half_is_what_refitting_gives(width):
    """The step and the ridge regression of one half of the rows, done by hand."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((99, 8))
    y = X[:, 0] + X[:, 0] ** 2 + 0.1 * rng.standard_normal(99)
    model = OneStepRegressor(width=width, random_state=5).fit(X, y)
    tried, sample, rows = model.selection_, model._sample, model._halves[1]
    step, ridge = tried.best
    network = model._network_of()
    kept, held = rows[::2], rows[1::2]
    W0, Z, r = network.W0, sample.X[kept], sample.R[kept, 0]
    slopes = (Z @ W0.T > 0).astype(float)
    G = (slopes * r[:, None] * network.initial_readouts[0]).T @ Z / len(Z)
    eta = (0.0, 1.0, 2.0, 4.0, 8.0)[step]
    eta *= np.sqrt(np.sum((Z @ W0.T) ** 2) / np.sum((Z @ G.T) ** 2))
    F, tested = (np.maximum(sample.X[k] @ (W0 + eta * G).T, 0.0) for k in (kept, held))
    centre, labels = F.mean(axis=0), sample.Y[kept, 0]
    F, tested = F - centre, tested - centre
    lam = 10.0 ** (-6.0 + 0.5 * ridge) * np.sum(F**2) / min(F.shape)
    a_hat = np.linalg.solve(F.T @ F + lam * np.eye(width), F.T @ (labels - labels.mean()))
    missed = sample.Y[held, 0] - labels.mean() - tested @ a_hat
    expected = np.mean(missed**2) / sample.Y[held, 0].var()
    assert tried.losses[step, ridge] == pytest.approx(expected, rel=1e-8)
