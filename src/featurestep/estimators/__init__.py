"""scikit-learn estimators of one gradient step and a ridge readout, on anyone's data."""

from __future__ import annotations

try:
    import sklearn
except ImportError:
    raise ImportError(
        "featurestep.estimators needs scikit-learn: pip install 'featurestep[sklearn]'"
    ) from None

from .models import OneStepClassifier, OneStepFeatures, OneStepRegressor

__all__ = ["OneStepClassifier", "OneStepFeatures", "OneStepRegressor"]
