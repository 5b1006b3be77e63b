"""Properties that explain a fitted estimator, and a picture of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..core.types import Axes, FloatArray
from ..plots.style import PALETTE, line_colour, new_axes, styled
from .base import OneStepBase
from .directions import (
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
from .expectation import (
    LARGEST_STEP,
    Expectation,
    alignment,
    departures_of_inputs,
    enough_rows,
    estimated_covariance,
    estimated_target,
    predicted,
    projected_target,
    target_of_signs,
)
from .selection import Rows, Sample, cross_validated

MAX_PANELS = 3
MAX_COLUMNS = 10  # of the most important ones
MAX_CURVES = 6


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
        With the logistic loss it is for steps up to 4√N; larger ones are refused.
        """
        check_is_fitted(self)
        logistic = self._loss == "logistic"
        size = self.step_size_ / self.width**0.5
        if logistic and size > LARGEST_STEP:
            rule = f"must be at most {LARGEST_STEP:g}√N for theory_ with the logistic loss"
            raise InvalidProblem("step_size", rule, f"{size:.3g}√N")
        cosines = self.direction_stability_.cosine
        step, rows = self._halves
        X = self._sample.X[rows]
        every = step if self.split == "reuse" else np.concatenate([step, rows])
        Y, labels = (_in_own_units(self._sample.Y[some]) for some in (rows, every))
        covariance = estimated_covariance(self._sample.X)
        shown = np.asarray(self._sample.X[every], dtype=np.float64)
        shown -= shown.mean(axis=0)
        found = []
        for k, place in enumerate(self._places()):
            kappa = self._fresh_kappa(k, place)
            if logistic:
                signs = np.where(self._sample.Y[every, k] > 0, 1.0, -1.0)
                target, noise_std = target_of_signs(shown, signs, place.beta)
            elif enough_rows(*shown.shape):
                target, noise_std = estimated_target(shown, labels[:, k], place.beta)
            else:
                cosine = alignment(float(cosines[k]), covariance)
                target, noise_std = projected_target(kappa, Y[:, k], cosine)
            problem = self._problem(
                self.input_map_.d,
                n=len(rows),
                n_step=len(step),
                step_size=self.step_size_,
                ridge=self.ridge_,
                target=target,
                noise_std=noise_std,
                covariance=covariance,
                loss=self._loss,
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
        if self._loss == "logistic":  # the selection's losses are likelihoods
            return None
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
                f"(reused rows are covered up to η = {LARGEST_STEP:g}√N, for one direction)",
            ),
            (
                bool(self.fit_intercept) and not problem.intercept,
                "expect a lower error if the target has an even part: the theory is for a fit "
                "without intercept, here one is fitted",
            ),
            (self.steps > 1, f"the theory is for one step; here there are {self.steps}"),
        )
        return tuple(text for departs, text in checks if departs)


def _in_own_units(Y: FloatArray) -> FloatArray:
    """Labels of mean 0 and variance 1: the fluctuation of both is shared by the coefficients."""
    Y = Y - Y.mean(axis=0)
    spread = np.sqrt(np.mean(Y**2, axis=0))
    return np.asarray(Y / np.where(spread > 0, spread, 1.0))


@styled
def _draw(model: Explained, axes: Any) -> list[Axes]:
    """Curves, singular values and columns on given Axes, or on a new figure."""
    if axes is None:
        shown = new_axes(columns=MAX_PANELS, width=6.8, height=2.3, sharex=False)
    else:
        shown = list(np.ravel(axes))
    if len(shown) != MAX_PANELS:
        raise InvalidProblem("axes", f"must be {MAX_PANELS} Axes", len(shown))
    _curves(shown[0], model)
    _spectrum(shown[1], model)
    _columns(shown[2], model)
    return shown


def _curves(ax: Axes, model: Explained) -> None:
    curves = model.learned_curve_[:MAX_CURVES]
    for index, curve in enumerate(curves):
        degrees = ", ".join(map(str, curve.degrees)) or "none"
        colour = line_colour(index, len(curves))
        ax.plot(curve.kappa, curve.values, color=colour, label=f"degrees {degrees}")
    ax.set_xlabel(r"$\kappa$, along the learned direction")
    ax.set_ylabel("mean output")
    cosine = model.direction_stability_.cosine[: len(curves)]
    shown = ", ".join(f"{c:.2f}" for c in cosine)
    ax.set_title(f"learned function (cosine ≈ {shown})")
    ax.legend()


def _spectrum(ax: Axes, model: Explained) -> None:
    spikes = model.spikes_
    bulk = spikes.bulk[spikes.count :]
    bulk = bulk[bulk > 1e-9]
    bins: Any = 40
    if spikes.count and spikes.values[0] > 4 * spikes.edge and len(bulk):
        ax.set_xscale("log")
        bins = np.geomspace(bulk.min(), bulk.max() * 1.001, bins + 1)
    ax.hist(bulk, bins=bins, color="0.72")
    for value in spikes.values:
        ax.axvline(value, ymax=0.5, color=PALETTE[1])
    ax.axvline(spikes.edge, color=PALETTE[0], linestyle=":")
    ax.set_xlabel(r"singular value of $F/\sqrt{n}$")
    ax.set_ylabel("how many")
    ax.set_title(f"spikes: {spikes.count} (without a step {len(spikes.untrained)})")


def _columns(ax: Axes, model: Explained) -> None:
    shares = model.feature_importances_
    order = np.argsort(shares)[::-1][:MAX_COLUMNS][::-1]
    names = getattr(model, "feature_names_in_", np.arange(len(shares)))
    ax.barh([str(names[i]) for i in order], shares[order], color=PALETTE[0])
    ax.set_xlabel("share of the squared slope")
    ax.set_title("columns that matter")
