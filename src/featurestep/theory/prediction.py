"""What every way of solving answers with: a problem's prediction, or the error that refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..core.checks import whole_number
from ..core.errors import FeaturestepError, InconsistentSolution, InvalidProblem, NotConverged
from ..core.problem import Problem
from ..core.results import LOSS_QUANTITIES, QUANTITIES, Note, Result
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import normalised_hermite
from ..functions.targets import AlignedTarget
from .labels import KAPPA, MOST_DEGREE, WEIGHT, Degrees, label_moments, missed_by_degree
from .validity import (
    lost_shift_notes,
    may_miss_degrees,
    missed_degrees_notes,
    offset_notes,
    overlap_note,
    prediction_notes,
    small_error_notes,
    train_loss_notes,
)

ACCEPTED = 1e-10  # residual of the fixed-point equations
SELF_CHECK = 1e-9  # relative gap of the two training losses, or of two penalties


@dataclass(frozen=True)
class Groups:
    """Neurons by the value of their initial readout, and what the fitted readout does with them."""

    g: FloatArray  # √N times the initial readout
    neurons: FloatArray  # how many, N_g
    shift: FloatArray  # u_g, gained along the learned direction
    norm: FloatArray  # ρ_g, of the remaining weights
    use: FloatArray  # A_g, total fitted readout
    along: FloatArray  # τ_g, bulk directions fitted along κ
    across: FloatArray  # ψ_g, (r, K) for r > 1: those fitted along the rest of the target


class Network(Protocol):
    """A solved network: what it shows at places κ (Q,)."""

    def parts(self, kappa: FloatArray) -> FloatArray:
        """f_0 … f_r, (1 + r, Q), in the basis of (45) where there are several directions."""

    def error(self, kappa: FloatArray) -> FloatArray:
        """E[(y − f)²|κ], (Q,)."""


class LearnedFunction(Result):
    """What predictions have in common: the function of the learned direction, and notes."""

    problem: Problem
    alignment: float
    method: str
    network: Network

    @property
    def settling(self) -> tuple[float, float]:
        """The numbers that must not change when groups and nodes are refined."""
        raise NotImplementedError

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """How far to trust it."""
        notes = prediction_notes(self.problem, spiked_weights(self.problem), self.method)
        if not may_miss_degrees(self.problem, self.alignment):
            return notes
        from .exact.solve import change_by_higher_degrees  # which imports predictions

        return (*notes, *missed_degrees_notes(self.problem, change_by_higher_degrees(self.problem)))

    def learned(self, kappa: npt.ArrayLike) -> FloatArray:
        """M(κ): the function of the learned direction that the network computes of (12)."""
        at = np.asarray(kappa, dtype=np.float64)
        return np.asarray(self.network.parts(at.ravel())[0].reshape(at.shape))

    def learned_parts(self, kappa: npt.ArrayLike) -> FloatArray:
        """f_0(κ), f_1(κ) … f_r(κ): the network computes f_0 + Σ s_i f_i, and noise (section 25).

        s_i is what κ does not show of the target's i-th direction. The parts come stacked along a
        new first axis.
        """
        at = np.asarray(kappa, dtype=np.float64)
        parts = self.network.parts(at.ravel())
        star = self.problem.star
        if isinstance(star, AlignedTarget):
            parts[1:] = star.rotation.T @ parts[1:]
        return parts.reshape(-1, *at.shape)

    @property
    def alignments(self) -> tuple[float, ...]:
        """Cosines of the learned direction with each of the target's."""
        star = self.problem.star
        if not isinstance(star, AlignedTarget):
            return (self.alignment,)
        return tuple(float(c) * self.alignment for c in star.rotation[0])

    def target_along(self, kappa: npt.ArrayLike) -> FloatArray:
        """E[y|κ]: y_0 of (6), the best function of the learned direction."""
        at = np.asarray(kappa, dtype=np.float64)
        labels = label_moments(self.problem.star, np.array([self.alignment]), at.ravel())
        return np.asarray(labels.mean[0].reshape(at.shape))

    def best_along(self, kappa: npt.ArrayLike) -> FloatArray:
        """The best output given κ: E[y|κ] for squares."""
        return self.target_along(kappa)


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(LearnedFunction):
    """Predicted errors of one problem, with what was learned and how far to trust it."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **QUANTITIES,
        "alignment": "cosine γ between the learned direction and the target's",
        "test_error_sd": "spread of the test error caused by the random initial output",
        "solver_residual": "largest relative residual of the fixed-point equations",
        "self_check": "relative gap between the two expressions for the training loss",
        "method": "weights after the step: exact or isotropic",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("test_error", "train_loss", "train_mse", "readout_norm", "alignment", "method"),
    )

    problem: Problem
    test_error: float
    train_loss: float
    train_mse: float
    readout_norm: float
    alignment: float
    beta_norm: float
    test_error_sd: float
    groups: Groups
    method: str  # "exact", or "isotropic" where nothing is lost by it
    solver_residual: float
    iterations: int
    self_check: float
    nodes: int
    network: Network = field(repr=False, compare=False)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """How far to trust it."""
        return (*super().notes, *small_error_notes(self.problem, self.test_error))

    @property
    def settling(self) -> tuple[float, float]:
        return self.test_error, self.train_loss

    def error_given(self, kappa: npt.ArrayLike) -> FloatArray:
        """E[(y − f(x))²|κ]: the test error of inputs with this κ, noise included.

        Its mean over κ ~ N(0,1) is the test error; over another law of κ, the error there
        (theory, section 15).
        """
        at = np.asarray(kappa, dtype=np.float64)
        return self.network.error(at.ravel()).reshape(at.shape)

    def error_by_degree(self, highest: int | None = None) -> Degrees:
        """Where the test error comes from.

        For k = 0 … `highest` (6 by default) the squared coefficient of H_k(κ)/√k! in what the
        network misses on average, E[y − f|κ]; then `"higher"`, the same for all higher degrees, and
        `"rest"`: the target's other direction, fluctuations and noise. For a target of several
        directions the keys are degrees (k, k_1, …, k_r) in κ and in s_1 … s_r, with a sum of at
        most `highest` (4 by default). The values add up to the test error.
        """
        star = self.problem.star
        if highest is None:
            highest = 4 if isinstance(star, AlignedTarget) else 6
        count = whole_number("highest", highest) if highest != 0 else 0
        if isinstance(star, AlignedTarget):
            if count > MOST_DEGREE:
                rule = f"must be at most {MOST_DEGREE} for several directions"
                raise InvalidProblem("highest", rule, highest)
            parts = self.learned_parts(KAPPA)
            return missed_by_degree(star, self.alignment, parts, self.test_error, count)
        kappa, weight = KAPPA, WEIGHT
        missed = self.target_along(kappa) - self.learned(kappa)
        parts = (normalised_hermite(count, kappa) @ (weight * missed)) ** 2
        total = float(weight @ missed**2)
        degrees: Degrees = {k: float(part) for k, part in enumerate(parts)}
        degrees["higher"] = max(total - float(parts.sum()), 0.0)
        degrees["rest"] = self.test_error - float(parts.sum()) - float(degrees["higher"])
        return degrees

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        several = {"alignments": list(self.alignments)} if self.problem.directions > 1 else {}
        return {**super().as_dict(), **several}


class SteppedNetwork(Network, Protocol):
    """A network after several steps: it is a function of Q coordinates ξ, and of s."""

    def parts_at(self, xi: FloatArray) -> FloatArray:
        """f_0 … f_r at places ξ (X, Q): (1 + r, X), in the target's directions as given."""


@dataclass(frozen=True, eq=False, repr=False)
class StepsPrediction(Prediction):
    """Predicted errors after several steps.

    The weights have learned a space of Q directions, with coordinates ξ ~ N(0, I_Q) of an input.
    `overlaps` (r, Q) are the cosines of the target's directions with its axes, `alignment` the
    cosine of the target's direction with the space (of several, the largest). κ is the coordinate
    along the target's projection on the space; the others are averaged over.
    """

    overlaps: FloatArray
    shifts: FloatArray  # (K, Q) of every group along the axes
    lost_shift: float  # root mean square of the shifts outside of the axes, relative to all
    overlap: float  # variance of what neurons have along κ beside their shifts

    network: SteppedNetwork = field(repr=False, compare=False)

    @property
    def alignments(self) -> tuple[float, ...]:
        """Cosines of the target's directions with the learned space."""
        return tuple(float(cosine) for cosine in np.sqrt((self.overlaps**2).sum(axis=1)))

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """How far to trust it."""
        notes = (*super().notes, *lost_shift_notes(self.lost_shift))
        if self.problem.directions > 1:
            return notes
        return (*notes, *overlap_note(self.problem.d, self.overlap))

    def learned_at(self, xi: npt.ArrayLike) -> FloatArray:
        """f_0(ξ), f_1(ξ) … f_r(ξ) at ξ (…, Q), stacked along a new first axis.

        The network computes f_0 + Σ s_k f_k, and noise; s_k is what ξ does not show of the target's
        k-th direction.
        """
        at = np.asarray(xi, dtype=np.float64)
        axes = self.overlaps.shape[1]
        if at.ndim == 0 or at.shape[-1] != axes:
            raise InvalidProblem(
                "xi", f"must have {axes} coordinates along its last axis", at.shape
            )
        return self.network.parts_at(at.reshape(-1, axes)).reshape(-1, *at.shape[:-1])

    def learned_parts(self, kappa: npt.ArrayLike) -> FloatArray:
        self._require_one_direction()
        return super().learned_parts(kappa)

    def learned(self, kappa: npt.ArrayLike) -> FloatArray:
        self._require_one_direction()
        return super().learned(kappa)

    def error_given(self, kappa: npt.ArrayLike) -> FloatArray:
        self._require_one_direction()
        return super().error_given(kappa)

    def target_along(self, kappa: npt.ArrayLike) -> FloatArray:
        self._require_one_direction()
        return super().target_along(kappa)

    def _require_one_direction(self) -> None:
        if self.problem.directions > 1:
            rule = "must have one direction for functions of κ after several steps (see learned_at)"
            raise InvalidProblem("target", rule, self.problem.target)


class FittedNetwork(Network, Protocol):
    """A network fitted with any loss: the law of its output, and the label."""

    def moments(self, kappa: FloatArray) -> FloatArray:
        """Mean and standard deviation of the output given κ, (2, Q)."""

    def probability(self, output: FloatArray) -> FloatArray:
        """P(y = 1|output), (O,)."""

    def offset_variance(self) -> float:
        """Variance over draws of the constant that a fit adds to all outputs."""

    def errors_with(self, variance: float) -> FloatArray:
        """Test and training error if outputs vary by so much more, (2,)."""


_CERTAIN = 0.999  # mean label up to which its log-odds are told


class OffsetEffects(NamedTuple):
    """Relative changes by the random offset of a fit."""

    test_loss: float
    test_error: float
    train_error: float


@dataclass(frozen=True, eq=False, repr=False)
class LossPrediction(LearnedFunction):
    """Predicted losses and errors of one problem with any loss, or with an intercept."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **LOSS_QUANTITIES,
        "alignment": "cosine γ between the learned direction and the target's",
        "solver_residual": "largest relative residual of the fixed-point equations",
        "self_check": "gap between two expressions for λ‖â‖², over twice the objective",
        "method": "weights after the step: exact or isotropic",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("test_loss", "test_error", "train_loss", "train_error", "readout_norm", "intercept"),
        "alignment",
    )

    problem: Problem
    test_loss: float
    train_loss: float
    train_objective: float
    test_error: float
    train_error: float
    readout_norm: float
    intercept: float
    alignment: float
    beta_norm: float
    groups: Groups
    method: str
    solver_residual: float
    iterations: int
    self_check: float
    nodes: int
    network: FittedNetwork = field(repr=False, compare=False)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """How far to trust it."""
        notes = (*super().notes, *train_loss_notes(self.problem))
        if not self.problem.is_binary:
            return notes
        effects = self.offset_effects
        return (*notes, *offset_notes(effects.test_error, effects.train_error))

    @cached_property
    def offset_effects(self) -> OffsetEffects:
        """What the random offset of a fit adds to the test loss and to the errors, relatively.

        The intercept, or the mean of the features, follows the labels that were drawn: a term of
        order 1/n, which losses and errors do not contain. It counts where outputs are small.
        """
        without, with_it = map(self.network.errors_with, (0.0, self.network.offset_variance()))
        return OffsetEffects(*map(float, with_it / np.maximum(without, 1e-300) - 1.0))

    @property
    def settling(self) -> tuple[float, float]:
        return self.test_loss, self.train_objective

    def best_along(self, kappa: npt.ArrayLike) -> FloatArray:
        """The best output given κ: the log-odds (at most 7.6) or, for the hinge, a sign."""
        mean = self.target_along(kappa)
        if self.problem.loss == "logistic":
            return np.asarray(2.0 * np.arctanh(np.clip(mean, -_CERTAIN, _CERTAIN)))
        return np.sign(mean) if self.problem.loss == "hinge" else mean

    def margin(self, kappa: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the output f(x) given κ.

        Given κ and the rest of the target's direction the output is Gaussian (theory, section 31);
        times a label ±1 it is the margin.
        """
        at = np.asarray(kappa, dtype=np.float64)
        mean, sd = self.network.moments(at.ravel())
        return mean.reshape(at.shape), sd.reshape(at.shape)

    def reliability(self, output: npt.ArrayLike) -> FloatArray:
        """P(y = 1|f(x) = output) on fresh samples, for labels ±1.

        A calibrated logistic fit would have 1/(1 + e^{−output}).
        """
        if not self.problem.is_binary:
            rule = "must have labels ±1 for a reliability curve"
            raise InvalidProblem("loss", rule, self.problem.loss)
        at = np.asarray(output, dtype=np.float64)
        return self.network.probability(at.ravel()).reshape(at.shape)


Outcome = Prediction | LossPrediction | FeaturestepError


def answered(outcome: Outcome) -> Prediction:
    """The prediction of the square loss, or the error that refuses it raised."""
    if not isinstance(outcome, Prediction):
        raise _refusal(outcome)
    return outcome


def answered_loss(outcome: Outcome) -> LossPrediction:
    """The prediction of any loss, or the error that refuses it raised."""
    if not isinstance(outcome, LossPrediction):
        raise _refusal(outcome)
    return outcome


def _refusal(outcome: Outcome) -> FeaturestepError:
    assert isinstance(outcome, FeaturestepError)
    return outcome


def checked_loss(found: LossPrediction) -> Outcome:
    """The prediction of any loss, or the error that refuses it."""
    left = found.solver_residual
    kind: type[NotConverged] = NotConverged
    if not left <= ACCEPTED:
        text = (
            f"equations of the readout: residual {left:.2g} after {found.iterations} iterations "
            f"(needs {ACCEPTED:.0e})"
        )
    elif not found.self_check <= SELF_CHECK:
        kind, left = InconsistentSolution, found.self_check
        text = f"two expressions for λ‖â‖² differ by {left:.2g} (needs {SELF_CHECK:.0e})"
    elif not (found.train_objective > 0.0 and found.readout_norm > 0.0):
        text = "an error came out negative: terms of order 1/d are too large at these sizes"
    else:
        return found
    return kind(text, residual=left, iterations=found.iterations, solution=found)


def checked(found: Prediction, slack: float = 1.0) -> Outcome:
    """The prediction, or the error that refuses it, by residual and self-check (eq. 31).

    `slack` is a factor on the tolerances.
    """
    kind: type[NotConverged] = InconsistentSolution
    left = found.self_check
    errors = (found.test_error, found.train_loss, found.train_mse, found.readout_norm)
    if not found.solver_residual <= slack * ACCEPTED:
        kind, left = NotConverged, found.solver_residual
        text = (
            f"resolvent equations: residual {left:.2g} after {found.iterations} iterations "
            f"(needs {ACCEPTED:.0e})"
        )
    elif not left <= slack * SELF_CHECK:
        text = f"the two training losses differ by {left:.2g} (needs {SELF_CHECK:.0e})"
    elif not all(error > 0.0 for error in errors):
        text = "an error came out negative: terms of order 1/d are too large at these sizes"
    else:
        return found
    return kind(text, residual=left, iterations=found.iterations, solution=found)
