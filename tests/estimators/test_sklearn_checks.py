"""scikit-learn's own checks, all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from featurestep.estimators import OneStepClassifier, OneStepFeatures, OneStepRegressor


def choosing_depends_on_the_rows(estimator):
    """Weights are repetitions where nothing is chosen; halves of repeated rows are others."""
    if estimator.step_size != "auto" or isinstance(estimator, OneStepFeatures):
        return {}
    why = "the halves that choose step size and ridge are those of other rows"
    return {"check_sample_weight_equivalence_on_dense_data": why}


@parametrize_with_checks(
    [
        OneStepRegressor(width=20),
        OneStepClassifier(width=20),
        OneStepFeatures(width=20),
        OneStepRegressor(width=20, split="half", whiten=True),
        OneStepClassifier(width=20, loss="logistic"),
        OneStepRegressor(width=20, step_size=2.0, ridge=0.1),
        OneStepClassifier(width=20, step_size=2.0, ridge=0.1, loss="logistic"),
    ],
    expected_failed_checks=choosing_depends_on_the_rows,
)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_the_checks_that_need_a_setting_of_scipy_pass_too():
    """Those of the array API are skipped unless SciPy was told before it was imported."""
    chosen = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    run = subprocess.run(
        [*chosen, "-k", "array_api"],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert "7 passed" in run.stdout
    assert "skipped" not in run.stdout
