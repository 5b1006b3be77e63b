"""A problem of several steps in, its prediction or the error that refuses it out."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...core.errors import InvalidProblem, NotConverged
from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.quadrature import gauss_hermite
from ...functions.targets import AlignedTarget
from ..exact.errors import fluctuations
from ..exact.regression import misfit
from ..exact.step import has_higher_degrees
from ..prediction import Groups, Outcome, StepsPrediction, checked
from ..resolution import Effort
from .laws import product_rule
from .readout import Readout, by_group
from .rules import CONTINUOUS, Fineness, group_rule
from .solve import StepsSolution, Training, build_readout, solve_steps

_ACROSS = 15  # Gauss nodes of each coordinate beside κ


def training_of(problem: Problem) -> Training:
    """What the theory needs of a problem."""
    return Training(
        sigma=problem.sigma,
        star=problem.star,
        noise_std=problem.noise_std,
        n=problem.n,
        d=problem.d,
        width=problem.width,
        ridge=problem.ridge,
        step_sizes=problem.step_sizes,
        batch_sizes=(float(problem.n_step),) * problem.steps,
        is_gaussian=problem.initial == "gaussian",
    )


def reach(problem: Problem) -> float:
    """The effect of all steps on a neuron with g = 1, if they added up."""
    weights = spiked_weights(problem)
    noise = np.sqrt(problem.phi_step * weights.residual_square * problem.sigma.slope_variance)
    along = abs(problem.sigma.mean_slope) * weights.beta_norm
    return float(sum(problem.step_sizes) / problem.width**0.5 * max(along, noise))


def fineness_of(problem: Problem, effort: Effort) -> Fineness:
    """Numbers of nodes for a problem."""
    base = Fineness() if problem.law.is_finite else CONTINUOUS
    return replace(
        base,
        groups=effort.groups * base.groups,
        first=round(effort.residuals * base.first),
        labels=round(effort.residuals * base.labels),
        labels_of_many=round(effort.residuals * base.labels_of_many),
        batch=base.batch / effort.nodes,
        readout=base.readout / effort.nodes,
        tolerance=base.tolerance ** min(effort.nodes, 1.5),
        least=base.least ** min(effort.nodes, 1.5),
    )


def solve_problem(problem: Problem, effort: Effort) -> Outcome:
    """The prediction of a problem of several steps, or the error that refuses it."""
    if problem.residual != "labels":
        rule = "must be labels for predictions of several steps (use simulate)"
        return InvalidProblem("residual", rule, problem.residual)
    try:
        fineness = fineness_of(problem, effort)
        groups = group_rule(problem.law, reach(problem), fineness)
        training = replace(training_of(problem), higher=has_higher_degrees(problem))
        found = solve_steps(training, groups, fineness)
    except (InvalidProblem, NotConverged) as error:
        return error
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return NotConverged(f"a linear system was singular ({error})")
    return checked(_prediction(problem, found), effort.slack)


def _prediction(problem: Problem, found: StepsSolution) -> StepsPrediction:
    """What a solution says."""
    frame, g = found.batches[-1].after, found.given[0]
    network = StepsNetwork(problem, found)
    halves = frame.norm2.size // g.size  # long and short initial rows

    def summed(of_groups: FloatArray) -> FloatArray:
        """Sums over halves of every group, (…, K)."""
        return np.asarray(of_groups.reshape(*of_groups.shape[:-1], halves, -1).sum(axis=-2))

    fields = summed(found.fitted.coefficients.reshape(-1, frame.norm2.size))
    axes, along = frame.axes, network.along
    shift = summed(frame.shift.T).T / halves
    total = found.train_mse + problem.ridge * found.readout_square
    all_shifts = (frame.shift**2).sum(axis=1) + frame.left
    share = found.groups[1]
    lost = float(share @ frame.left)
    across = fields[1 + axes : found.readout.bulk.stop]
    return StepsPrediction(
        problem=problem,
        test_error=found.test_error,
        train_loss=found.fitted.train_loss,
        train_mse=found.train_mse,
        readout_norm=float(np.sqrt(max(found.readout_square, 0.0))),
        alignment=float(np.linalg.norm(frame.gamma, 2)) if axes else 0.0,
        beta_norm=spiked_weights(problem).beta_norm,
        test_error_sd=0.0,
        groups=Groups(
            g=g,
            neurons=summed(found.readout.neurons),
            shift=shift @ along,
            norm=summed(np.sqrt(frame.norm2 + frame.left)) / halves,
            use=fields[0],
            along=along @ fields[1 : 1 + axes],
            across=across[0] if len(across) == 1 else across,
        ),
        method="exact",
        solver_residual=found.at.residual,
        iterations=found.at.iterations,
        self_check=abs(total / found.fitted.train_loss - 1.0),
        nodes=int(found.readout.weight.size),
        overlaps=_as_given(problem, frame.gamma),
        shifts=shift,
        lost_shift=float(np.sqrt(lost / max(float(share @ all_shifts), 1e-300))),
        overlap=network.overlap,
        network=network,
    )


def _as_given(problem: Problem, of_directions: FloatArray) -> FloatArray:
    """Values of the target's directions in the basis of (45), (r, …), in that of the user."""
    star = problem.star
    if not isinstance(star, AlignedTarget):
        return of_directions
    return np.asarray(star.rotation.T @ of_directions)


class StepsNetwork:
    """What a trained network computes at any coordinates."""

    def __init__(self, problem: Problem, found: StepsSolution) -> None:
        self.problem, self.found = problem, found
        self.frame = found.batches[-1].after

    @cached_property
    def along(self) -> FloatArray:
        """The axis of κ, (Q,): the target's projection on the learned space."""
        gamma = self.frame.gamma
        if not self.frame.axes:
            return np.zeros(0)
        if not np.any(gamma):
            return np.asarray(np.eye(self.frame.axes)[0])
        left, _, right = np.linalg.svd(gamma)
        return np.asarray(right[0] * np.copysign(1.0, left[0, 0]))

    @property
    def overlap(self) -> float:
        """Variance of what neurons have along κ beside their shifts."""
        axes, size = self.frame.axes, self.frame.norm2.size
        own = by_group(self.found.free, size)[:axes, :axes]
        each = np.einsum("i,ikg,k->g", self.along, own, self.along)
        return float(self.found.groups[1] @ each) / self.problem.d

    def parts_at(self, xi: FloatArray) -> FloatArray:
        """f_0 … f_r at ξ (X, Q), in the target's directions as given."""
        parts = self._parts(xi)
        return np.concatenate([parts[:1], _as_given(self.problem, parts[1:])])

    def parts(self, kappa: FloatArray) -> FloatArray:
        """E[f|κ] and E[s f|κ]."""
        xi, weight = self._places(kappa)
        return np.asarray(self._parts(xi).reshape(-1, kappa.size, weight.size) @ weight)

    def error(self, kappa: FloatArray) -> FloatArray:
        """E[(y − f)²|κ]."""
        xi, weight = self._places(kappa)
        at, found = self._readout(xi), self.found
        missed = misfit(
            at.columns, at.labels, at.sample_norm[None], found.fitted.coefficients[None]
        )
        errors = found.errors
        missed = missed + fluctuations(
            at.columns, errors.grams, errors.readout_squares[None], errors.square_gram
        )
        return np.asarray(_mean_of_norms(missed[0], xi).reshape(kappa.size, weight.size) @ weight)

    def _places(self, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ξ with these κ and Gauss nodes of the other coordinates, and the weights of these."""
        axes = self.frame.axes
        if not axes:
            return np.zeros((kappa.size, 0)), np.ones(1)
        beside = np.linalg.svd(self.along[None])[2][1:]  # (Q − 1, Q)
        nodes, weight = product_rule([gauss_hermite(_ACROSS)] * (axes - 1), 0.0)
        xi = kappa[:, None, None] * self.along + nodes @ beside
        return xi.reshape(-1, axes), weight

    def _readout(self, xi: FloatArray) -> Readout:
        found = self.found
        rule, norms = (xi, np.full(len(xi), 1.0 / len(xi))), (found.free, found.initial)
        return build_readout(found.training, found.groups, self.frame, rule, norms, found.own)

    def _parts(self, xi: FloatArray) -> FloatArray:
        columns, fitted = self._readout(xi).columns, self.found.fitted.coefficients
        plain = columns.plain[0] @ fitted
        return _mean_of_norms(np.stack([plain, *(columns.linear[0] @ fitted)]), xi)


def _mean_of_norms(values: FloatArray, xi: FloatArray) -> FloatArray:
    """Means over the norms of samples at ξ (X, Q), (…, X), of values at all nodes."""
    return np.asarray(values.reshape(*values.shape[:-1], -1, len(xi)).mean(axis=-2))
