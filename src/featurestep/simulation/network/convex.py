"""The readout of any convex loss: â = argmin (1/n)Σℓ(y, f) + (λ/2)‖a‖², f = Fa + b (eq. 70).

Newton's method for losses with a slope, an interior-point method for the hinge. Both solve one
weighted ridge system a step, on the smaller side of F. Matrices live in the backend, in float64;
vectors on the host, where they cost nothing beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...core.errors import NotConverged, SingularSystem
from ...core.types import FloatArray
from ...functions.roots import find_root
from ..backend import Array, Backend
from .losses import LOSSES, SampleLoss, sample_error, weighted
from .plan import SCALED_ROWS, ReadoutFit
from .readout import FittedReadout, refuse_non_finite

MAX_GRADIENT = 1e-9  # largest gradient at a solution, relative to that at a = 0
GRADIENT_AIM = 1e-12  # where the iteration ends; below `MAX_GRADIENT` also without progress
DUALITY_GAP = 1e-8  # largest gap at a solution of the hinge, relative to the objective
AIM_OF_GAP = 1e-12
MAX_STEPS = 200
_DAMPING = 1e-3  # of curvatures, times the relative gradient: an intercept needs some curvature
_MIN_WEIGHT = 1e-300  # weights below this count as 0
_TO_BORDER = 0.995  # of the longest interior-point step


class ConvexReadout(NamedTuple):
    """A fitted readout; the next ridge's fit may start from it."""

    a: FloatArray  # (N,)
    b: float
    f: FloatArray  # (n,): outputs on the training samples
    coordinates: FloatArray  # of a, see `Features`
    steps: int
    residual: float  # relative gradient, or relative duality gap


class Direction(NamedTuple):
    """A step of the coordinates, the readout, the outputs and the intercept."""

    coordinates: FloatArray
    a: FloatArray
    f: FloatArray
    b: float


class Features:
    """F (n, N) with products, and weighted ridge systems on one of its sides.

    A readout is given by its coordinates c: a = Fᵀc on the samples' side, a = c on the neurons'.
    """

    def __init__(self, backend: Backend, F: Array, *, by_samples: bool) -> None:
        self.backend, self.F = backend, F
        self.n, self.N = F.shape
        self.by_samples = by_samples

    @cached_property
    def gram(self) -> Array:
        """FFᵀ, lower triangle."""
        gram = self.backend.outer_gram(self.F)
        refuse_non_finite(self.backend, gram)
        return gram

    def outputs(self, a: FloatArray) -> FloatArray:
        """Fa."""
        row = self.backend.put(a[None, :])
        return self.backend.get(self.backend.product(self.F, row))[:, 0]

    def across(self, v: FloatArray) -> FloatArray:
        """Fᵀv."""
        column = self.backend.put(v[:, None])
        return self.backend.get(self.backend.product_across(self.F, column))[:, 0]

    def readout(self, coordinates: FloatArray) -> FloatArray:
        """a of its coordinates."""
        return self.across(coordinates) if self.by_samples else coordinates

    def system(self, w: FloatArray, shift: float, intercept: bool) -> System:
        """The factored matrix FᵀWF + shift·I, bordered by the intercept's row."""
        kind = SampleSystem if self.by_samples else NeuronSystem
        return kind(self, w, shift, intercept)


class System:
    """[FᵀWF + shift·I, FᵀW1; 1ᵀWF, Σw](δa, δb) = −(R, r_b); without intercept the first row."""

    def __init__(self, features: Features, w: FloatArray, shift: float, intercept: bool) -> None:
        self.features, self.w, self.shift, self.intercept = features, w, shift, intercept
        self._prepare()

    def _prepare(self) -> None:
        raise NotImplementedError

    def step(self, residual: FloatArray, slope: float) -> Direction:
        """The solution for a right-hand side −(R, r_b), where `residual` has R's coordinates."""
        delta, b = self._solved(residual, slope)
        a = self.features.readout(delta)
        return Direction(delta, a, self.features.outputs(a) + b, b)

    def _solved(self, residual: FloatArray, slope: float) -> tuple[FloatArray, float]:
        raise NotImplementedError

    def _factor(self, matrix: Array) -> Array:
        U, info = self.features.backend.cholesky(matrix, self.shift)
        if int(info) != 0:
            raise SingularSystem(
                f"the readout's Newton system is singular to float64 precision: ridge·n = "
                f"{self.shift:.3g}; raise the ridge"
            )
        return U

    def _back(self, U: Array, *rhs: FloatArray) -> FloatArray:
        """The solutions of right-hand sides, as rows."""
        backend = self.features.backend
        return backend.get(backend.cholesky_solve(U, backend.put(np.stack(rhs, axis=1)))).T


class SampleSystem(System):
    """On the samples' side, with B = shift·I + SFFᵀS (n, n), S = √W.

    (shift + WFFᵀ)⁻¹v is v/shift − SB⁻¹SFFᵀv/shift or SB⁻¹S⁻¹v; the second has no cancellation, the
    first none where w = 0.
    """

    def _prepare(self) -> None:
        backend = self.features.backend
        self.root = np.sqrt(np.where(self.w > _MIN_WEIGHT, self.w, 0.0))
        S = backend.put(self.root[:, None])
        scaled = self.features.gram * S
        scaled *= S.T
        self.U = self._factor(scaled)

    def _solved(self, residual: FloatArray, slope: float) -> tuple[FloatArray, float]:
        curved, F = self.root > 0.0, self.features
        flat = np.where(curved, 0.0, residual) / self.shift
        rhs = np.where(curved, residual / np.where(curved, self.root, 1.0), 0.0)
        if flat.any():
            rhs = rhs - self.root * F.outputs(F.across(flat))
        sides = [rhs, self.root] if self.intercept else [rhs]
        solved = self.root * self._back(self.U, *sides)
        found = flat + solved[0]
        if not self.intercept:
            return -found, 0.0
        b = (residual.sum() - slope - self.shift * found.sum()) / (self.shift * solved[1].sum())
        return -found - b * solved[1], float(b)


class NeuronSystem(System):
    """On the neurons' side, with FᵀWF (N, N).

    An intercept is eliminated by centring F with the weights: no difference of large numbers.
    """

    def _prepare(self) -> None:
        F, backend = self.features.F, self.features.backend
        self.total = float(self.w.sum())
        self.mean = self.features.across(self.w) / self.total if self.intercept else None
        gram = backend.zeros(self.features.N, self.features.N)
        S = backend.put(np.sqrt(self.w)[:, None])
        centre = None if self.mean is None else backend.put(self.mean[None, :])
        for start in range(0, self.features.n, SCALED_ROWS):
            rows = slice(start, start + SCALED_ROWS)
            block = F[rows] * S[rows] if centre is None else (F[rows] - centre) * S[rows]
            backend.add_gram(gram, block)
        refuse_non_finite(backend, gram)
        self.U = self._factor(gram)

    def _solved(self, residual: FloatArray, slope: float) -> tuple[FloatArray, float]:
        if self.mean is None:
            return -self._back(self.U, residual)[0], 0.0
        delta = -self._back(self.U, residual - self.mean * slope)[0]
        return delta, float(-slope / self.total - self.mean @ delta)


@dataclass
class ConvexNumbers(FittedReadout):
    """Of another loss than the square, or with an intercept: its numbers."""

    intercept: float
    train_loss: float
    train_objective: float
    train_error: float
    readout_norm: float
    test_loss: float | None = None  # measured later
    test_error: float | None = None


def convex_solution(
    fit: ReadoutFit, backend: Backend, found: ConvexReadout, y: FloatArray
) -> ConvexNumbers:
    """The numbers of a fitted readout on its training samples."""
    loss = float(LOSSES[fit.loss].value(y, found.f).mean())
    square = float(found.a @ found.a)
    return ConvexNumbers(
        fit=fit,
        a_hat=backend.put(found.a),
        intercept=found.b,
        train_loss=loss,
        train_objective=loss + 0.5 * fit.ridge * square,
        train_error=float(sample_error(fit.loss, y, found.f).mean()),
        readout_norm=square**0.5,
    )


def along_ridges(fits: Sequence[ReadoutFit]) -> Iterator[list[ReadoutFit]]:
    """Fits that differ in their ridge only, largest first: each starts from the one before."""
    paths: dict[ReadoutFit, list[ReadoutFit]] = {}
    for fit in fits:
        paths.setdefault(fit._replace(ridge=0.0), []).append(fit)
    for path in paths.values():
        yield sorted(path, key=lambda fit: -fit.ridge)


def fit_readout(
    features: Features,
    y: FloatArray,
    *,
    loss: str,
    ridge: float,
    intercept: bool,
    weights: FloatArray | None = None,
    start: ConvexReadout | None = None,
) -> ConvexReadout:
    """The minimum of eq. 70 for labels y (n,); `start` is a solution of a neighbouring ridge.

    weights: (n,), factors of the samples' losses; not for the hinge.
    """
    if intercept and loss == "logistic" and abs(y.sum()) == len(y):
        raise SingularSystem(
            f"all {len(y)} labels have one sign: with loss {loss} the intercept has no finite value"
        )
    if loss == "hinge":
        return _interior_point(features, y, ridge * features.n, intercept)
    kind = LOSSES[loss] if weights is None else weighted(LOSSES[loss], weights)
    return _newton(features, y, kind, ridge * features.n, intercept, start)


def _newton(
    F: Features,
    y: FloatArray,
    loss: SampleLoss,
    shift: float,
    intercept: bool,
    start: ConvexReadout | None,
) -> ConvexReadout:
    """Newton's method with a line search, until the gradient is `GRADIENT_AIM` of that at a = 0."""
    coordinates = np.zeros(F.n if F.by_samples else F.N) if start is None else start.coordinates
    b = 0.0 if start is None else start.b
    zero = loss.slope(y, np.zeros(F.n))
    scale = float(np.hypot(np.linalg.norm(F.across(zero)), zero.sum() if intercept else 0.0))
    last = np.inf
    for steps in range(MAX_STEPS):
        a = F.readout(coordinates)
        f = F.outputs(a) + b
        slopes = loss.slope(y, f)
        gradient, at_b = F.across(slopes) + shift * a, slopes.sum() if intercept else 0.0
        relative = float(np.hypot(np.linalg.norm(gradient), at_b)) / (scale or 1.0)
        if relative <= GRADIENT_AIM or (relative <= MAX_GRADIENT and relative > 0.5 * last):
            return ConvexReadout(a, b, f, coordinates, steps, relative)
        last = relative
        w = loss.curvature(y, f)
        if intercept:
            w = w + _DAMPING * min(relative, 1.0)
        residual = (slopes + shift * coordinates) if F.by_samples else gradient
        to = F.system(w, shift, intercept).step(residual, float(at_b))
        linear, square = shift * float(a @ to.a), shift * float(to.a @ to.a)
        size = _line_search(loss, y, f, to.f, linear, square)
        coordinates, b = coordinates + size * to.coordinates, b + size * to.b
    raise NotConverged(
        f"the readout's fit stopped at a gradient of {relative:.1e} of its start, more than "
        f"{MAX_GRADIENT:g}; raise the ridge",
        residual=relative,
        iterations=MAX_STEPS,
    )


def _line_search(
    loss: SampleLoss, y: FloatArray, f: FloatArray, df: FloatArray, linear: float, square: float
) -> float:
    """The size of a step along df: 1 where the objective's slope falls tenfold, else its minimum.

    Both matter for losses with corners only; the objective is convex along the line.
    """

    def slope(size: float) -> float:
        return float(loss.slope(y, f + size * df) @ df + linear + size * square)

    at_start, at_end = slope(0.0), slope(1.0)
    if at_start >= 0.0 or abs(at_end) <= 0.1 * abs(at_start):
        return 1.0
    low, high = 0.0, 1.0
    while at_end < 0.0 and high < 1e6:
        low, at_start, high = high, at_end, 2.0 * high
        at_end = slope(high)
    if at_end <= 0.0:
        return high
    return find_root(slope, low, high, values=(at_start, at_end), relative=1e-3)


class _Interior(NamedTuple):
    """A point inside the constraints, or a step between two."""

    alpha: FloatArray  # (n,): 0 < α < 1
    s: FloatArray  # > 0: slack above the margin
    xi: FloatArray  # > 0: slack below it
    b: float

    def moved(self, step: _Interior, size: float) -> _Interior:
        """The point after a part of a step."""
        return _Interior(
            self.alpha + size * step.alpha,
            self.s + size * step.s,
            self.xi + size * step.xi,
            self.b + size * step.b,
        )

    def room(self, step: _Interior) -> float:
        """The longest part of a step that stays inside."""
        pairs = ((self.alpha, step.alpha), (1.0 - self.alpha, -step.alpha), (self.s, step.s),
                 (self.xi, step.xi))  # fmt: skip
        with np.errstate(over="ignore"):
            return float(min(np.min(-x[d < 0] / d[d < 0], initial=np.inf) for x, d in pairs))

    @property
    def products(self) -> tuple[FloatArray, FloatArray]:
        """sα and ξ(1 − α), which are 0 at the solution."""
        return self.s * self.alpha, self.xi * (1.0 - self.alpha)


def _interior_point(F: Features, y: FloatArray, shift: float, intercept: bool) -> ConvexReadout:
    """The hinge's fit by Mehrotra's method, until the duality gap is `AIM_OF_GAP`.

    Unknowns: 0 < α < 1 with a = Fᵀ(yα)/shift, the intercept, and slacks of s − ξ = yf − 1. It is
    on the samples' side whatever the sizes: a step of α from the neurons' side loses all digits.
    """
    pull = F.across(y)  # a is θ·pull/shift at α = θ
    theta = float(np.clip(shift * F.n / max(float(pull @ pull), 1e-300), 0.01, 0.5))
    a = theta * pull / shift
    at = _Interior(np.full(F.n, theta), *_slacks(y, F.outputs(a)), 0.0)
    best = ConvexReadout(a, 0.0, F.outputs(a), at.alpha, 0, np.inf)
    for steps in range(MAX_STEPS):
        a = F.across(y * at.alpha) / shift
        f = F.outputs(a) + at.b
        unbalanced = float((y * at.alpha).sum()) if intercept else 0.0
        square = shift * float(a @ a)
        objective = float(LOSSES["hinge"].value(y, f).sum()) + 0.5 * square
        dual = float(at.alpha.sum()) - 0.5 * square
        gap = (objective - dual + abs(at.b * unbalanced)) / objective
        stalls = best.residual <= DUALITY_GAP and gap > 0.5 * best.residual
        if gap < best.residual:
            best = ConvexReadout(a, at.b, f, y * at.alpha / shift, steps, gap)
        if gap <= AIM_OF_GAP or stalls:
            break
        system = _InteriorSystem(F, y, at, f, shift, unbalanced if intercept else None)
        first, second = at.products
        mu = float(np.mean(first + second))
        to = system.step(-first, -second)
        after = at.moved(to, min(1.0, at.room(to)))
        aim = 0.5 * mu * (float(np.mean(sum(after.products))) / mu) ** 3
        to = system.step(aim - first - to.s * to.alpha, aim - second + to.xi * to.alpha)
        at = at.moved(to, min(1.0, _TO_BORDER * at.room(to)))
        del system  # its matrix, before the next one is made
    if not best.residual <= DUALITY_GAP:
        raise NotConverged(
            f"the hinge's fit stopped at a relative duality gap of {best.residual:.1e}, more than "
            f"{DUALITY_GAP:g}; raise the ridge",
            residual=best.residual,
            iterations=MAX_STEPS,
        )
    return best


def _slacks(y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """s and ξ ≥ 1 with s − ξ = yf − 1."""
    return 1.0 + np.maximum(y * f - 1.0, 0.0), 1.0 + np.maximum(1.0 - y * f, 0.0)


class _InteriorSystem:
    """The linear system of an interior-point step; `unbalanced` is Σyα, None without intercept."""

    def __init__(
        self,
        F: Features,
        y: FloatArray,
        at: _Interior,
        f: FloatArray,
        shift: float,
        unbalanced: float | None,
    ) -> None:
        self.y, self.at, self.shift, self.unbalanced = y, at, shift, unbalanced or 0.0
        self.left = 1.0 - at.alpha
        self.missing = at.s - at.xi - y * f + 1.0  # of the constraint, by rounding
        with np.errstate(over="ignore"):
            self.w = 1.0 / (at.s / at.alpha + at.xi / self.left)
        self.system = F.system(self.w, shift, unbalanced is not None)

    def step(self, first: FloatArray, second: FloatArray) -> _Interior:
        """The step by which sα and ξ(1 − α) change by so much, to first order."""
        at = self.at
        rho = first / at.alpha - second / self.left + self.missing
        residual = -self.w * self.y * rho
        to = self.system.step(residual, float(residual.sum()) - self.unbalanced)
        alpha = self.shift * self.y * to.coordinates
        s, xi = (first - at.s * alpha) / at.alpha, (second + at.xi * alpha) / self.left
        return _Interior(alpha, s, xi, to.b)
