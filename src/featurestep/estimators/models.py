"""The three estimators: numbers as labels, classes as labels, the trained first layer alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneStepRegressor:
        """Fit on rows X and numbers y, (rows,) or (rows, outputs)."""
        X, y = self._rows_and_labels(X, y, multi_output=True, y_numeric=True)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        fitted = self._fit(X, Y, None, squared_error, weights=row_weights(sample_weight, X))
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


def _has_probabilities(model: OneStepClassifier) -> bool:
    """True with the logistic loss; the message of the AttributeError otherwise."""
    if model.loss != "logistic":
        raise AttributeError(
            f"predict_proba needs loss='logistic'; this model has loss={model.loss!r}"
        )
    return True


@documented
class OneStepClassifier(ClassifierMixin, Explained):  # type: ignore[misc]
    """One large gradient step on the first layer, then ridge or logistic regression on classes.

    Two classes are coded −1 and 1, more as 0 and 1 in one output each, with one gradient each. A
    row gets the class of its largest output.

    {PARAMETERS}
    loss : "square" or "logistic"
        Of the readout. "square" is ridge regression on the codes; "auto" then judges by the
        accuracy of held-out rows, and by their squared error where that is equal. "logistic" fits
        each class against the others with (1/n)Σ log(1 + exp(−yf)) + (λ/2)‖a‖² and has
        `predict_proba`; "auto" chooses the step size with the square loss, and the ridge by the
        likelihood of held-out rows. It is slower.
    class_weight : dict, "balanced" or None
        Factors of the rows' weights by class, as in scikit-learn.

    Attributes
    ----------
    directions_, direction_stability_, learned_curve_, spikes_, feature_importances_, theory_
        What was learned, computed when asked for; `plot` draws it.
    classes_
        The labels met.
    weights_, readout_, intercept_, step_size_, ridge_, selection_
        As in `OneStepRegressor`.
    """

    def __init__(
        self,
        *,
        loss: str = "square",
        class_weight: Any = None,
        width: int = 1000,
        activation: Any = "relu",
        readout: Any = "gaussian",
        step_size: Any = "auto",
        ridge: Any = "auto",
        steps: int = 1,
        split: str = "reuse",
        standardise: bool = True,
        whiten: bool = False,
        fit_intercept: bool = True,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(
            width=width,
            activation=activation,
            readout=readout,
            step_size=step_size,
            ridge=ridge,
            steps=steps,
            split=split,
            standardise=standardise,
            whiten=whiten,
            fit_intercept=fit_intercept,
            random_state=random_state,
            device=device,
        )
        self.loss = loss
        self.class_weight = class_weight

    @property
    def _loss(self) -> str:
        return self.loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneStepClassifier:
        """Fit on rows X and their classes y."""
        X, y = self._rows_and_labels(X, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        weights = row_weights(sample_weight, X)
        if weights is not None:  # rows of weight 0 count as absent
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidProblem("y", "must have at least 2 classes", f"{len(self.classes_)} class")
        if self.class_weight is not None:
            factors = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=weights
            )[codes]
            weights = factors if weights is None else factors * weights
        fitted = self._fit(
            X,
            coded(codes, len(self.classes_)),
            codes,
            log_likelihood if self.loss == "logistic" else accuracy,
            weights=weights,
            judge_of_steps=accuracy,
        )
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

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, (rows, classes); needs the logistic loss.

        With more than two classes those of each class against the others, scaled to sum 1.
        """
        check_is_fitted(self)
        return probabilities(self._outputs_of(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _measured(self) -> float | None:
        found = super()._measured()
        if found is None or self.split == "reuse" or self.loss == "logistic":
            return found
        return found / float(self.label_scale_[0] ** 2)


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


def probabilities(outputs: Any) -> Any:
    """Of the classes, (n, classes), from outputs of logistic regressions."""
    if outputs.shape[1] == 1:
        return np.column_stack([expit(-outputs[:, 0]), expit(outputs[:, 0])])
    each = np.maximum(expit(outputs), np.finfo(outputs.dtype).tiny)
    return each / each.sum(axis=1, keepdims=True)


def accuracy(guess: FloatArray, labels: FloatArray, w: FloatArray) -> Verdict:
    """Judges classes."""
    right = float(np.average(largest(guess) == largest(labels), weights=w))
    return Verdict(right, float(np.average(np.mean((guess - labels) ** 2, axis=1), weights=w)))


def log_likelihood(guess: FloatArray, labels: FloatArray, w: FloatArray) -> Verdict:
    """Judges probabilities."""
    found = probabilities(guess)[np.arange(len(labels)), largest(labels)]
    loss = -float(np.average(np.log(np.maximum(found, np.finfo(float).tiny)), weights=w))
    return Verdict(-loss, loss)


def row_weights(given: Any, X: Any) -> Any:
    """Checked weights (n,), or None."""
    if given is None:
        return None
    return _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
