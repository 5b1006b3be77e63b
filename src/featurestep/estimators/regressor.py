"""`OneStepRegressor`: numbers as labels, one or several to a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from .base import documented, squared_error
from .explained import Explained


@documented
class OneStepRegressor(RegressorMixin, Explained):  # type: ignore[misc]
    """One large gradient step on the first layer, then ridge regression on its features.

    Several outputs take one gradient each: as many directions are learned as there are outputs.

    {PARAMETERS}

    Attributes
    ----------
    directions_, direction_stability_, learned_curve_, spikes_, feature_importances_, theory_
        What was learned, computed when asked for; `plot` draws it.
    weights_ : (width, d)
        The first layer after the step, on the standardised columns (or whitened directions).
    readout_ : (width,) or (width, outputs); intercept_
        What the ridge regression found.
    step_size_, ridge_ : float
        Given or chosen; `selection_` has all that was tried.
    """

    def fit(self, X: Any, y: Any) -> OneStepRegressor:
        """Fit on rows X and numbers y, (rows,) or (rows, outputs)."""
        X, y = self._rows_and_labels(X, y, multi_output=True, y_numeric=True)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        fitted = self._fit(X, Y, None, squared_error)
        single = np.ndim(y) == 1
        readout = fitted.a_hat.astype(self.weights_.dtype)
        self.readout_ = readout[:, 0] if single else readout
        self.intercept_ = float(fitted.intercept[0]) if single else fitted.intercept
        return self

    def predict(self, X: Any) -> Any:
        """f(x) of every row."""
        found = self._outputs_of(X)
        return found[:, 0] if self.readout_.ndim == 1 else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
