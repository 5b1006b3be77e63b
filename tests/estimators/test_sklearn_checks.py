"""scikit-learn's own checks, all of them."""

from __future__ import annotations

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
