"""Step size and ridge from the data: by exact leave-one-out, or by folds where that would lie.

Step sizes are tried as multiples of the one that changes the pre-activations as much as they are
large, ridges as multiples of the mean eigenvalue of the smaller Gram matrix over n, so that
neither depends on the units of the data. The first step size tried is 0: random features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.types import FloatArray
from ..simulation.arrays.backend import Array
from ..simulation.network.given import Network, Step, sum_of_squares
from ..simulation.network.readout import readouts
from .leave_one_out import centred, held_out, mean_eigenvalue

STEPS = (0.0, 1.0, 2.0, 4.0, 8.0)
RIDGES = {
    "float64": 10.0 ** np.arange(-6.0, 2.1, 0.5),
    "float32": 10.0 ** np.arange(-4.0, 2.1, 0.5),
}
FOLDS = 3

Rows = np.ndarray[tuple[int], np.dtype[np.intp]]


class Verdict(NamedTuple):
    """How good held-out predictions are: the higher the score the better, then the loss."""

    score: float
    loss: float


Judge = Callable[[FloatArray, FloatArray], Verdict]  # predictions and labels, (n, outputs)


@dataclass(frozen=True)
class Selection:
    """What was tried, and how it did."""

    method: str  # "leave-one-out" or "folds"
    step_sizes: FloatArray  # (steps,): η; in folds those of the whole sample
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
class Plan:
    """What the user asked for."""

    steps: int
    step_size: float | None  # None: to be chosen
    ridge: float | None
    intercept: bool
    reuse: bool


@dataclass(frozen=True)
class Sample:
    """Network inputs, the step's residuals and the readout's labels of all rows."""

    X: Any  # (n, d)
    R: FloatArray  # (n, outputs): labels as the step sees them
    Y: FloatArray  # (n, outputs): labels as the readout does


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

    def __init__(self, network: Network, plan: Plan, sample: Sample, step_rows: Rows) -> None:
        self.network, self.plan = network, plan
        self.X, self.R = sample.X[step_rows], sample.R[step_rows]
        self.first: Step = self._first()
        self.unit = self._unit()

    def _first(self) -> Step:
        network = self.network
        if self.plan.step_size != 0.0:
            return network.step(network.W0, self.X, self.R)
        nothing = network.backend.zeros(*network.W0.shape)
        return Step(nothing, np.asarray(self.R.T @ self.X / len(self.X), dtype=np.float64))

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

    def features(self, X: Any) -> Iterator[Array]:
        """Features of some rows for each step size; the array is reused."""
        network = self.network
        if self.plan.steps == 1:
            P0, P1 = network.project(X, network.W0), network.project(X, self.first.G)
            out = network.backend.empty(*P0.shape)
            for eta in self.step_sizes():
                yield network.features(((P0, 1.0), (P1, float(eta))), out)
        else:
            for eta in self.step_sizes():
                yield network.features_of(X, self.weights(float(eta)))


def train(
    network: Network, plan: Plan, sample: Sample, halves: tuple[Rows, Rows], judge: Judge
) -> Fitted:
    """Choose what is to be chosen, take the steps, fit the readout.

    `halves` are the rows of the step and of the readout; where both are all rows, what is chosen
    is judged by folds, each with a step of its own.
    """
    path = Path(network, plan, sample, halves[0])
    X, Y = sample.X[halves[1]], sample.Y[halves[1]]
    selection = None
    if plan.step_size is not None and plan.ridge is not None:
        eta, ridge = plan.step_size, plan.ridge
    else:
        selection = (
            _by_folds(network, plan, sample, path, judge)
            if plan.reuse
            else _by_leave_one_out(network, plan, path, X, Y, judge)
        )
        eta = float(selection.step_sizes[selection.best[0]])
        ridge = float(selection.ridges[selection.best])
    W = path.weights(eta)
    a_hat, offset = _readouts(network, plan, network.features_of(X, W), Y, [ridge])[0]
    return Fitted(W, a_hat, offset, eta, ridge, path.first.beta, selection)


def _by_leave_one_out(
    network: Network, plan: Plan, path: Path, X: Any, Y: FloatArray, judge: Judge
) -> Selection:
    """One factorisation for each step size, exact for all ridges."""
    labels = Y - Y.mean(axis=0) if plan.intercept else Y
    ridges, verdicts = [], []
    for F in path.features(X):
        if plan.intercept:
            centred(F)
        ridges.append(_ridges(plan, network, mean_eigenvalue(F)))
        missed = held_out(network.backend, F, labels, ridges[-1], intercept=plan.intercept)
        verdicts.append([judge(Y - each, Y) for each in missed])
    table = np.array(verdicts)  # (steps, ridges, 2)
    sizes = path.step_sizes()
    return Selection("leave-one-out", sizes, np.array(ridges), table[..., 0], table[..., 1])


def _by_folds(network: Network, plan: Plan, sample: Sample, path: Path, judge: Judge) -> Selection:
    """Steps and readouts without a fold's rows, judged on them: no label is seen twice."""
    n = len(sample.Y)
    table = np.zeros((len(path.step_sizes()), len(_ridges(plan, network, 1.0)), 2))
    folds = [np.arange(k, n, FOLDS) for k in range(min(FOLDS, n))]  # the rows come shuffled
    for held in folds:
        kept = np.setdiff1d(np.arange(n), held)
        part = Path(network, plan, sample, kept)
        if len(part.step_sizes()) != len(table):
            continue  # a fold whose labels do not vary says nothing about steps
        pairs = zip(part.features(sample.X[kept]), part.features(sample.X[held]), strict=True)
        for index, (F, tested) in enumerate(pairs):
            fits = _readouts(network, plan, F, sample.Y[kept])
            guesses = (outputs(network, tested, a_hat) + offset for a_hat, offset in fits)
            verdicts = [judge(guess, sample.Y[held]) for guess in guesses]
            table[index] += len(held) / n * np.array(verdicts)
    ridges = []
    for F in path.features(sample.X):
        if plan.intercept:
            centred(F)
        ridges.append(_ridges(plan, network, mean_eigenvalue(F)))
    sizes = path.step_sizes()
    return Selection("folds", sizes, np.array(ridges), table[..., 0], table[..., 1])


def outputs(network: Network, F: Array, a_hat: FloatArray) -> FloatArray:
    """Fa, (n, outputs)."""
    backend = network.backend
    return np.asarray(backend.get(backend.product(F, backend.put(a_hat.T))))


def _readouts(
    network: Network,
    plan: Plan,
    F: Array,
    Y: FloatArray,
    ridges: Sequence[float] | None = None,
) -> list[tuple[FloatArray, FloatArray]]:
    """â and the intercept for every ridge, by default the plan's; F is used up."""
    backend = network.backend
    mean, offset = None, np.zeros(Y.shape[1])
    if plan.intercept:
        F, mean = centred(F)
        offset = Y.mean(axis=0)
    if ridges is None:
        ridges = _ridges(plan, network, mean_eigenvalue(F))
    found = []
    for solved in readouts(backend, F, backend.put(Y - offset), ridges):
        a_hat = backend.get(solved)
        shift = 0.0 if mean is None else backend.get(mean) @ a_hat
        found.append((a_hat, np.asarray(offset - shift)))
    return found


def _ridges(plan: Plan, network: Network, scale: float) -> list[float]:
    if plan.ridge is not None:
        return [plan.ridge]
    return [float(r) * scale for r in RIDGES[network.backend.dtype]]
