"""The three estimators: numbers as labels, classes as labels, the trained first layer alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..core.errors import InvalidProblem
from ..core.types import FloatArray
from .base import OneStepBase, documented, squared_error
from .explained import Explained
from .selection import Verdict


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


@documented
class OneStepClassifier(ClassifierMixin, Explained):  # type: ignore[misc]
    """One large gradient step on the first layer, then ridge regression on class codes.

    Two classes are coded −1 and 1, more as 0 and 1 in one output each, with one gradient each. A
    row gets the class of its largest output. "auto" judges by the accuracy of held-out rows, and
    by their squared error where that is equal.

    {PARAMETERS}

    Attributes
    ----------
    directions_, direction_stability_, learned_curve_, spikes_, feature_importances_, theory_
        What was learned, computed when asked for; `plot` draws it.
    classes_
        The labels met.
    weights_, readout_, intercept_, step_size_, ridge_, selection_
        As in `OneStepRegressor`.
    """

    _judged_in_variances = False

    def fit(self, X: Any, y: Any) -> OneStepClassifier:
        """Fit on rows X and their classes y."""
        X, y = self._rows_and_labels(X, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidProblem("y", "must have at least 2 classes", f"{len(self.classes_)} class")
        fitted = self._fit(X, coded(codes, len(self.classes_)), codes, accuracy)
        readout = fitted.a_hat.astype(self.weights_.dtype)
        self.readout_ = readout[:, 0] if readout.shape[1] == 1 else readout
        self.intercept_ = fitted.intercept
        return self

    def decision_function(self, X: Any) -> Any:
        """The outputs: (rows,) for two classes, else (rows, classes)."""
        found = self._outputs_of(X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> Any:
        """The class of every row."""
        check_is_fitted(self)
        return self.classes_[largest(self._outputs_of(X))]


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


def coded(codes: Any, count: int) -> FloatArray:
    """Labels (n, outputs) of classes 0 … count − 1."""
    if count == 2:
        return np.asarray(2.0 * codes[:, None] - 1.0)
    return np.asarray(np.eye(count)[codes])


def largest(outputs: Any) -> Any:
    """The class that outputs speak for."""
    return (outputs[:, 0] > 0).astype(int) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def accuracy(guess: FloatArray, labels: FloatArray) -> Verdict:
    """Judges classes."""
    right = float(np.mean(largest(guess) == largest(labels)))
    return Verdict(right, float(np.mean((guess - labels) ** 2)))
