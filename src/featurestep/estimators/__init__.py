"""scikit-learn estimators of one gradient step and a ridge readout, on anyone's data."""

from __future__ import annotations

from ..core.errors import install_command

try:
    import sklearn
except ImportError:
    raise ImportError(
        f"featurestep.estimators needs scikit-learn: {install_command('sklearn')}"
    ) from None

from .models import OneStepClassifier, OneStepFeatures, OneStepRegressor

__all__ = ["OneStepClassifier", "OneStepFeatures", "OneStepRegressor"]
