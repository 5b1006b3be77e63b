"""Properties that explain a fitted estimator, and what the theory expects of such a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.errors import InvalidProblem, NotConverged
from ..core.problem import Problem
from ..core.types import Axes, FloatArray
from ..functions.activations import HermiteSum
from ..functions.nonlinearity import factorials
from ..plots.style import PALETTE, line_colour, new_axes, styled
from ..theory import Prediction, predict
from .base import OneStepBase
from .directions import (
    DEGREES,
    Along,
    FeatureSpikes,
    LearnedCurve,
    Stability,
    along,
    feature_spikes,
    gradient_squares,
    learned_curve,
    stability,
)
from .selection import Rows, Sample, cross_validated

_SIGNIFICANT = 2.0  # standard errors of a coefficient that counts
_EQUAL_VARIANCES = 0.8  # effective directions, as a share of d, that count as all
_LEAST_COSINE = 0.1  # below it nothing can be said about the target beyond noise


@dataclass(frozen=True)
class Expectation:
    """The theory's answer for one output, in units of the labels' variance."""

    problem: Problem  # its target is the one estimated from the data
    prediction: Prediction
    measured: float | None  # the same error, held out; None where nothing was chosen
    departures: tuple[str, ...]  # where the data leave the theory's assumptions

    @property
    def expected(self) -> float:
        """The predicted test error as a share of the labels' variance."""
        return self.prediction.test_error

    def __str__(self) -> str:
        seen = "" if self.measured is None else f", {self.measured:.3g} measured"
        lines = [f"test error {self.expected:.3g} of the labels' variance expected{seen}"]
        return "\n".join([*lines, *(f"  but: {text}" for text in self.departures)])


def estimated_target(kappa: FloatArray, y: FloatArray, cosine: float) -> tuple[HermiteSum, float]:
    """A single-index target σ⋆ of degree DEGREES, and the noise that is left.

    From labels of variance 1 and κ of rows that the step has not seen.

    E[y|κ] = Σ c⋆_kγ^k H_k(κ) for Gaussian inputs, fitted by least squares: moments E[y H_k(κ)]
    would scatter with all of y, not only with what κ does not explain. Coefficients within two
    standard errors of 0 count as 0; where those that are left explain more than all of y they are
    scaled down.
    """
    c = np.zeros(DEGREES + 1)
    sizes = factorials(DEGREES + 1)
    if cosine > _LEAST_COSINE:
        basis = np.polynomial.hermite_e.hermevander(kappa, DEGREES)  # (n, degrees + 1)
        inverse = np.linalg.pinv(basis)
        fitted = inverse @ y
        # Errors by White's estimate: what is left varies with κ.
        errors = np.sqrt((inverse**2) @ (y - basis @ fitted) ** 2)
        shown = np.abs(fitted) > _SIGNIFICANT * errors
        shown[0] = False  # the labels are centred
        c = np.where(shown, fitted / cosine ** np.arange(DEGREES + 1), 0.0)
    explained = float(np.sum(sizes * c**2))
    if explained > 1.0:
        c /= np.sqrt(explained)
        explained = 1.0
    target = HermiteSum("estimated", tuple(c.tolist()))
    return target, float(np.sqrt(max(1.0 - explained, 1e-12)))


def predicted(problem: Problem, *, intercept: bool, same_rows: bool) -> Prediction:
    """The theory's answer with an intercept and on the step's rows, as far as it has one.

    Where both together, or one of them, are refused or do not converge, the other or none is left.
    """
    fields = {"intercept": intercept, "rows": "same" if same_rows else "fresh"}
    plain = {"intercept": False, "rows": "fresh"}
    for name in ("", "rows", "intercept"):  # what is given up
        try:
            asked = problem.replace(**{**fields, **({name: plain[name]} if name else {})})
            found: Prediction = predict(asked)
        except (InvalidProblem, NotConverged):
            continue
        return found
    last: Prediction = predict(problem)
    return last


def estimated_covariance(X: Any) -> FloatArray | None:
    """The covariance of rows, (d, d), by Ledoit and Wolf's shrinkage; None if it could be I.

    Without shrinkage the eigenvalues of few rows scatter though those of the law are equal.
    """
    Z = np.asarray(X, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    if effective_directions(Z) >= _EQUAL_VARIANCES * Z.shape[1]:
        return None
    from sklearn.covariance import ledoit_wolf  # slow to load

    return np.asarray(ledoit_wolf(Z, assume_centered=True)[0])


def alignment(cosine: float, covariance: FloatArray | None) -> float:
    """γ, the correlation of κ with the target's argument, for a random direction of the target.

    cosine: between β and β⋆ for that covariance, as halves of the rows show it. β is
    c⋆_1Σβ⋆ + noise of covariance φ0b_2Σ, which gives both.
    """
    if covariance is None or cosine <= 0.0:
        return cosine
    values = np.linalg.eigvalsh(covariance)
    values = values / values.mean()
    second, third = float(np.mean(values**2)), float(np.mean(values**3))
    return float(second / np.sqrt(third + second**2 * (1.0 / cosine**2 - 1.0)))


def effective_directions(Z: FloatArray) -> float:
    """(tr Σ)²/tr Σ² of centred rows, without the part that the sampling adds to tr Σ²."""
    n, d = Z.shape
    total = float(np.sum(Z**2)) / n
    gram = Z @ Z.T if n < d else Z.T @ Z
    squares = float(np.sum(gram**2)) / n**2 - total**2 / n
    return total**2 / squares if squares > 0 else float(d)


def departures_of_inputs(X: Any, kappa: FloatArray) -> tuple[str, ...]:
    """In words and numbers, where the inputs are not Gaussian; empty when they could be."""
    Z = np.asarray(X, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    n = len(Z)
    notes = []
    total, effective = float(np.sum(Z**2)) / n, effective_directions(Z)
    lengths = np.sum(Z**2, axis=1) / max(total, np.finfo(float).tiny)
    spread, gaussian = float(lengths.std()), (2.0 / max(effective, 1.0)) ** 0.5
    if spread > 1.5 * gaussian and spread > 0.05:
        notes.append(
            f"inputs are not Gaussian: the squared lengths of rows have a relative standard "
            f"deviation of {spread:.0%}, {gaussian:.0%} for Gaussian inputs"
        )
    excess = float(np.mean(kappa**4)) - 3.0
    if abs(excess) > 5.0 * (24.0 / n) ** 0.5:
        notes.append(f"inputs are not Gaussian: κ has an excess kurtosis of {excess:.2g}")
    return tuple(notes)


PANELS = 3
COLUMNS = 10  # of the most important ones
CURVES = 6


class Explained(OneStepBase):
    """What a network with a readout has learned, computed when first asked for.

    The rows are kept for that, as the network saw them: singular values need all of them.
    """

    @cached_property
    def direction_stability_(self) -> Stability:
        """How well the directions of random halves of the step's rows agree."""
        check_is_fitted(self)
        rows = self._halves[0]
        return stability(self._sample.X[rows], self._sample.R[rows], self.seed_)

    @cached_property
    def learned_curve_(self) -> tuple[LearnedCurve, ...]:
        """For each output the mean output along its direction, with the degrees in it."""
        check_is_fitted(self)
        network = self._network_of()
        W, X = network.backend.put(self.weights_), self._sample.X
        readout, offset = self._readout_of(), np.atleast_1d(self.intercept_)
        return tuple(
            learned_curve(network, W, (readout[:, k], float(offset[k])), place, X)
            for k, place in enumerate(self._places())
        )

    @cached_property
    def spikes_(self) -> FeatureSpikes:
        """Singular values of the features beyond the bulk, on the readout's rows."""
        check_is_fitted(self)
        network = self._network_of()
        W, X = network.backend.put(self.weights_), self._sample.X[self._halves[1]]
        return feature_spikes(network, W, X, self._places(), self.seed_)

    @cached_property
    def feature_importances_(self) -> FloatArray:
        """Mean squared slope of the output in each column, in its standard deviations; sum 1."""
        check_is_fitted(self)
        network = self._network_of()
        W, X = network.backend.put(self.weights_), self._sample.X
        slopes = gradient_squares(network, W, self._readout_of() / self.label_scale_, X)
        on_columns = self.input_map_.on_columns(slopes)  # (outputs, rows, columns)
        squares = np.mean(on_columns**2, axis=(0, 1)) * self._column_variances()
        total = float(squares.sum())
        return np.asarray(squares / total if total > 0 else squares)

    @cached_property
    def theory_(self) -> tuple[Expectation, ...]:
        """For each output on its own: what the theory expects, and what it does not know.

        It has the covariance of the rows, where their variance is not the same in all directions.
        """
        check_is_fitted(self)
        cosines = self.direction_stability_.cosine
        step, rows = self._halves
        X = self._sample.X[rows]
        Y = self._sample.Y[rows] - self.label_mean_
        # In units of these rows' own spread: its fluctuation is shared by the coefficients.
        spread = np.sqrt(np.mean(Y**2, axis=0))
        Y = Y / np.where(spread > 0, spread, 1.0)
        covariance = estimated_covariance(self._sample.X)
        found = []
        for k, place in enumerate(self._places()):
            kappa = self._fresh_kappa(k, place)
            target, noise_std = estimated_target(
                kappa, Y[:, k], alignment(float(cosines[k]), covariance)
            )
            problem = self._problem(
                self.input_map_.d,
                n=len(rows),
                n_step=len(step),
                step_size=self.step_size_,
                ridge=self.ridge_,
                target=target,
                noise_std=noise_std,
                covariance=covariance,
            )
            prediction = predicted(
                problem, intercept=bool(self.fit_intercept), same_rows=self.split == "reuse"
            )
            problem = prediction.problem
            notes = (*departures_of_inputs(X, kappa), *self._own_departures(problem))
            departures = (*notes, *prediction.notes)
            found.append(Expectation(problem, prediction, self._measured(), departures))
        return tuple(found)

    def _fresh_kappa(self, output: int, place: Along) -> FloatArray:
        """κ of the readout's rows, (n,), of mean 0 and variance 1, as of rows new to the step.

        Where the step has seen them, each row's own part of β is taken out: exact, as β is a sum.
        """
        step, rows = self._halves
        X = np.asarray(self._sample.X[rows], dtype=np.float64)
        kappa = X @ place.beta
        if self.split == "reuse":
            kappa -= np.sum(X**2, axis=1) * self._sample.R[rows, output] / len(step)
        kappa -= kappa.mean()
        return np.asarray(kappa / (kappa.std() or 1.0))

    def _remember(self, sample: Sample, halves: tuple[Rows, Rows]) -> None:
        self._sample, self._halves = sample, halves
        for name, value in vars(Explained).items():
            if isinstance(value, cached_property):
                self.__dict__.pop(name, None)

    def plot(self, axes: Any = None) -> list[Axes]:
        """Learned curves, singular values and the columns that matter most, on three Axes."""
        check_is_fitted(self)
        return _draw(self, axes)

    def _places(self) -> list[Along]:
        return [along(beta, self._sample.X) for beta in self.beta_]

    def _column_variances(self) -> FloatArray:
        """Of the scaled columns: 1 where they were standardised."""
        Z = np.asarray(self._sample.X, dtype=np.float64)
        if self.input_map_.basis is None:
            return np.asarray(Z.var(axis=0))
        back = np.linalg.pinv(self.input_map_.basis)  # (d, columns)
        return np.asarray(((Z - Z.mean(axis=0)) @ back).var(axis=0))

    def _measured(self) -> float | None:
        if self.selection_ is None or self._outputs > 1:
            return None
        if self.split == "reuse":  # the selection's readouts have half of the rows
            plan = replace(self._plan(), step_size=self.step_size_, ridge=self.ridge_)
            return cross_validated(self._network_of(), plan, self._sample, self._halves[1])
        return float(self.selection_.losses[self.selection_.best])

    def _own_departures(self, problem: Problem) -> tuple[str, ...]:
        """Where this estimator does what the theory does not."""
        checks = (
            (
                self._outputs > 1,
                f"the theory is for one output; here {self._outputs} outputs share the network",
            ),
            (
                self.split == "reuse" and problem.rows == "fresh",
                "the theory is for a readout on fresh rows, here it reuses the step's rows "
                "(reused rows with an intercept or a very large step are not covered)",
            ),
            (
                bool(self.fit_intercept) and not problem.intercept,
                "expect a lower error if the target has an even part: the theory is for a fit "
                "without intercept, here one is fitted",
            ),
            (self.steps > 1, f"the theory is for one step; here there are {self.steps}"),
        )
        return tuple(text for departs, text in checks if departs)


@styled
def _draw(model: Explained, axes: Any) -> list[Axes]:
    """Curves, singular values and columns on given Axes, or on a new figure."""
    if axes is None:
        shown = new_axes(columns=PANELS, width=6.8, height=2.3, sharex=False)
    else:
        shown = list(np.ravel(axes))
    if len(shown) != PANELS:
        raise InvalidProblem("axes", f"must be {PANELS} Axes", len(shown))
    _curves(shown[0], model)
    _spectrum(shown[1], model)
    _columns(shown[2], model)
    return shown


def _curves(ax: Axes, model: Explained) -> None:
    curves = model.learned_curve_[:CURVES]
    for index, curve in enumerate(curves):
        degrees = ", ".join(map(str, curve.degrees)) or "none"
        colour = line_colour(index, len(curves))
        ax.plot(curve.kappa, curve.values, color=colour, label=f"degrees {degrees}")
    ax.set_xlabel(r"$\kappa$, along the learned direction")
    ax.set_ylabel("mean output")
    cosine = model.direction_stability_.cosine[: len(curves)]
    ax.set_title("estimated cosine " + ", ".join(f"{c:.2f}" for c in cosine))
    ax.legend()


def _spectrum(ax: Axes, model: Explained) -> None:
    spikes = model.spikes_
    bulk = spikes.bulk[spikes.count :]
    bulk = bulk[bulk > 1e-9]
    bins: Any = 40
    if spikes.count and spikes.values[0] > 4 * spikes.edge and len(bulk):
        ax.set_xscale("log")
        bins = np.geomspace(bulk.min(), bulk.max() * 1.001, bins + 1)
    ax.hist(bulk, bins=bins, color="0.72", density=True)
    for value in spikes.values:
        ax.axvline(value, ymax=0.5, color=PALETTE[1])
    ax.axvline(spikes.edge, color=PALETTE[0], linestyle=":")
    ax.set_xlabel(r"singular value of $F/\sqrt{n}$")
    ax.set_title(f"{spikes.count} beyond the edge, {len(spikes.untrained)} untrained")


def _columns(ax: Axes, model: Explained) -> None:
    shares = model.feature_importances_
    order = np.argsort(shares)[::-1][:COLUMNS][::-1]
    names = getattr(model, "feature_names_in_", np.arange(len(shares)))
    ax.barh([str(names[i]) for i in order], shares[order], color=PALETTE[0])
    ax.set_xlabel("share of the squared slope")
