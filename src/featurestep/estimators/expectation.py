"""What the theory says for these sizes and this target, and how far the data are from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem, NotConverged
from ..core.problem import Problem
from ..core.types import FloatArray
from ..functions.activations import HermiteSum
from ..functions.nonlinearity import factorials
from ..theory import Prediction, predict
from .directions import DEGREES

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
