"""scikit-learn's own checks, all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from featurestep.estimators import OneStepClassifier, OneStepFeatures, OneStepRegressor


@parametrize_with_checks(
    [
        OneStepRegressor(width=20),
        OneStepClassifier(width=20),
        OneStepFeatures(width=20),
        OneStepRegressor(width=20, split="reuse", whiten=True),
    ]
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
    assert "4 passed" in run.stdout
    assert "skipped" not in run.stdout
