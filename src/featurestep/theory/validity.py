"""How far a prediction can be trusted: what it leaves out here, and by how much, in words."""

from __future__ import annotations

from ..functions.hermite import coefficients
from ..functions.nonlinearity import HermiteSum, Nonlinearity, Shifted
from ..functions.teacher import Frame
from ..problem import Problem
from ..spiked import SpikedWeights
from .method import bulk_left_out, left_out

_SMALL = 50
_FEW = 1000
_NOTED = 0.02  # share of the loss that isotropic weights may leave out without a word
_NOTED_IN_BULK = 0.005  # of a neuron's square, in a spectrum


def prediction_notes(problem: Problem, weights: SpikedWeights, method: str) -> tuple[str, ...]:
    """Notes on a prediction made by `method`."""
    if method == "isotropic":
        return isotropic_notes(problem, weights)
    return (
        *_size_notes(problem),
        *_exponent_notes(problem),
        *_open_notes(problem),
        *_target_notes(problem),
    )


def _target_notes(problem: Problem) -> list[str]:
    """Whether averages over a target's several directions are accurate."""
    star = problem.star
    if not isinstance(star, Frame) or star.is_accurate:
        return []
    return [f"the target is not smooth: averages over its directions are off by {star.gap:.1g}"]


def isotropic_notes(problem: Problem, weights: SpikedWeights) -> tuple[str, ...]:
    """Notes on what was computed with isotropic weights (eq. 4)."""
    notes = list(_size_notes(problem))
    missing = left_out(problem, weights)
    if missing > _NOTED:
        notes.append(
            "isotropic weights leave out what the step does beside the learned direction: terms "
            f"of up to {missing:.2g} of the loss (method 'exact' has them)"
        )
    return (*notes, *_exponent_notes(problem))


def isotropic_bulk_notes(problem: Problem, weights: SpikedWeights) -> tuple[str, ...]:
    """Notes on a spectrum whose weights were taken for isotropic."""
    notes = list(_size_notes(problem))
    missing = bulk_left_out(problem, weights)
    if missing > _NOTED_IN_BULK:
        notes.append(
            "the readout law has too many values for exact weights: the bulk leaves out that the "
            f"step stretches weights along its samples, a share {missing:.2g} of their square; "
            "networks may have further outliers"
        )
    return (*notes, *_exponent_notes(problem))


def _size_notes(problem: Problem) -> list[str]:
    smallest = min(problem.n, problem.d, problem.width, problem.n_step)
    if smallest >= _SMALL:
        return []
    return [
        f"small sizes: the smallest dimension is {smallest}, and corrections of order "
        f"1/{smallest} are left out"
    ]


def _exponent_notes(problem: Problem) -> list[str]:
    exponent = problem.regime.exponent
    if exponent is None or exponent <= 0.5 + 1e-9:
        return []
    size = problem.step_size / problem.width**0.5
    return [
        f"step exponent {exponent:.3g} is beyond 1/2, the largest of the published theory: here "
        f"η = {size:.3g}√N; agreement with networks is tested up to 4√N"
    ]


def _open_notes(problem: Problem) -> list[str]:
    """Finite-size terms that are known to be missing, where they have been seen."""
    if problem.step_size == 0.0 or problem.n >= 8 * _FEW:
        return []
    notes = []
    step = problem.step_size / problem.width**0.5
    if _degree(problem.sigma) >= 3 and step > 0.3:
        notes.append(
            f"an activation of degree {_degree(problem.sigma)} and a large step: terms of order "
            f"1/n are left out, up to 3 % at n = 2000 (here n = {problem.n})"
        )
    if problem.phi_step > 1.0 and problem.n < _FEW and step > 0.1:
        notes.append(
            f"n_step < d at n = {problem.n}: terms of order 1/n are left out, 1 to 2 % of the "
            "test error"
        )
    c_2 = float(coefficients(problem.sigma, 2)[2])
    if problem.initial == "gaussian" and problem.law.name == "rademacher" and c_2 and step > 0.3:
        notes.append(
            "Gaussian rows of W0, c_2 ≠ 0 and a Rademacher law: terms of order 1/n are left out, "
            f"1 to 2 % at n = 2000 (here n = {problem.n})"
        )
    return notes


def _degree(sigma: Nonlinearity) -> int:
    if isinstance(sigma, Shifted):
        return _degree(sigma.base)
    return len(sigma.coefficients) - 1 if isinstance(sigma, HermiteSum) else 0
