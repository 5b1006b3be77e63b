"""Step size and ridge from the data: by exact leave-one-out, or by a half where that is biased.

Step sizes are tried as multiples of the one that changes the pre-activations as much as they are
large, ridges as multiples of the mean eigenvalue of the smaller Gram matrix over n, so that
neither depends on the units of the data. The first step size tried is 0: random features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..core.types import FloatArray
from ..simulation import Array, GradientStep, NetworkOnRows, sum_of_squares
from .readouts import Readouts, centred, held_out, mean_eigenvalue, outputs, readouts

STEPS = (0.0, 1.0, 2.0, 4.0, 8.0)
RIDGES = {
    "float64": 10.0 ** np.arange(-6.0, 2.1, 0.5),
    "float32": 10.0 ** np.arange(-4.0, 2.1, 0.5),
}
FOLDS = 5  # of an error that is measured after the choice

Rows = np.ndarray[tuple[int], np.dtype[np.intp]]


class Verdict(NamedTuple):
    """How good held-out predictions are: the higher the score the better, then the loss."""

    score: float
    loss: float


# Of predictions (n, outputs), labels (n, outputs) and weights (n,) of mean 1.
Judge = Callable[[FloatArray, FloatArray, FloatArray], Verdict]


@dataclass(frozen=True)
class Selection:
    """What was tried, and how it did."""

    method: str  # "leave-one-out" or "held-out half"
    step_sizes: FloatArray  # (steps,): η for the rows of the fit
    ridges: FloatArray  # (steps, ridges): λ
    scores: FloatArray  # (steps, ridges)
    losses: FloatArray  # (steps, ridges): mean square of what held-out predictions miss

    @property
    def best(self) -> tuple[int, int]:
        """The place of the best score; among equals that of the smallest loss."""
        top = self.scores >= self.scores.max()
        where = np.unravel_index(np.argmin(np.where(top, self.losses, np.inf)), top.shape)
        return int(where[0]), int(where[1])


@dataclass(frozen=True)
class SearchPlan:
    """What the user asked for."""

    steps: int
    step_size: float | None  # None: to be chosen
    ridge: float | None
    intercept: bool
    reuse: bool
    loss: str = "square"  # of the readout: square or logistic


@dataclass(frozen=True)
class Sample:
    """Network inputs, the step's residuals, the readout's labels and the weights of all rows."""

    X: Any  # (n, d)
    R: FloatArray  # (n, outputs): labels as the step sees them, times the weights
    Y: FloatArray  # (n, outputs): labels as the readout does
    w: FloatArray  # (n,), of mean 1


@dataclass(frozen=True)
class Fitted:
    """The trained network."""

    W: Array  # (N, d)
    a_hat: FloatArray  # (N, outputs)
    intercept: FloatArray  # (outputs,)
    step_size: float
    ridge: float
    beta: FloatArray  # (outputs, d), of the first step
    selection: Selection | None


class Path:
    """The network after steps of several sizes on some rows, and its features on others."""

    def __init__(
        self, network: NetworkOnRows, plan: SearchPlan, sample: Sample, step_rows: Rows
    ) -> None:
        self.network, self.plan = network, plan
        self.X, self.R = sample.X[step_rows], sample.R[step_rows]
        self.first: GradientStep = self._first()
        self.unit = self._unit()

    def _first(self) -> GradientStep:
        network = self.network
        if self.plan.step_size != 0.0:
            return network.step(network.W0, self.X, self.R)
        nothing = network.backend.zeros(*network.W0.shape)
        return GradientStep(nothing, np.asarray(self.R.T @ self.X / len(self.X), dtype=np.float64))

    def _unit(self) -> float:
        """The step whose change of the pre-activations has their own size; 0 if no step has."""
        if self.plan.step_size is not None:
            return 0.0  # nobody asks
        network = self.network
        before = sum_of_squares(network.project(self.X, network.W0))
        change = sum_of_squares(network.project(self.X, self.first.G))
        return float(np.sqrt(before / change)) if change > 0 else 0.0

    def step_sizes(self) -> FloatArray:
        """The η to be tried."""
        if self.plan.step_size is not None:
            return np.array([self.plan.step_size])
        return np.array(STEPS) * self.unit if self.unit > 0 else np.zeros(1)

    def weights(self, eta: float) -> Array:
        """W after the steps."""
        return self.network.stepped(self.first, self.X, self.R, eta, self.plan.steps)

    def features(self, X: Any, sizes: Sequence[float] | FloatArray) -> Iterator[Array]:
        """Features of some rows for each of these step sizes; the array is reused."""
        network = self.network
        if self.plan.steps == 1:
            P0, P1 = network.project(X, network.W0), network.project(X, self.first.G)
            out = network.backend.empty(*P0.shape)
            for eta in sizes:
                yield network.features(((P0, 1.0), (P1, float(eta))), out)
        else:
            for eta in sizes:
                yield network.features_of(X, self.weights(float(eta)))


def train(
    network: NetworkOnRows,
    plan: SearchPlan,
    sample: Sample,
    halves: tuple[Rows, Rows],
    judge: Judge,
    judge_of_steps: Judge,
) -> Fitted:
    """Choose what is to be chosen, take the steps, fit the readout.

    `halves` are the rows of the step and of the readout. The step size is chosen with the square
    loss, by `judge_of_steps`; the ridge of another loss is chosen with that loss, by `judge`.
    """
    selection = None
    if plan.loss != "square" and plan.step_size is None:
        square = replace(plan, loss="square", ridge=None)
        path = Path(network, square, sample, halves[0])
        first = _select(network, square, sample, halves, path, judge_of_steps)
        plan = replace(plan, step_size=float(first.step_sizes[first.best[0]]))
    path = Path(network, plan, sample, halves[0])
    if plan.step_size is not None and plan.ridge is not None:
        eta, ridge = plan.step_size, plan.ridge
    else:
        selection = _select(network, plan, sample, halves, path, judge)
        eta = float(selection.step_sizes[selection.best[0]])
        ridge = float(selection.ridges[selection.best])
    W = path.weights(eta)
    rows = halves[1]
    F = network.features_of(sample.X[rows], W)
    given = replace(plan, ridge=ridge)
    ((a_hat, offset),) = _fitted(network, given, F, sample, rows, np.ones(1))[0]
    return Fitted(W, a_hat, offset, eta, ridge, path.first.beta, selection)


def _select(
    network: NetworkOnRows,
    plan: SearchPlan,
    sample: Sample,
    halves: tuple[Rows, Rows],
    path: Path,
    judge: Judge,
) -> Selection:
    """By leave-one-out where it is exact: a square loss on rows that the step has not seen."""
    if plan.loss == "square" and not plan.reuse:
        return _by_leave_one_out(network, plan, path, sample, halves[1], judge)
    return _by_held_out_half(network, plan, sample, halves, path, judge)


def _by_leave_one_out(
    network: NetworkOnRows, plan: SearchPlan, path: Path, sample: Sample, rows: Rows, judge: Judge
) -> Selection:
    """One factorisation for each step size, exact for all ridges."""
    Y, w = sample.Y[rows], sample.w[rows]
    ridges, verdicts = [], []
    sizes = path.step_sizes()
    for F in path.features(sample.X[rows], sizes):
        F, labels, _, _ = centred(network.backend, F, Y, w, intercept=plan.intercept)
        scale = mean_eigenvalue(F) if plan.ridge is None else plan.ridge
        ridges.append(scale * _multiples(plan, network))
        missed = held_out(network.backend, F, labels, w, ridges[-1], intercept=plan.intercept)
        verdicts.append([judge(Y - each, Y, w) for each in missed])
    table = np.array(verdicts)  # (steps, ridges, 2)
    return Selection("leave-one-out", sizes, np.array(ridges), table[..., 0], table[..., 1])


def _by_held_out_half(
    network: NetworkOnRows,
    plan: SearchPlan,
    sample: Sample,
    halves: tuple[Rows, Rows],
    path: Path,
    judge: Judge,
) -> Selection:
    """Steps and readouts of one half of the rows, judged on the other: no label is seen twice."""
    rows = halves[1]  # they come shuffled, and sorted by class
    kept, held = rows[::2], rows[1::2]
    part = Path(network, plan, sample, kept) if plan.reuse else path
    sizes, multiples = path.step_sizes(), _multiples(plan, network)
    if len(part.step_sizes()) != len(sizes):  # the kept labels do not vary
        sizes = np.zeros(1)
    verdicts, scales = [], []
    features = (part.features(sample.X[r], part.step_sizes()) for r in (kept, held))
    for F, tested in zip(*features, strict=True):
        fits, scale = _fitted(network, plan, F, sample, kept, multiples)
        together = outputs(network.backend, tested, np.hstack([a_hat for a_hat, _ in fits]))
        guesses = np.split(together, len(fits), axis=1)
        verdicts.append(
            [
                judge(guess + offset, sample.Y[held], sample.w[held])
                for guess, (_, offset) in zip(guesses, fits, strict=True)
            ]
        )
        scales.append(scale)
    ridges = np.array(scales)[:, None] * multiples  # (steps, ridges)
    if plan.ridge is None:  # over n, the smaller Gram matrix has a mean that falls with its size
        width = network.problem.width
        ridges *= min(len(kept), width) / min(len(rows), width)
    table = np.array(verdicts)  # (steps, ridges, 2)
    return Selection("held-out half", sizes, ridges, table[..., 0], table[..., 1])


def cross_validated(network: NetworkOnRows, plan: SearchPlan, sample: Sample, rows: Rows) -> float:
    """Error of a plan with step size and ridge on held-out fifths, in the labels' variance.

    With the logistic loss the share of wrong signs.
    """
    assert plan.step_size is not None
    missed = np.zeros((len(rows), sample.Y.shape[1]))
    for fold in range(FOLDS):
        held = rows[fold::FOLDS]
        kept = np.setdiff1d(rows, held)
        W = Path(network, plan, sample, kept).weights(plan.step_size)
        F, tested = (network.features_of(sample.X[each], W) for each in (kept, held))
        ((a_hat, offset),) = _fitted(network, plan, F, sample, kept, np.ones(1))[0]
        guess = outputs(network.backend, tested, a_hat) + offset
        missed[fold::FOLDS] = guess - sample.Y[held]
        if plan.loss == "logistic":
            missed[fold::FOLDS] = np.sign(guess) != np.sign(sample.Y[held])
    if plan.loss == "logistic":
        return float(missed.mean())
    return float(np.mean(missed**2) / np.mean(sample.Y[rows].var(axis=0)))


def _fitted(
    network: NetworkOnRows,
    plan: SearchPlan,
    F: Array,
    sample: Sample,
    rows: Rows,
    multiples: FloatArray,
) -> tuple[Readouts, float]:
    """â and the intercept for multiples of the ridges' scale, and the scale; F is used up."""
    Y, w = sample.Y[rows], sample.w[rows]
    return readouts(
        network.backend,
        F,
        Y,
        w,
        multiples,
        scale=plan.ridge,
        loss=plan.loss,
        intercept=plan.intercept,
    )


def _multiples(plan: SearchPlan, network: NetworkOnRows) -> FloatArray:
    """Ridges to try as multiples of their scale."""
    if plan.ridge is not None:
        return np.ones(1)
    found = RIDGES[network.backend.dtype]
    return found if plan.loss == "square" else found[::2]  # each takes some Newton steps
