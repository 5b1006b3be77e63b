"""On data of the theory's kind the estimators do what the theory says."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import Setting, predict
from featurestep.estimators import OneStepFeatures, OneStepRegressor
from featurestep.simulation import Draw, Source, Streams, make_backend

from .planted import PROBLEM, planted

PLAIN = {"standardise": False, "fit_intercept": False, "split": "half", "width": PROBLEM.width}


def mean_and_error(values):
    return np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5


def test_the_direction_has_the_predicted_cosine():
    """d = 200, n = 2000: one thousand rows for the step."""
    cosines = []
    for seed in range(12):
        X, y, direction = planted(seed, 2000)
        model = OneStepRegressor(step_size=12.0, ridge=0.05, random_state=seed, **PLAIN).fit(X, y)
        cosines.append(float(model.directions_[0] @ direction))
    mean, error = mean_and_error(cosines)
    assert abs(mean - predict(PROBLEM).alignment) < 2 * error


@pytest.mark.slow
def test_the_gain_over_random_features_is_as_predicted():
    gains, errors = [], []
    for seed in range(24):
        X, y, direction = planted(seed, 2000)
        fresh = np.random.default_rng(10_000 + seed).standard_normal((4000, PROBLEM.d))
        clean = PROBLEM.sigma_star(fresh @ direction)
        missed = []
        for step in (0.0, PROBLEM.step_size):
            model = OneStepRegressor(step_size=step, ridge=0.05, random_state=seed, **PLAIN)
            guess = model.fit(X, y).predict(fresh)
            missed.append(np.mean((guess - clean) ** 2) + PROBLEM.noise_std**2)
        gains.append(missed[0] - missed[1])
        errors.append(missed[1])
    predicted = predict(PROBLEM).test_error
    gain = predict(PROBLEM.replace(step_size=0.0)).test_error - predicted
    mean, error = mean_and_error(gains)
    assert gain > 10 * error  # there is a gain to speak of
    assert abs(mean - gain) < 2 * error
    mean, error = mean_and_error(errors)
    assert abs(mean - predicted) < 2 * error


def test_the_weights_are_those_of_the_simulation():
    """Same seed, same rows: W0 + ηG of `simulate`'s own parts, for labels of mean square 1."""
    problem = PROBLEM.replace(n=64, n_step=64, d=20, width=30)
    backend = make_backend("cpu", "float64")
    draw = Draw(problem, Setting(), Source([Streams(7)], backend), 1)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((64, 20)), rng.standard_normal(64)
    y /= np.sqrt(np.mean(y**2))
    model = OneStepFeatures(
        standardise=False,
        fit_intercept=False,
        width=30,
        step_size=5.0,
        ridge=0.1,
        split="reuse",
        random_state=7,
    ).fit(X, y)
    W0 = backend.get(draw.initial_weights())
    a = draw.readout
    slopes = (X @ W0.T > 0).astype(float)
    G = (slopes * y[:, None] * a).T @ X / 64
    np.testing.assert_allclose(model.weights_, W0 + 5.0 * G, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["half", "reuse"])
def test_what_is_chosen_is_within_two_per_cent_of_the_best_on_held_out_data(split):
    """Mean over draws of the error at (step, ridge) chosen, against that of the best pair."""
    chosen, table = [], []
    for seed in range(6):
        X, y, direction = planted(100 + seed, 2000)
        fresh = np.random.default_rng(20_000 + seed).standard_normal((4000, PROBLEM.d))
        clean = PROBLEM.sigma_star(fresh @ direction)

        def error(model, fresh=fresh, clean=clean):
            return float(np.mean((model.predict(fresh) - clean) ** 2)) + PROBLEM.noise_std**2

        given = {"width": 600, "random_state": seed, "split": split}
        model = OneStepRegressor(**given).fit(X, y)
        chosen.append(error(model))
        tried = model.selection_
        near = slice(max(tried.best[1] - 2, 0), tried.best[1] + 3)
        rows = []
        for eta, ridges in zip(tried.step_sizes, tried.ridges, strict=True):
            one = [OneStepRegressor(step_size=eta, ridge=r, **given) for r in ridges[near]]
            rows.append([error(m.fit(X, y)) for m in one])
        table.append(np.min(rows))
    assert np.mean(chosen) < 1.02 * np.mean(table)
