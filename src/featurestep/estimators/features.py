"""`OneStepFeatures`: the trained first layer alone, for a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ..errors import InvalidProblem
from .base import OneStepBase, documented, squared_error
from .classifier import accuracy, coded


@documented
class OneStepFeatures(OneStepBase):
    """Features of a first layer after one large gradient step, for any model to follow.

    Labels of a floating-point type are numbers, all others are classes. What follows in a
    pipeline is fitted on rows some of which the step has seen.

    {PARAMETERS}

    Attributes
    ----------
    weights_, step_size_, ridge_, selection_
        As in `OneStepRegressor`; the readout was only used to choose.
    """

    def fit(self, X: Any, y: Any) -> OneStepFeatures:
        """Take the step on rows X and their labels y."""
        X, y = self._rows_and_labels(X, y, multi_output=True)
        if np.asarray(y).dtype.kind == "f":
            Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
            self._fit(X, Y, None, squared_error)
            return self
        if np.ndim(y) != 1:
            raise InvalidProblem("y", "must be one class for each row, or numbers", np.shape(y))
        check_classification_targets(y)
        names, codes = np.unique(y, return_inverse=True)
        single = len(names) < 2
        Y = np.zeros((len(y), 1)) if single else coded(codes, len(names))
        self._fit(X, Y, codes, squared_error if single else accuracy)
        return self
