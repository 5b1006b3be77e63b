"""What all three estimators share: parameters, scaled columns, the fit of a network, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.checks import non_negative, number, one_of, positive, whole_number
from ..core.display import gibibytes
from ..core.errors import InsufficientMemory, InvalidProblem
from ..core.problem import RIDGE_RANGE, Problem
from ..core.types import FloatArray
from ..simulation import BLOCK_ROWS, Array, NetworkOnRows, make_backend, usable_memory
from .readouts import LOSSES, outputs
from .selection import Fitted, Judge, Rows, Sample, SearchPlan, Verdict, train

_MIN_VARIANCE_SHARE = 1e-10  # variances below this share of the largest are directions without data


@dataclass(frozen=True)
class InputMap:
    """x ↦ ((x − mean)/scale) · basis: the network's inputs, in the dtype of x."""

    mean: FloatArray  # (columns,)
    scale: FloatArray  # (columns,)
    basis: FloatArray | None  # (columns, d), or None for the columns themselves

    @property
    def d(self) -> int:
        """How many inputs the network has."""
        return len(self.mean) if self.basis is None else self.basis.shape[1]

    def __call__(self, X: Any) -> Any:
        Z = X - self.mean.astype(X.dtype)
        Z /= self.scale.astype(X.dtype)
        return Z if self.basis is None else Z @ self.basis.astype(X.dtype)

    def on_columns(self, directions: FloatArray) -> FloatArray:
        """Directions (…, d) of network inputs as directions of the scaled columns."""
        return directions if self.basis is None else directions @ self.basis.T


def input_map(X: Any, w: FloatArray, *, standardise: bool, whiten: bool) -> InputMap:
    """The map that these rows ask for, with weights w (n,) of mean 1.

    A column without variance keeps the scale 1, so that it is 0 throughout. Whitening leaves out
    directions in which the rows do not vary.
    """
    columns = X.shape[1]
    mean, scale = np.zeros(columns), np.ones(columns)
    if standardise or whiten:
        mean = np.asarray(np.average(np.asarray(X, dtype=np.float64), axis=0, weights=w))
    if standardise:
        squares = (np.asarray(X, dtype=np.float64) - mean) ** 2
        scale = np.sqrt(np.average(squares, axis=0, weights=w))
        # A constant column can have a deviation of rounding errors.
        scale[scale <= 10 * np.finfo(X.dtype).eps * np.abs(mean)] = 1.0
    basis = _whitener(np.asarray(X, dtype=np.float64), w, mean, scale) if whiten else None
    return InputMap(mean, scale, basis)


def _whitener(X: FloatArray, w: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Principal directions over their standard deviations."""
    Z = (X - mean) / scale
    values, vectors = np.linalg.eigh((w[:, None] * Z).T @ Z / len(Z))
    kept = values > _MIN_VARIANCE_SHARE * max(float(values[-1]), np.finfo(np.float64).tiny)
    if not kept.any():
        return np.eye(X.shape[1])[:, :1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


SPLITS = ("reuse", "half")
FLOATS = [np.float64, np.float32]
MIN_ROWS = 4  # rows: two for the step, two for the readout
PARAMETERS = """Parameters
    ----------
    width : int
        Number of neurons N.
    activation, readout
        As in `Problem`: a name, a Hermite sum or a callable; the distribution of the initial
        readout weights.
        The activation is centred, E σ(z) = 0.
    step_size : "auto" or float
        η, for labels of mean 0 and variance 1 (theory, section 1); 0 is random features. "auto"
        tries 0 and multiples of the step that changes the pre-activations by their own size.
    ridge : "auto" or float
        λ in (1/n)‖y − Fa‖² + λ‖a‖², n the rows of the readout. "auto" tries multiples of the mean
        eigenvalue of the features' Gram matrix over n.
    steps : int
        Number of gradient steps of that size, all on the same rows.
    split : "reuse" or "half"
        "reuse": step and readout use all rows; "auto" then fits on one half of the rows and
        validates on the other. "half": the step uses one half of the rows and the readout the
        other; "auto" then uses exact leave-one-out of the readout, which would be optimistic for
        rows that the step has used.
    standardise, whiten : bool
        Scale columns to mean 0 and variance 1; then make them uncorrelated.
    fit_intercept : bool
        Fit an intercept without penalty, by centring labels and features.
    random_state : int, RandomState or None
        An int is the seed of `simulate`: the same weights are drawn.
    device : str
        "cpu", "cuda" or "torch", as in `simulate`."""


Kind = TypeVar("Kind", bound=type)


def documented(kind: Kind) -> Kind:
    """The class with the shared parameters in its docstring."""
    kind.__doc__ = (kind.__doc__ or "").replace("{PARAMETERS}", PARAMETERS.strip())
    return kind


class OneStepBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One gradient step on the first layer, then a ridge readout; see the subclasses."""

    def __init__(
        self,
        *,
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
        self.width = width
        self.activation = activation
        self.readout = readout
        self.step_size = step_size
        self.ridge = ridge
        self.steps = steps
        self.split = split
        self.standardise = standardise
        self.whiten = whiten
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.device = device

    def transform(self, X: Any) -> Any:
        """The trained features σ(Wx), (rows, width), in the dtype of X."""
        X = self._checked(X)
        out = np.empty((len(X), self.weights_.shape[0]), dtype=X.dtype)
        network = self._network_of()
        for rows, F in self._features_of(network, X):
            out[rows] = network.backend.get(F)
        return out

    @property
    def directions_(self) -> FloatArray:
        """(outputs, columns): β of each output on the scaled columns, of length 1."""
        check_is_fitted(self)
        found = self.input_map_.on_columns(self.beta_)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths > 0, lengths, 1.0))

    def _fit(
        self,
        X: Any,
        Y: FloatArray,
        classes: Any,
        judge: Judge,
        *,
        weights: Any = None,
        judge_of_steps: Judge | None = None,
    ) -> Fitted:
        """The fit for labels (n, outputs); `classes` (n,) are kept in both halves.

        Rows of weight 0 count as absent. `judge_of_steps` chooses the step size where the readout
        has another loss than the square.
        """
        plan, (seed, rng) = self._plan(), self._randomness()
        X, Y, classes, w = weighted_rows(X, Y, classes, weights)
        self.input_map_: InputMap = input_map(
            X, w, standardise=self.standardise, whiten=self.whiten
        )
        refuse_too_large(self._problem(self.input_map_.d).width, X, plan)
        Z = self._inputs(X)
        self.seed_ = seed
        halves = split_rows(rng, len(X), classes, reuse=plan.reuse)
        seen, parts = Y[halves[0]], w[halves[0]]
        centre = np.average(seen, axis=0, weights=parts) if plan.intercept else np.zeros(Y.shape[1])
        scale = np.sqrt(np.average((seen - centre) ** 2, axis=0, weights=parts))
        scale[scale <= 10 * np.finfo(np.float64).eps * np.abs(centre)] = 1.0
        sample = Sample(Z, w[:, None] * (Y - centre) / scale, Y, w)
        self._outputs = Y.shape[1]
        self._dtype = str(Z.dtype)
        network = self._network_of()
        fitted = train(network, plan, sample, halves, judge, judge_of_steps or judge)
        self.label_mean_, self.label_scale_ = centre, scale
        self.weights_ = network.backend.get(fitted.W).astype(Z.dtype)
        self.step_size_, self.ridge_ = fitted.step_size, fitted.ridge
        self.selection_ = fitted.selection
        self.beta_ = fitted.beta
        self._remember(sample, halves)
        self._n_features_out = self.weights_.shape[0]
        return fitted

    def _remember(self, sample: Sample, halves: tuple[Rows, Rows]) -> None:
        """What explanations of this fit need; a model without any keeps nothing."""

    def _outputs_of(self, X: Any) -> Any:
        """f(x), (rows, outputs), in the dtype of X."""
        X = self._checked(X)
        a_hat = self._readout_of()
        out = np.empty((len(X), a_hat.shape[1]), dtype=X.dtype)
        network = self._network_of()
        for rows, F in self._features_of(network, X):
            out[rows] = outputs(network.backend, F, a_hat) + self.intercept_
        return out

    def _readout_of(self) -> FloatArray:
        """The readout as (width, outputs)."""
        return np.asarray(self.readout_, dtype=np.float64).reshape(len(self.weights_), -1)

    def _checked(self, X: Any) -> Any:
        """Rows to be mapped by the fitted network."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=FLOATS, reset=False)

    def _rows_and_labels(self, X: Any, y: Any, **rules: Any) -> tuple[Any, Any]:
        """Rows and labels to be fitted."""
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, dtype=FLOATS, ensure_min_samples=MIN_ROWS, **rules
        )

    def _features_of(self, network: NetworkOnRows, X: Any) -> Iterator[tuple[slice, Array]]:
        """Features of some rows at a time."""
        W = network.backend.put(self.weights_)
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            yield rows, network.features_of(self._inputs(X[rows]), W)

    def _inputs(self, X: Any) -> Any:
        return np.ascontiguousarray(self.input_map_(X))

    def _network_of(self) -> NetworkOnRows:
        """The network at its start, drawn again rather than kept."""
        backend = make_backend(self.device, self._dtype)
        return NetworkOnRows(
            self._problem(self.input_map_.d), backend, seed=self.seed_, outputs=self._outputs
        )

    def _problem(self, d: int, **fields: Any) -> Problem:
        """The problem of these parameters, which also checks them."""
        given = {"n": 1, "step_size": 1.0, "ridge": 1.0, "target": "H1", **fields}
        return Problem(
            activation=self.activation,
            readout=self.readout,
            width=self.width,
            d=d,
            centre=True,
            **given,
        )

    def _plan(self) -> SearchPlan:
        one_of("split", self.split, SPLITS)
        ridge = _given("ridge", self.ridge)
        step = _given("step_size", self.step_size)
        return SearchPlan(
            steps=whole_number("steps", self.steps),
            step_size=None if step is None else non_negative("step_size", step),
            ridge=None
            if ridge is None
            else number("ridge", positive("ridge", ridge), *RIDGE_RANGE),
            intercept=bool(self.fit_intercept),
            reuse=self.split == "reuse",
            loss=one_of("loss", self._loss, LOSSES),
        )

    @property
    def _loss(self) -> str:
        """The readout's."""
        return "square"

    def _randomness(self) -> tuple[int, np.random.Generator]:
        """The seed of the network, and what shuffles the rows."""
        given = self.random_state
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 0:
            seed = int(given)
        else:
            seed = int(check_random_state(given).randint(2**31 - 1))
        return seed, np.random.default_rng(seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = True
        tags.non_deterministic = False
        return tags


def _given(name: str, value: Any) -> Any:
    """None for "auto", or the number."""
    if isinstance(value, str):
        if value == "auto":
            return None
        raise InvalidProblem(name, "must be auto or a number", value)
    return value


def split_rows(rng: np.random.Generator, n: int, classes: Any, *, reuse: bool) -> tuple[Rows, Rows]:
    """Rows of the step and of the readout, shuffled; a half has half of each class."""
    order = rng.permutation(n)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    if not reuse:
        return order[1::2], order[0::2]
    return order, order


def weighted_rows(
    X: Any, Y: FloatArray, classes: Any, weights: Any
) -> tuple[Any, FloatArray, Any, FloatArray]:
    """Rows, labels, classes and weights of mean 1 without the rows of weight 0."""
    if weights is None:
        return X, Y, classes, np.ones(len(X))
    kept = weights > 0
    if np.count_nonzero(kept) < MIN_ROWS:
        rule = f"must be > 0 for at least {MIN_ROWS} rows"
        raise InvalidProblem("sample_weight", rule, f"{np.count_nonzero(kept)} rows")
    w = np.asarray(weights[kept], dtype=np.float64)
    return X[kept], Y[kept], None if classes is None else classes[kept], w / w.mean()


def refuse_too_large(width: int, X: Any, plan: SearchPlan) -> None:
    """InsufficientMemory before anything is allocated that does not fit.

    Counted: three arrays of projections and features, three of the Gram matrix's size (four with
    eigenvectors), four of the first layer's, two of the inputs'.
    """
    n, d = X.shape
    rows = n if plan.reuse else (n + 1) // 2
    side = min(rows, width)
    numbers = 3 * rows * width + (3 + (not plan.reuse)) * side**2 + 4 * width * d + 2 * n * d
    size, most = numbers * X.dtype.itemsize, usable_memory()
    if plan.loss != "square":  # in float64, beside the features themselves
        size += 8 * (rows * width + 2 * side**2)
    if most is not None and size > most:
        raise InsufficientMemory(
            f"a fit of width {width} on {n} rows and {d} columns needs about {gibibytes(size)} "
            f"({size:,} bytes); {gibibytes(most)} are free: lower width, or take fewer rows"
        )


def squared_error(guess: FloatArray, labels: FloatArray, w: FloatArray) -> Verdict:
    """Judges numbers: the mean square of what is missed, each output in its own variance."""
    mean = np.average(labels, axis=0, weights=w)
    spread = np.average((labels - mean) ** 2, axis=0, weights=w)
    missed = np.average((guess - labels) ** 2, axis=0, weights=w)
    loss = float(np.mean(missed / np.where(spread > 0, spread, 1.0)))
    return Verdict(-loss, loss)
