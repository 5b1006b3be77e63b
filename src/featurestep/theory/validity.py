"""How far an answer can be trusted: what is approximated, by how much, from when on it matters.

Every threshold has its only home here. A note says what is left out and has as its `size` the
relative error that this admits; nothing else excuses a disagreement with a network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..core.borders import MARGIN
from ..core.problem import Problem
from ..core.results import Note
from ..core.spiked import SpikedWeights
from ..functions.nonlinearity import coefficients
from ..functions.targets import AlignedTarget
from .method import bulk_left_out, left_out
from .resolution import growth_degree

_SMALL = 50
_FEW = 1000
_QUADRATIC = 0.1  # min(n, N) over the number of quadratic functions of x, beyond which they count
_QUADRATIC_GAP = 0.05  # what is then seen, at the median of such problems
_NOTED = 0.02  # share of the loss that isotropic weights may leave out without a word
_NOTED_IN_BULK = 0.005  # of a neuron's square, in a spectrum
_TESTED = 4.0  # steps in units of √N, up to which predictions are held to networks
_HELD = 0.02  # to within that much of the test error
_HEAVY_ROW = 3.0  # mean squares of a feature in a typical sample's most extreme row
_FURTHER = 0.02  # of the edge, that single samples must reach beyond to be told
_MIXED = 3.0  # distance of two spikes, in √(2/min(n, N)) of their place, below which draws mix them
_ROUGH = 1e-6  # share of the eigenvalues, or of the density, that may go unresolved
Notes = tuple[Note, ...]


def prediction_notes(problem: Problem, weights: SpikedWeights, method: str) -> Notes:
    """Notes on a prediction made by `method`."""
    shared = (
        *size_notes(problem),
        *quadratic_notes(problem),
        *_direction_notes(problem, weights),
    )
    if method == "isotropic":
        return (*shared, *_isotropic_notes(problem, weights), *_exponent_notes(problem))
    return (
        *shared,
        *_exponent_notes(problem),
        *_open_notes(problem),
        *_target_notes(problem),
    )


def _target_notes(problem: Problem) -> Notes:
    """Whether averages over a target's several directions are accurate."""
    star = problem.star
    if not isinstance(star, AlignedTarget) or star.is_accurate:
        return ()
    text = f"the target is not smooth: averages over its directions are off by {star.gap:.1g}"
    return (Note(text, "the target is not smooth", star.gap),)


def isotropic_bulk_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """Notes on a spectrum whose weights were taken for isotropic."""
    notes = list(size_notes(problem))
    missing = bulk_left_out(problem, weights)
    if missing > _NOTED_IN_BULK:
        text = (
            "weights are taken for isotropic: the bulk leaves out that the step stretches them "
            f"along its samples, a share {missing:.2g} of their square; networks may have further "
            "outliers"
        )
        notes.append(Note(text, "isotropic bulk", missing))
    return (*notes, *_exponent_notes(problem))


def size_notes(problem: Problem) -> Notes:
    """Corrections of order 1/size, where a size is small."""
    smallest = min(problem.n, problem.d, problem.width, problem.n_step)
    if smallest >= _SMALL:
        return ()
    text = (
        f"small sizes: the smallest dimension is {smallest}, and corrections of order "
        f"1/{smallest} are left out"
    )
    return (Note(text, "small sizes", 1.0 / smallest),)


def quadratic_notes(problem: Problem) -> Notes:
    """Sizes at which n and N are no longer of the order of d alone.

    Then random features learn quadratic functions of the inputs as well, which the limit of sizes
    that grow together does not know. Seen in the record of `benchmarks.validity`.
    """
    c_2 = float(coefficients(problem.sigma, 2)[2])
    share = min(problem.n, problem.width) / (problem.d * (problem.d + 1) / 2)
    if abs(c_2) < 1e-9 or share < _QUADRATIC:
        return ()
    text = (
        f"the smaller of n and N is {share:.2g} of the d(d + 1)/2 quadratic functions of an input: "
        "with c_2 ≠ 0 features of degree 2 are learned in all directions, which is left out; gaps "
        f"of {_QUADRATIC_GAP:.0%} and more have been seen from {_QUADRATIC:g} on"
    )
    return (Note(text, "n and N small beside d²", _QUADRATIC_GAP),)


def _direction_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """A target without a linear part: nothing is approximated, but little is to be seen."""
    if problem.step_size == 0.0 or weights.alignment != 0.0:
        return ()
    text = (
        "there is nothing along the learned direction: the target has no linear part (c⋆_1 = 0), "
        "so that the step's direction is that of its noise"
    )
    return (Note(text, "nothing along the learned direction", 0.0),)


def _isotropic_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """What isotropic weights (eq. 4) leave out of a prediction."""
    missing = left_out(problem, weights)
    if missing <= _NOTED:
        return ()
    text = (
        "isotropic weights leave out what the step does beside the learned direction: terms "
        f"of up to {missing:.2g} of the loss (method 'exact' has them)"
    )
    return (Note(text, "isotropic weights", missing),)


def _exponent_notes(problem: Problem) -> Notes:
    exponent = problem.regime.exponent
    if exponent is None or exponent <= 0.5 + 1e-9:
        return ()
    size, law = problem.step_size / problem.width**0.5, problem.law
    widest = max(map(abs, law.values)) if law.is_finite else 1.0
    outer = f", {size * widest:.3g}√N for the outermost neurons" if widest > 1.0 else ""
    text = (
        f"step exponent {exponent:.3g} is beyond 1/2, the largest of the published theory: here "
        f"η = {size:.3g}√N{outer}; agreement with networks is tested up to {_TESTED:g}√N, to "
        f"{_HELD:.0%} of the test error"
    )
    return (Note(text, "step beyond 1/2", _HELD if size * widest <= _TESTED else math.inf),)


def _open_notes(problem: Problem) -> Notes:
    """Finite-size terms that are known to be missing, where they have been seen."""
    if problem.step_size == 0.0 or problem.n >= 8 * _FEW:
        return ()
    notes = []
    step = problem.step_size / problem.width**0.5
    degree = growth_degree(problem.sigma)
    if degree >= 3 and step > 0.3:
        text = (
            f"an activation of degree {degree} and a large step: terms of order "
            f"1/n are left out, up to 3 % at n = 2000 (here n = {problem.n})"
        )
        notes.append(Note(text, "activation of degree 3", 0.03 * 2000 / problem.n))
    if problem.phi_step > 1.0 and problem.n < _FEW and step > 0.1:
        text = (
            f"n_step < d at n = {problem.n}: terms of order 1/n are left out, 1 to 2 % of the "
            "test error"
        )
        notes.append(Note(text, "n_step < d", 0.02))
    c_2 = float(coefficients(problem.sigma, 2)[2])
    if problem.initial == "gaussian" and problem.law.name == "rademacher" and c_2 and step > 0.3:
        text = (
            "Gaussian rows of W0, c_2 ≠ 0 and a Rademacher law: terms of order 1/n are left out, "
            f"1 to 2 % at n = 2000 (here n = {problem.n})"
        )
        notes.append(Note(text, "Gaussian rows", 0.02 * 2000 / problem.n))
    star = problem.star
    if (
        isinstance(star, AlignedTarget)
        and star.growth > 1
        and c_2
        and problem.phi_step > 0.25
        and step > 1
    ):
        text = (
            "a target that grows like a square in several directions, c_2 ≠ 0 and few samples for "
            "a large step: single large residuals make terms of order 1/n that are left out, up to "
            f"4 % at n = 1500 (here n = {problem.n})"
        )
        notes.append(Note(text, "large residuals", 0.04 * 1500 / problem.n))
    return tuple(notes)


def mixing_notes(problem: Problem, places: Sequence[float]) -> Notes:
    """Spikes so near to each other that a draw shows neither by itself; places in descending order.

    Theory has them at their means, each with its own function of κ. In a draw they fluctuate by
    more than their distance, repel each other and share their functions.
    """
    reach = _MIXED * math.sqrt(2.0 / min(problem.n, problem.width))
    gaps = [high / low - 1.0 for high, low in pairwise(places)]
    if min(gaps, default=math.inf) > reach:
        return ()
    text = (
        f"two spikes are predicted within {min(gaps):.2g} of each other: at these sizes networks "
        f"have them up to {reach:.2g} further apart, and either carries functions of both"
    )
    return (Note(text, "spikes that mix", reach),)


def edge_notes(*, unresolved: int, heavy_row: float) -> Notes:
    """A spectrum's upper end: spikes that cannot be told from it, rows that lie outside."""
    notes = []
    if unresolved:
        text = (
            f"{unresolved} spike(s) within {MARGIN:g} Tracy–Widom scales of the edge: not resolved "
            "from the bulk at this size"
        )
        notes.append(Note(text, "unresolved spikes", 0.0))
    if heavy_row > _HEAVY_ROW:
        text = (
            f"heavy rows: a typical sample's most extreme row has {heavy_row:.3g} times the mean "
            "square of a feature, so single rows lie outside the bulk and its edge varies from "
            "draw to draw"
        )
        notes.append(Note(text, "heavy rows"))
    return tuple(notes)


def reach_notes(*, edge: float, reach: float, exact: bool, heavy: bool) -> Notes:
    """How far single samples or entries push eigenvalues beyond a spectrum's edge."""
    notes = []
    if exact and reach > edge * (1.0 + _FURTHER):
        text = (
            "large residuals of single samples stretch the weights: the bulk has no sharp "
            f"edge, and draws have singular values up to about {reach**0.5:.4g}"
        )
        notes.append(Note(text, "no sharp edge", reach / edge - 1.0))
    if heavy:
        text = (
            "heavy-tailed activation: rows and columns vary by chance, which is included to "
            f"first order; single large entries may lie outside the bulk up to {reach:.4g}"
        )
        notes.append(Note(text, "heavy-tailed activation", max(reach / edge - 1.0, 0.0)))
    return tuple(notes)


def rung_notes(*, cut_elsewhere: bool, varies: bool) -> Notes:
    """A spectrum that was resolved only with part of its law left out."""
    if cut_elsewhere:
        text = (
            "the law of the step's residual is cut off elsewhere than usual, because the bulk was "
            "not resolved with its tail: the edge is less certain"
        )
        return (Note(text, "residuals cut off elsewhere"),)
    if not varies:
        text = (
            "heavy-tailed activation: rows and columns vary by chance, which is left out because "
            "the bulk was not resolved with it; its edge is seen further out"
        )
        return (Note(text, "heavy-tailed activation"),)
    return ()


def bulk_notes(*, missing: float, rough: float) -> Notes:
    """A bulk that is not quite resolved."""
    notes = []
    if missing > _ROUGH:
        text = (
            f"a share {missing:.1g} of the eigenvalues lies in islands beside the bulk that were "
            "not resolved"
        )
        notes.append(Note(text, "unresolved islands", missing))
    if rough > _ROUGH:
        text = f"the density is resolved to {rough:.1g} of its largest value only"
        notes.append(Note(text, "rough density", rough))
    return tuple(notes)


def blur_notes(mass: float, blur: float) -> Notes:
    """A bulk of many parts, seen from above."""
    text = (
        "the bulk has too many parts to be resolved one by one: its density is blurred over "
        f"{blur:.1%} of its width, its lower end is approximate, and its mass with the atom is "
        f"{mass:.4f}"
    )
    return (Note(text, "blurred bulk", blur),)
