"""Notes on validity: where an answer is approximate, and by how much it may be off.

Every threshold of a note is here. A note says first what to expect or to do, then why. Its `size`
is the relative error that it admits (inf: no guarantee; 0: information only), and nothing else
excuses a disagreement with a network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Note
from ..core.spiked import MARGIN, SpikedWeights
from ..functions.nonlinearity import coefficients
from ..functions.targets import AlignedTarget
from .exact.inputs import VISIBLE_SHARE, direction_shares, input_classes, sees_direction
from .exact.sectors import pair_covariance, weight_covariance
from .exact.step import build_step, has_higher_degrees, rows_of
from .isotropic import left_out
from .resolution import finite_groups, growth_degree

_SMALL = 50  # smallest size without a note
_FEW = 1000  # samples below which terms of order 1/n have been seen
_QUADRATIC = 0.1  # min(n, N)/(d(d + 1)/2) from which quadratic functions of x are learned
_OVERLAP = 0.04  # K_ββ/d from which gaps of its size have been seen
_MOVED, _MOVED_GAP = 0.15, 0.53  # V_1/√d of (151), and the gap that was seen over it
_MANY_INPUTS = 1000  # d above which neither is reached by steps of order √N
_R_NODES = 14
_QUADRATIC_GAP = 0.05  # relative gap that is then seen, in the median of such problems
_NOTED = 0.02  # share of the loss that isotropic weights may leave out without a note
_TESTED = 4.0  # steps in units of √N, up to which predictions are tested against networks
_TESTED_STEPS = 1.5  # the same for each of several steps
_FEW_FOR_STEPS = 4000  # samples below which terms of order 1/n have been seen after several steps
_STEPS_GAP = 0.015  # relative gap that is then seen at n = 1000
_LOST_SHIFT = 0.05  # root mean square of shifts, relative, that may be lost without a note
_CUBIC_GAP = 0.03  # relative gap seen at n = 2000 for cubic activations after small steps
_HELD = 0.02  # to within that much of the test error
_HEAVY_ROW = 3.0  # mean square of a feature in the largest row of n, over that in all rows
_BEYOND_EDGE = 0.02  # of the edge, that single samples must reach beyond to be noted
_CLOSE = 3.0  # distance of two spikes, in √(2/min(n, N)) of their place, below which draws mix them
_UNRESOLVED = 1e-6  # share of the eigenvalues, or of the density, that may go unresolved
_SHARE_GAP = 0.25  # relative gap seen where a direction of the inputs has a visible share
_LARGE_SHARE, _LARGE_SHARE_GAP = 0.5, 0.5  # share from which it may be larger, and the gap there
_SECOND_SHARE_GAP = 0.15  # the same where the largest one is conditioned on and another has one
_SHIFT_GAP = 0.25  # the same where the fit undoes a common shift by what neurons have along it
_LARGE_SHIFT, _LARGE_SHIFT_GAP = 3.0, 0.5  # shift over a neuron's norm from which it is larger
_LEARNED_SHARE = 0.025  # of the learned direction, from which it is noted
_LEARNED_GAP = 0.07  # the same where the learned direction has a visible share
_TRAIN_TERM = 6.0  # times 1/d, the largest relative gap of a training loss that was seen
_TRAIN_NOTED = 0.01
_REUSED_SHARE = 0.35  # of the change by degrees 2 and 3 on fresh rows, seen on reused rows
_MISSED_NOTED = 0.01  # change from which it is noted
_MISSED = 0.01  # min(n, N)/(d(d + 1)/2) from which other losses may miss them
_CURVED, _UNALIGNED = 0.15, 0.7  # share of degrees 2 and 3 in the target, and γ, where it is asked
_OFFSET_NOTED = 0.005  # relative change of a test error by the random offset of a fit
_QUADRATIC_KIND = "n and N of the order of d²"
Notes = tuple[Note, ...]


def spectrum_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """Notes on spectra: after several steps they have no blocks of degree 2 and 3."""
    shared = (_of_spectrum(n) for n in prediction_notes(problem, weights, "exact", blocks=False))
    has_blocks = problem.steps == 1 and problem.covariance is None
    return tuple(n for n in shared if not (has_blocks and n.kind == _QUADRATIC_KIND))


def _of_spectrum(note: Note) -> Note:
    """A note on predicted errors, in words on the spectrum where these are others."""
    if note.kind != _QUADRATIC_KIND:
        return note
    text = (
        "expect more large singular values than predicted: n and N are large enough for quadratic "
        "functions of the inputs, in all directions, to stand out in the features without a step"
    )
    return Note(text, note.kind, note.size)


def prediction_notes(
    problem: Problem, weights: SpikedWeights, method: str, *, blocks: bool = True
) -> Notes:
    """Notes on a prediction made by `method`, with or without blocks of degree 2 and 3."""
    shared = (*size_notes(problem), *_direction_notes(problem, weights))
    if method == "isotropic":
        quadratic = quadratic_notes(problem)
        return (*shared, *quadratic, *_isotropic_notes(problem, weights), *_exponent_notes(problem))
    blocks = blocks and has_higher_degrees(problem)
    return (
        *shared,
        *(_block_notes(problem) if blocks else quadratic_notes(problem)),
        *(_exponent_notes(problem) if problem.steps == 1 else _steps_notes(problem)),
        *_open_notes(problem),
        *_target_notes(problem),
        *_covariance_notes(problem, weights),
    )


def _steps_notes(problem: Problem) -> Notes:
    """Several steps: sizes beyond those that were compared with networks, and finite sizes."""
    largest = max(problem.step_sizes) / problem.width**0.5
    notes = []
    if problem.n < _FEW_FOR_STEPS:
        size = _STEPS_GAP * _FEW / problem.n
        text = (
            f"expect an error of up to {size:.1%}: terms of order 1/n, which grow with the number "
            "of steps, are left out"
        )
        notes.append(Note(text, "several steps at small n", size))
    if largest > _TESTED_STEPS + 1e-9:
        text = (
            f"check by simulation: predictions of several steps are tested up to {_TESTED_STEPS:g}"
            f"√N each; here the largest is {largest:.3g}√N"
        )
        notes.append(Note(text, "large steps", math.inf))
    return tuple(notes)


def lost_shift_notes(share: float) -> Notes:
    """Shifts of continuous readout laws that lie outside of the axes that are kept."""
    if share < _LOST_SHIFT:
        return ()
    text = (
        f"check by simulation: {share:.1%} of the shifts of the weights lie outside of the three "
        "directions that are kept, and are treated as noise"
    )
    return (Note(text, "many learned directions", math.inf),)


def _covariance_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """Directions of the inputs, or the learned one, with a visible share of a neuron's variance.

    The largest direction is conditioned on where it is a single one (section 44). Sizes are the
    largest gaps seen in the record of `tests/agreement/structured_networks.py`.
    """
    if input_classes(problem) is None or not has_higher_degrees(problem):
        return ()
    shares, is_seen = direction_shares(problem, weights), sees_direction(problem)
    share = float(shares[int(is_seen) :].max(initial=0.0))
    size = _SECOND_SHARE_GAP if is_seen else _SHARE_GAP
    if share >= _LARGE_SHARE:
        size = _LARGE_SHARE_GAP
    if is_seen and _shares_a_shift(problem):
        shift = float(np.abs(weights.shift(np.array(problem.law.values))).max())
        size = max(size, _LARGE_SHIFT_GAP if shift > _LARGE_SHIFT else _SHIFT_GAP)
        text = (
            f"expect an error of up to {size:.0%}: the fit undoes the neurons' common shift by "
            "their parts along the largest direction of the inputs, which are correlated with "
            "their other weights, and the theory takes them as independent"
        )
        return (Note(text, "single directions of the inputs", size),)
    if share >= VISIBLE_SHARE:
        which = "a second direction" if is_seen else "one direction"
        text = (
            f"expect an error of up to {size:.0%}: {which} of the inputs carries {share:.1%} of a "
            "neuron's variance after the step, and the theory assumes that it has a small share"
        )
        return (Note(text, "single directions of the inputs", size),)
    learned = _learned_share(problem.replace(ridge=1.0))
    if learned < _LEARNED_SHARE:
        return ()
    text = (
        f"expect an error of up to {_LEARNED_GAP:.0%}: {learned:.1%} of the variance of a neuron's "
        "weights after the step, its shift apart, lies along the learned direction, and the theory "
        "assumes a small share"
    )
    return (Note(text, "single directions of the inputs", _LEARNED_GAP),)


def _shares_a_shift(problem: Problem) -> bool:
    """True if all neurons share a shift, and features have a mean on its other side.

    The activation is centred and has an even part, and the readout a mean: the fit needs the
    constant for samples on the one side and undoes it on the other (section 44).
    """
    c = np.abs(coefficients(problem.sigma, 2))
    is_even = bool(c[0] < 1e-9 < c[2])
    return is_even and problem.law.mean != 0.0 and problem.step_size > 0.0


@lru_cache(maxsize=4096)
def _learned_share(problem: Problem) -> float:
    """K_ββ/(dρ²) of the group with most, as `direction_shares` for the learned direction."""
    if problem.step_size == 0.0:
        return 0.0
    groups = finite_groups(problem) or (np.array([-3.0, 3.0]), np.array([0.5, 0.5]))
    step = build_step(rows_of(problem)[:1], groups, _R_NODES, higher=True)
    along = pair_covariance(step)[0, :, 0, 0] / step.norm[0] ** 2
    return float(along.max()) / problem.d


def _target_notes(problem: Problem) -> Notes:
    """Averages over the directions of a target that is not smooth."""
    star = problem.star
    if not isinstance(star, AlignedTarget) or star.is_accurate:
        return ()
    text = (
        f"expect an error of about {star.gap:.1g}: the target is not smooth, which limits the "
        "accuracy of averages over its directions"
    )
    return (Note(text, "the target is not smooth", star.gap),)


def train_loss_notes(problem: Problem) -> Notes:
    """Terms of order 1/d of training losses, seen in networks of d = 125 and 375."""
    size = _TRAIN_TERM / problem.d
    if size < _TRAIN_NOTED or problem.shared_rows:  # there they are known: of (67)
        return ()
    text = (
        f"expect training losses of networks to be lower by up to {size:.1%}: terms of order 1/d "
        "are left out; they do not change test losses"
    )
    return (Note(text, "training losses at small d", size),)


def may_miss_degrees(problem: Problem, alignment: float) -> bool:
    """True if functions of degree 2 and 3 at finite d may matter where they are left out.

    On reused rows they are learned along the target's direction where the step finds it. Other
    losses have a note of their own where n and N are of the order of d², and need one from a tenth
    of that on; the change is that of the square loss, of real labels.
    """
    if problem.directions > 1 or problem.is_binary:
        return False
    if not problem.shared_rows:
        return not problem.has_square_loss and _MISSED < _quadratic_share(problem) < _QUADRATIC
    if problem.step_size == 0.0 or alignment > _UNALIGNED:
        return False
    star = coefficients(problem.sigma_star, 3)
    curved = 2.0 * star[2] ** 2 + 6.0 * star[3] ** 2
    return bool(curved > _CURVED * problem.star.second_moment)


def missed_degrees_notes(problem: Problem, change: float) -> Notes:
    """Functions of degree 2 and 3, by which the test error changes where they are known.

    On reused rows a gap of 2.2 ± 0.6 % was seen where the change is 8.6 % (`reused_rows`), with the
    Huber loss one of 9.6 ± 1.7 % where it is 7.5 %.
    """
    size, here = abs(change), "with this loss"
    if problem.shared_rows:
        size, here = _REUSED_SHARE * size, "on reused rows"
    if not size > _MISSED_NOTED:
        return ()
    text = (
        f"expect an error of up to {size:.1%}: functions of degree 2 and 3 of the inputs, which "
        f"would change the test error by {change:+.1%} with the square loss on fresh rows, are "
        f"left out {here}"
    )
    return (Note(text, "quadratic functions that are left out", size),)


def offset_notes(test: float, train: float) -> Notes:
    """Test and training errors of signs where the offset of a fit varies as outputs do."""
    if abs(test) < _OFFSET_NOTED:
        return ()
    text = (
        f"expect test errors of networks to differ by {test:+.1%} and training errors by "
        f"{train:+.1%}: the intercept or mean of a fit varies with the drawn labels, which matters "
        "because the outputs are small"
    )
    return (Note(text, "small outputs with an offset", abs(test)),)


def small_error_notes(problem: Problem, test_error: float) -> Notes:
    """Errors so small that terms of order 1/d in what is learned are as large."""
    if test_error * problem.d**2 > problem.star.second_moment:
        return ()
    text = (
        f"check by simulation: the test error, {test_error:.2g}, is less than 1/d² of the labels' "
        "variance, and terms of order 1/d in the learned function are left out"
    )
    return (Note(text, "very small errors", math.inf),)


def size_notes(problem: Problem) -> Notes:
    """Corrections of order 1/size, where a size is small."""
    smallest = min(problem.n, problem.d, problem.width, problem.n_step)
    if smallest >= _SMALL:
        return ()
    text = (
        f"expect an error of about {1.0 / smallest:.0%}: the smallest of n, d, N and n_step is "
        f"{smallest}, and terms of order 1/{smallest} are left out"
    )
    return (Note(text, "small sizes", 1.0 / smallest),)


def _block_notes(problem: Problem) -> Notes:
    """Where blocks of degree 2 and 3 are included, what is not."""
    return overlap_notes(problem) if input_classes(problem) is None else ()


def overlap_notes(problem: Problem) -> Notes:
    """Expansions of sections 51–53 in what a neuron has along the learned direction.

    K_ββ/d is the variance of that overlap, and V_1 of (151) moves a neuron's norm with it. Sizes
    are the largest gaps seen in the record of `benchmarks.small_d`.
    """
    return overlap_note(problem.d, *_overlap(problem)) if _may_overlap(problem) else ()


def overlap_note(d: int, overlap: float, moved: float = 0.0) -> Notes:
    """The same for K_ββ/d and V_1/√d as they are."""
    size = max(overlap * (overlap > _OVERLAP), _MOVED_GAP * moved * (moved > _MOVED))
    if size == 0.0:
        return ()
    text = (
        f"expect an error of up to {size:.0%}: at d = {d} neurons have large overlaps with the "
        f"learned direction after the last step (variance {overlap:.2g}), and only leading terms "
        "in these overlaps are included"
    )
    return (Note(text, "overlaps at small d", size),)


def _may_overlap(problem: Problem) -> bool:
    """True if neurons may have a large overlap with the learned direction after one step."""
    return problem.steps == 1 and problem.step_size > 0.0 and problem.d <= _MANY_INPUTS


_Overlap = tuple[float, float]  # K_ββ/d and V_1/√d of the weights after the step
_OVERLAPS: dict[tuple[Any, ...], _Overlap] = {}  # of problems without their n and ridge
_MOST_OVERLAPS = 100_000
_AT_ONCE = 500


def _overlap_key(problem: Problem) -> tuple[Any, ...]:
    """What an overlap depends on; functions and words first."""
    shared = (problem.sigma, problem.star, problem.residual, problem.initial)
    sizes = (problem.d, problem.width, problem.n_step, problem.step_size, problem.noise_std)
    return (*shared, problem.law, *sizes)


def _overlap(problem: Problem) -> _Overlap:
    remember_overlaps([problem])
    return _OVERLAPS[_overlap_key(problem)]


def remember_overlaps(problems: Sequence[Problem]) -> None:
    """Compute together the overlaps that notes of these problems will ask for."""
    if len(_OVERLAPS) > _MOST_OVERLAPS:
        _OVERLAPS.clear()
    alike: dict[tuple[Any, ...], dict[tuple[Any, ...], Problem]] = {}
    for problem in problems:
        if not (_may_overlap(problem) and has_higher_degrees(problem)):
            continue
        if input_classes(problem) is None and (key := _overlap_key(problem)) not in _OVERLAPS:
            alike.setdefault(key[:4], {})[key] = problem
    for missing in alike.values():
        items = list(missing.items())
        for first in range(0, len(items), _AT_ONCE):
            keys, some = zip(*items[first : first + _AT_ONCE], strict=True)
            _OVERLAPS.update(zip(keys, _overlaps(some), strict=True))


def _overlaps(problems: Sequence[Problem]) -> list[_Overlap]:
    """K_ββ/d and V_1/√d of problems that share functions, residual and start."""
    groups = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    first = problems[0]
    with np.errstate(all="ignore"):
        step = build_step([rows_of(p)[0] for p in problems], groups, _R_NODES, higher=True)
        along = weight_covariance(step).special[:, :, 0, 0].mean(axis=1) / step.d
    c, star = coefficients(first.sigma, 3), coefficients(first.sigma_star, 1)
    moved = 12.0 * np.abs(step.e[:, 0] * c[3] * star[1]) / np.sqrt(step.d)
    return list(zip(along.tolist(), moved.tolist(), strict=True))


def quadratic_notes(problem: Problem) -> Notes:
    """n and N of the order of d², where random features learn quadratic functions of the inputs.

    For answers without blocks of degree 2. Seen in the record of `benchmarks.validity`.
    """
    share = _quadratic_share(problem)
    if share < _QUADRATIC:
        return ()
    text = (
        f"expect a lower error than predicted, by {_QUADRATIC_GAP:.0%} or more: n and N are large "
        "enough to learn quadratic functions in all directions without a step (the smaller is "
        f"{share:.2g}·d(d + 1)/2), and the activation has a quadratic part (c_2 ≠ 0)"
    )
    return (Note(text, _QUADRATIC_KIND, _QUADRATIC_GAP),)


def quadratic_floor_notes(problem: Problem, floor: float) -> Notes:
    """The same for floors of `learnable`, with the floor of quadratic functions."""
    share = _quadratic_share(problem)
    if share < _QUADRATIC:
        return ()
    text = (
        f"expect a lower floor, down to {floor:.4g}: n and N are large enough to learn quadratic "
        f"functions in all directions without a step (the smaller is {share:.2g}·d(d + 1)/2)"
    )
    return (Note(text, "n and N of the order of d²", math.inf),)


def _quadratic_share(problem: Problem) -> float:
    """min(n, N)/(d(d + 1)/2), 0 for an activation without a quadratic part."""
    if abs(float(coefficients(problem.sigma, 2)[2])) < 1e-9:
        return 0.0
    return min(problem.n, problem.width) / (problem.d * (problem.d + 1) / 2)


def _direction_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """A target without a linear part: information only."""
    if problem.step_size == 0.0 or weights.alignment != 0.0:
        return ()
    text = (
        "expect little or no gain from the step: the target has no linear part (c⋆_1 = 0), so the "
        "learned direction is noise"
    )
    return (Note(text, "no linear part", 0.0),)


def _isotropic_notes(problem: Problem, weights: SpikedWeights) -> Notes:
    """What isotropic weights, by (4), leave out of a prediction."""
    missing = left_out(problem, weights)
    if missing <= _NOTED:
        return ()
    text = (
        "choose method 'exact': isotropic weights keep only each neuron's shift and norm, and "
        f"leave out terms of up to {missing:.2g} of the loss"
    )
    return (Note(text, "isotropic weights", missing),)


def _exponent_notes(problem: Problem) -> Notes:
    """Steps beyond the largest one of the published theory."""
    exponent = problem.regime.exponent
    if exponent is None or exponent <= 0.5 + 1e-9:
        return ()
    size, law = problem.step_size / problem.width**0.5, problem.law
    widest = max(map(abs, law.values)) if law.is_finite else 1.0
    tested = size * widest <= _TESTED
    outer = f", {size * widest:.3g}√N for the outermost neurons" if widest > 1.0 else ""
    expect = f"expect agreement with networks to {_HELD:.0%}" if tested else "check by simulation"
    text = (
        f"{expect}: predictions are tested up to η = {_TESTED:g}√N; here η = {size:.3g}√N{outer} "
        f"(step exponent {exponent:.3g}, beyond 1/2, the largest of the published theory)"
    )
    return (Note(text, "step beyond 1/2", _HELD if tested else math.inf),)


def _open_notes(problem: Problem) -> Notes:
    """Missing terms of order 1/n, where they have been seen."""
    if problem.step_size == 0.0 or problem.n >= 8 * _FEW:
        return ()
    n, step = problem.n, problem.step_size / problem.width**0.5
    c_2, star = float(coefficients(problem.sigma, 2)[2]), problem.star
    degree = growth_degree(problem.sigma)
    notes = []

    def expect(size: float, kind: str, reason: str, seen: str = "") -> None:
        text = f"expect an error of up to {size:.1%}: {reason}, and terms of order 1/n are left out"
        notes.append(Note(text + seen, kind, size))

    if degree >= 3 and step > 0.1:
        reason = f"the activation has degree {degree}, so that few samples have large features"
        total = sum(problem.step_sizes) / problem.width**0.5
        size = _CUBIC_GAP * 2000 / n * (1.0 + 2.0 * total**2)
        expect(size, "activation of degree 3", reason, " (they grow with the step, as η²/N)")
    if problem.phi_step > 1.0 and n < _FEW and step > 0.1:
        expect(0.02, "n_step < d", f"n_step < d at n = {n}")
    if problem.initial == "gaussian" and problem.law.name == "rademacher" and c_2 and step > 0.3:
        reason = (
            "the first layer starts with Gaussian rows, the readout law is Rademacher, the "
            "activation has a quadratic part (c_2 ≠ 0)"
        )
        expect(0.02 * 2000 / n, "Gaussian rows", reason, " (1 to 2 % seen at n = 2000)")
    steep = isinstance(star, AlignedTarget) and star.growth > 1
    if steep and c_2 and problem.phi_step > 0.25 and step > 1:
        reason = (
            "the target grows quadratically in several directions, the activation has a quadratic "
            "part (c_2 ≠ 0), the step is large and on few samples, so that a few samples with "
            "large residuals matter"
        )
        expect(0.04 * 1500 / n, "large residuals", reason, " (4 % seen at n = 1500)")
    return tuple(notes)


def close_spikes_notes(problem: Problem, places: Sequence[float]) -> Notes:
    """Spikes too close to be told apart in one network; `places` in descending order.

    They are predicted at their means, each with its own function of κ. In a draw they fluctuate by
    more than their distance, repel each other and share their functions.
    """
    reach = _CLOSE * math.sqrt(2.0 / min(problem.n, problem.width))
    gaps = [high / low - 1.0 for high, low in pairwise(places)]
    if min(gaps, default=math.inf) > reach:
        return ()
    text = (
        f"treat two spikes predicted at a relative distance of {min(gaps):.2g} as a pair: in "
        f"networks of this size they lie up to {reach:.2g} further apart, and each carries a "
        "mixture of both functions"
    )
    return (Note(text, "close spikes", reach),)


def edge_notes(*, unresolved: int, heavy_row: float) -> Notes:
    """The bulk's upper edge: spikes that are too close to it, rows of features beyond it."""
    notes = []
    if unresolved:
        text = (
            f"{unresolved} of the listed spikes may not stand out in one network of this size: "
            f"they are closer to the bulk's edge than {MARGIN:g} times its random fluctuation (the "
            "Tracy–Widom scale)"
        )
        notes.append(Note(text, "unresolved spikes", 0.0))
    if heavy_row > _HEAVY_ROW:
        text = (
            "expect singular values beyond the bulk that vary from draw to draw: a few samples "
            f"have large features, up to {heavy_row:.3g} times the mean square of all"
        )
        notes.append(Note(text, "heavy rows"))
    return tuple(notes)


def reach_notes(*, edge: float, reach: float, heavy: bool) -> Notes:
    """Eigenvalues of single samples or entries beyond the bulk, up to `reach`."""
    notes = []
    if reach > edge * (1.0 + _BEYOND_EDGE):
        text = (
            f"singular values up to {reach**0.5:.4g} may not be spikes: a few samples with large "
            "residuals blur the bulk's edge"
        )
        notes.append(Note(text, "no sharp edge", reach / edge - 1.0))
    if heavy:
        text = (
            f"singular values up to {reach**0.5:.4g} may come from single large features: the "
            "activation is heavy-tailed, and these random effects are included to first order only"
        )
        notes.append(Note(text, "heavy-tailed activation", max(reach / edge - 1.0, 0.0)))
    return tuple(notes)


def bulk_notes(*, missing: float, density_error: float) -> Notes:
    """A bulk that is not resolved completely."""
    notes = []
    if missing > _UNRESOLVED:
        text = (
            f"expect a share {missing:.1g} of the eigenvalues outside the drawn density: small "
            "intervals beside the bulk were not resolved"
        )
        notes.append(Note(text, "unresolved intervals", missing))
    if density_error > _UNRESOLVED:
        text = (
            f"expect errors in the density of up to {density_error:.1g} of its largest value: it "
            "was not resolved further"
        )
        notes.append(Note(text, "rough density", density_error))
    return tuple(notes)


def smoothing_notes(mass: float, width: float) -> Notes:
    """A bulk of many intervals, whose density is smoothed."""
    text = (
        f"expect a density smoothed over {width:.1%} of the bulk's width, with an approximate "
        "lower end: the bulk has too many intervals to resolve one by one (the smoothed density "
        f"and the eigenvalues at 0 have a total mass of {mass:.4f})"
    )
    return (Note(text, "smoothed bulk", width),)
