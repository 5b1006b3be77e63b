"""The target that rows show, and what the theory expects of a fit to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from ..core.errors import InvalidProblem, NotConverged
from ..core.problem import Problem
from ..core.types import FloatArray
from ..functions.activations import HermiteSum
from ..functions.nonlinearity import factorials
from ..theory import LossPrediction, Prediction, predict
from .directions import MAX_CURVE_DEGREE

_MIN_STANDARD_ERRORS = 2.0  # standard errors of a coefficient that counts
_SECOND_SIGNIFICANT = 5.0  # standard deviations of what a second direction explains by chance
_LEAST_COSINE = 0.1  # below it nothing can be said about the target beyond noise
_EQUAL_VARIANCES = 0.8  # effective directions, as a share of d, that count as all
_FEW_ROWS = 2  # times the fitted numbers: with fewer rows they are not fitted
_PRIOR_WEIGHT = 1e-4  # on squared coefficients: classes may be told apart without error
_ITERATIONS, _ATTEMPTS = 40, 8
_SQUARES_TOLERANCE = 1e-6  # relative change of the squares from which the fit is done
LARGEST_STEP = 4.0  # η/√N for reused rows and the logistic loss: beyond, minutes pass in vain


@dataclass(frozen=True)
class Expectation:
    """The theory's answer for one output, in units of the labels' variance.

    With the logistic loss errors are shares of wrong signs.
    """

    problem: Problem  # its target is the one estimated from the data
    prediction: Prediction | LossPrediction
    measured: float | None  # the same error, held out; None where nothing was chosen
    departures: tuple[str, ...]  # where the data leave the theory's assumptions

    @property
    def expected(self) -> float:
        """The predicted test error as a share of the labels' variance, or of the signs."""
        return self.prediction.test_error

    def __str__(self) -> str:
        seen = "" if self.measured is None else f", {self.measured:.3g} measured"
        unit = "signs" if self.problem.is_binary else "labels' variance"
        lines = [f"test error {self.expected:.3g} of the {unit} expected{seen}"]
        return "\n".join([*lines, *(f"  but: {text}" for text in self.departures)])


class EstimatedTarget(NamedTuple):
    """What labels of variance 1 are, as far as rows show."""

    target: HermiteSum | str  # in one direction, or with a second: c(z1) + a·z1·z2
    noise_std: float


@dataclass
class _Fit:
    """y = Σ c_k H_k(κ) + κ·(v·x) + a residual, κ = u·x of variance 1; v = 0 in the first place."""

    u: FloatArray  # (d,)
    v: FloatArray  # (d,)
    kappa: FloatArray  # (n,)
    basis: FloatArray  # (n, degrees + 1)
    c: FloatArray  # (degrees + 1,)
    residual: FloatArray  # (n,)

    @property
    def squares(self) -> float:
        return float(self.residual @ self.residual)


def estimated_target(X: FloatArray, y: FloatArray, beta: FloatArray) -> EstimatedTarget:
    """The target and the noise, from centred rows and labels of variance 1.

    A polynomial in one direction is fitted by least squares over coefficients *and* direction, from
    β on (Levenberg and Marquardt): its residual over the degrees of freedom is the noise, to a
    relative √(2/n). A polynomial along β itself, divided by powers of γ, scatters many times as
    much. If κ·(v·x) explains more than chance, the target has that product of two directions too.
    """
    n, d = X.shape
    fit = _fitted(X, y, _at(X, y, beta, np.zeros(d)), second=False)
    freedom = n - d - MAX_CURVE_DEGREE
    noise, product = fit.squares / freedom, 0.0
    if n >= _FEW_ROWS * (2 * d + MAX_CURVE_DEGREE):
        v = _second_direction(X, fit, noise)
        if v is not None:
            fit = _fitted(X, y, _at(X, y, fit.u, v), second=True)
            noise = fit.squares / (freedom - d + 1)
            part = fit.kappa * (X @ fit.v)
            part = part - fit.basis @ np.linalg.lstsq(fit.basis, part, rcond=None)[0]
            product = max(float(np.mean(part**2)) - noise * d / n, 0.0)
    return _assembled(fit, min(noise, 1.0), product)


def enough_rows(n: int, d: int) -> bool:
    """True if `estimated_target` can fit a direction to so many rows."""
    return n >= _FEW_ROWS * (d + MAX_CURVE_DEGREE)


def _at(X: FloatArray, y: FloatArray, u: FloatArray, v: FloatArray) -> _Fit:
    """The best coefficients for these directions."""
    kappa = X @ u
    size = float(np.sqrt(np.mean(kappa**2))) or 1.0
    u, kappa = u / size, kappa / size
    v = v - float(np.mean(kappa * (X @ v))) * u  # κ·(u·x) is κ² and belongs to c
    basis = np.asarray(
        np.polynomial.hermite_e.hermevander(kappa, MAX_CURVE_DEGREE), dtype=np.float64
    )
    rest = y - kappa * (X @ v)
    c = np.asarray(np.linalg.lstsq(basis, rest, rcond=None)[0], dtype=np.float64)
    return _Fit(u, v, kappa, basis, c, rest - basis @ c)


def _slopes(X: FloatArray, fit: _Fit) -> FloatArray:
    """Change of the output with u, (n, d), beside what the coefficients can follow."""
    slope = np.polynomial.hermite_e.hermeval(fit.kappa, np.polynomial.hermite_e.hermeder(fit.c))
    across = X - np.outer(fit.kappa, fit.kappa @ X / len(X))
    return (slope + X @ fit.v)[:, None] * across


def _fitted(X: FloatArray, y: FloatArray, fit: _Fit, *, second: bool) -> _Fit:
    """Least squares over u, and over v where there is a second direction."""
    d, damping = X.shape[1], 1e-3
    for _ in range(_ITERATIONS):
        J = _slopes(X, fit)
        if second:
            J = np.hstack([J, fit.kappa[:, None] * X])
        Q = np.linalg.qr(fit.basis)[0]
        J = J - Q @ (Q.T @ J)
        gram, force = J.T @ J, J.T @ fit.residual
        scale = float(np.trace(gram)) / len(gram)
        if scale <= np.finfo(float).tiny:  # labels that do not vary
            return fit
        for _ in range(_ATTEMPTS):
            move = np.linalg.solve(gram + damping * scale * np.eye(len(gram)), force)
            tried = _at(X, y, fit.u + move[:d], fit.v + move[d:] if second else fit.v)
            if tried.squares <= fit.squares:
                break
            damping *= 10.0
        else:
            return fit
        gain = 1.0 - tried.squares / max(fit.squares, np.finfo(float).tiny)
        fit, damping = tried, max(damping / 10.0, 1e-9)
        if gain < _SQUARES_TOLERANCE:
            break
    return fit


def _second_direction(X: FloatArray, fit: _Fit, noise: float) -> FloatArray | None:
    """v for which κ·(v·x) explains more of the residual than chance; None without one."""
    J = _slopes(X, fit)
    Q = np.linalg.qr(np.hstack([fit.basis, J]))[0]
    products = fit.kappa[:, None] * X
    free = products - Q @ (Q.T @ products)
    v = np.linalg.lstsq(free, fit.residual, rcond=1e-8)[0]
    explained, d = float(np.sum((free @ v) ** 2)), X.shape[1]
    chance = noise * (d + _SECOND_SIGNIFICANT * (2.0 * d) ** 0.5)
    return np.asarray(v) if explained > chance else None


def _assembled(fit: _Fit, noise: float, product: float) -> EstimatedTarget:
    """Coefficients beyond two standard errors, scaled to what noise and product leave."""
    inverse = np.linalg.pinv(fit.basis)
    errors = np.sqrt((inverse**2) @ fit.residual**2)  # by White: the residual varies with κ
    c = np.where(np.abs(fit.c) > _MIN_STANDARD_ERRORS * errors, fit.c, 0.0)
    c[0] = 0.0  # the labels are centred
    squares = float(np.sum(factorials(MAX_CURVE_DEGREE + 1) * c**2))
    if squares == 0.0:
        return EstimatedTarget(HermiteSum("estimated", (0.0,) * (MAX_CURVE_DEGREE + 1)), 1.0)
    left = 1.0 - noise - product
    if left <= 0.0:  # hardly anything is along κ
        product, left = 0.0, max(1.0 - noise, 1e-12)
    c *= np.sqrt(left / squares)
    deviation = float(np.sqrt(max(noise, 1e-12)))
    if product == 0.0:
        return EstimatedTarget(HermiteSum("estimated", tuple(c.tolist())), deviation)
    powers = np.polynomial.hermite_e.herme2poly(c)
    terms = [f"({float(each)!r})*z1^{k}" for k, each in enumerate(powers) if k and each != 0.0]
    return EstimatedTarget(
        " + ".join([f"({float(powers[0])!r})", *terms, f"{product**0.5!r}*z1*z2"]), deviation
    )


def projected_target(kappa: FloatArray, y: FloatArray, cosine: float) -> EstimatedTarget:
    """The same from few rows: κ of rows that the step has not seen, and its cosine with β⋆.

    E[y|κ] = Σ c⋆_kγ^k H_k(κ) for Gaussian inputs, fitted by least squares: moments E[y H_k(κ)]
    would scatter with all of y, not only with what κ does not explain. Coefficients within two
    standard errors of 0 count as 0; where those that are left explain more than all of y they are
    scaled down.
    """
    c = np.zeros(MAX_CURVE_DEGREE + 1)
    sizes = factorials(MAX_CURVE_DEGREE + 1)
    if cosine > _LEAST_COSINE:
        basis = np.polynomial.hermite_e.hermevander(kappa, MAX_CURVE_DEGREE)  # (n, degrees + 1)
        inverse = np.linalg.pinv(basis)
        fitted = inverse @ y
        # Errors by White's estimate: what is left varies with κ.
        errors = np.sqrt((inverse**2) @ (y - basis @ fitted) ** 2)
        shown = np.abs(fitted) > _MIN_STANDARD_ERRORS * errors
        shown[0] = False  # the labels are centred
        c = np.where(shown, fitted / cosine ** np.arange(MAX_CURVE_DEGREE + 1), 0.0)
    explained = float(np.sum(sizes * c**2))
    if explained > 1.0:
        c /= np.sqrt(explained)
        explained = 1.0
    target = HermiteSum("estimated", tuple(c.tolist()))
    return EstimatedTarget(target, float(np.sqrt(max(1.0 - explained, 1e-12))))


def target_of_signs(X: FloatArray, signs: FloatArray, beta: FloatArray) -> EstimatedTarget:
    """A target g of one direction with labels sign(g(κ) + ε), ε ~ N(0, 1), from centred rows.

    The direction is that of `estimated_target`; along it g is a polynomial of greatest likelihood.
    """
    y = signs - signs.mean()
    spread = float(y.std())
    if spread == 0.0 or not enough_rows(*X.shape):
        rule = f"must have two classes and at least {_FEW_ROWS} rows for each column for theory_"
        raise InvalidProblem("y", rule, f"{len(X)} rows")
    fit = _fitted(X, y / spread, _at(X, y / spread, beta, np.zeros(X.shape[1])), second=False)
    signed = signs[:, None] * fit.basis

    def loss(c: FloatArray) -> tuple[float, FloatArray]:
        at = signed @ c
        density = np.exp(-0.5 * at**2 - log_ndtr(at)) / np.sqrt(2.0 * np.pi)
        penalty = _PRIOR_WEIGHT * float(c @ c)
        return (
            float(-np.mean(log_ndtr(at)) + penalty),
            np.asarray(-density @ signed / len(at) + 2.0 * _PRIOR_WEIGHT * c),
        )

    found = minimize(loss, np.zeros(MAX_CURVE_DEGREE + 1), jac=True, method="BFGS")
    return EstimatedTarget(HermiteSum("estimated", tuple(found.x.tolist())), 1.0)


def predicted(problem: Problem, *, intercept: bool, same_rows: bool) -> Prediction | LossPrediction:
    """The theory's answer with an intercept and on the step's rows, as far as it has one.

    Where both together, or one of them, are refused or do not converge, the other or none is left.
    """
    largest = problem.step_size / problem.width**0.5
    same_rows = same_rows and largest <= LARGEST_STEP
    fields = {"intercept": intercept, "rows": "same" if same_rows else "fresh"}
    plain = {"intercept": False, "rows": "fresh"}
    for name in ("", "rows", "intercept"):  # what is given up
        try:
            asked = problem.replace(**{**fields, **({name: plain[name]} if name else {})})
            found: Prediction | LossPrediction = predict(asked)
        except (InvalidProblem, NotConverged):
            continue
        return found
    last: Prediction | LossPrediction = predict(problem)
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
