"""Inputs with a covariance: classes of coordinates, and moments of Σ (sections 30, 33, 34).

Few classes stand for a smooth spectrum: the largest eigenvalues one by one, the others in bins that
grow geometrically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...core.covariance import resolve_covariance, target_law
from ...core.problem import Problem
from ...core.spiked import SpikedWeights, linear_part, spiked_weights
from ...core.types import FloatArray, IntArray
from ...functions.nonlinearity import coefficients

SINGLE, BINS = 8, 16  # classes of a smooth spectrum: errors of 1e-3 for power laws up to 0.9
HIGHEST = 6  # of the moments M_k
LEAST_VARIANCE = 0.01  # of the norms of initial rows, from which many groups are split
LARGEST_SPLIT = 0.9  # |ω_c| of groups of long and short rows; 0 leaves their norms to fields alone
LARGEST_RADIUS = 0.25  # r_g of (123): two values stand for larger ones badly; 0 leaves all to s_gh
VISIBLE_SHARE = 0.03  # of one direction in a neuron's variance, from which it is conditioned on
LARGEST_MASS = 0.999  # of the target there: with all of it nothing is left for s
_EQUAL = 1e-6  # spread of eigenvalues below which norms of rows in the classes do not matter
_LETTERS = ((), (1,), (1, 1), (2,))  # 1, S, S² and S2 as products of S̃_p
_LONGEST = 4  # letters of two of them


class NormProducts(NamedTuple):
    """R_gᵀ𝓜R_g, (𝓜R_g)_1 and 𝓜_11 of (103), (104): how w_jᵀΣ^kw_j vary over neurons, times d/2."""

    own: FloatArray  # (B, K)
    shared: FloatArray  # (B, K)
    plain: FloatArray  # (B,)


@dataclass(frozen=True)
class Classes:
    """C classes of coordinates: eigenvalues s_c of Σ, shares f_c, the target's masses t_c."""

    eigenvalue: FloatArray  # (B, C)
    share: FloatArray  # (B, C)
    mass: FloatArray  # (B, C)
    linear: FloatArray  # (B, C) 1, or 0 for a direction that is conditioned on (section 44)
    norms: NormProducts
    variance: FloatArray  # (B, C, K) k_gc of (109)
    excess: FloatArray  # (B, C) variance of eigenvalues of K_g in a class, over all groups
    trace_change: FloatArray  # (B, K, K) Σ f_ck_gck_hc less that of rows of equal norms
    factor: FloatArray  # (B, C, K) √(1 + ω_c): norm of a group's initial weights in a class
    own_norm: FloatArray  # (B, C, K) r̃_gc of (112): what a class adds to a neuron's norm
    initial_norm: FloatArray  # (B, C) the same for its initial norm w_jᵀΣw_j
    radius: FloatArray  # (B, K) r_g of (123)

    def take(self, rows: Any) -> Classes:
        """The same for some of the rows."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        norms = NormProducts(*(part[rows] for part in values.pop("norms")))
        return Classes(norms=norms, **{name: value[rows] for name, value in values.items()})


class InputMoments(NamedTuple):
    """Averages over coordinates; all are 1 for isotropic inputs."""

    powers: FloatArray  # (B, 7) M_k = Σ f_cs_c^k, k = 0 … 6
    target: FloatArray  # (B, 3) Σ t_cs_c^k, k = 0 … 2


Parts = tuple[FloatArray, FloatArray, FloatArray]  # s, f and t of the classes of one problem


def input_classes(problem: Problem) -> Parts | None:
    """Eigenvalues, shares and masses of a problem's classes, (C,) each.

    None for isotropic inputs, also where all eigenvalues of a covariance are the same.
    """
    if problem.covariance is None:
        return None
    law = (problem.target_exponent, problem.target_mass, problem.target_direction)
    return _input_classes(problem.covariance, problem.d, *law)


def splits_rows(problem: Problem) -> bool:
    """True if initial rows of different norms in the classes are groups of their own.

    After a step continuous laws have many groups, and so has a direction that is conditioned on;
    twice as many cost four times as much: there norms that vary little are left to fields.
    """
    parts = input_classes(problem)
    if parts is None:
        return False
    first = int(sees_direction(problem))
    values, shares = (part[first:] for part in parts[:2])
    variance = 2.0 * float(shares @ (values - 1.0) ** 2) / problem.d  # of w_jᵀΣw_j
    few = problem.step_size == 0.0 or (problem.law.is_finite and not first)
    return few or variance >= LEAST_VARIANCE


def class_count(problem: Problem) -> int:
    """How many classes a problem has; 0 for isotropic inputs."""
    parts = input_classes(problem)
    return 0 if parts is None else len(parts[0])


@lru_cache(maxsize=256)
def _input_classes(spec: Any, d: int, exponent: float, mass: Any, direction: Any) -> Parts | None:
    covariance = resolve_covariance(spec, d)
    law = target_law(covariance, exponent, mass, direction)
    order = np.argsort(-covariance.eigenvalues, kind="stable")
    values, counts = covariance.eigenvalues[order], covariance.counts[order].astype(float)
    masses = law.class_mass(covariance)[order]
    if len(values) > SINGLE + BINS:
        ends = np.geomspace(SINGLE, len(values), BINS + 1)
        starts = np.unique(np.concatenate([np.arange(SINGLE), np.rint(ends).astype(int)]))[:-1]
        values = np.add.reduceat(values * counts, starts)
        counts, masses = np.add.reduceat(counts, starts), np.add.reduceat(masses, starts)
        values = values / counts
    if np.all(values == values[0]):
        return None
    return values, counts / d, masses


def input_moments(found: Sequence[Parts | None], first: int = 0) -> InputMoments:
    """M_k, and the same weighted with the target's mass (eq. 90), without the `first` classes."""
    powers, target = np.ones((len(found), HIGHEST + 1)), np.ones((len(found), 3))
    for row, parts in enumerate(found):
        if parts is not None:
            values, shares, masses = (part[first:] for part in parts)
            each = values ** np.arange(HIGHEST + 1)[:, None]
            powers[row], target[row] = each @ shares, each[:3] @ masses
    return InputMoments(powers, target)


def sees_direction(problem: Problem) -> bool:
    """True if the largest direction of the inputs is conditioned on (section 44).

    It is a single one with a visible share. Continuous laws would need groups for every pair of a
    neuron's readout and its part along that direction.
    """
    parts = input_classes(problem)
    if parts is None or problem.is_binary or not problem.has_square_loss:
        return False
    if problem.steps > 1 or problem.residual != "labels" or problem.directions > 1:
        return False
    if problem.sigma.slope_variance == 0.0:
        return False  # affine: linear in every direction
    if not problem.law.is_finite and problem.step_size > 0.0:
        return False
    if round(parts[1][0] * problem.d) != 1 or parts[2][0] >= LARGEST_MASS:
        return False
    shares = direction_shares(problem, spiked_weights(problem))
    return bool(shares[0] >= VISIBLE_SHARE)


def without_first(parts: Parts) -> Parts:
    """Classes with the target's mass beside the first, in units of what it has there."""
    values, shares, masses = parts
    left = np.where(np.arange(masses.size) > 0, masses, 0.0)
    return values, shares, left / left.sum()


class SplitRows(NamedTuple):
    """Groups cut in two by the norms of their initial rows in the classes, long ones first."""

    factor: FloatArray  # (B, C, K) √(1 ± ω_c)
    left: FloatArray  # (B,) of the variance of w_jᵀΣw_j, what is left to fields
    square: FloatArray  # (B, K) w_jᵀΣw_j = Σ f_cs_c(1 ± ω_c)
    along: FloatArray  # (B, K) Σ f_cs_c²√(1 ± ω_c)

    def repeated(self, count: int) -> SplitRows:
        """The same groups so many times."""
        factor, square, along = (
            np.tile(part, count) for part in (self.factor, self.square, self.along)
        )
        return self._replace(factor=factor, square=square, along=along)


def split_rows(
    found: Sequence[Parts | None],
    d: FloatArray,
    count: int,
    *,
    split: bool,
    gaussian: bool,
    first: int = 0,
) -> SplitRows | None:
    """Norms of initial rows in classes that have equally many, for `count` groups (eq. 115).

    The `first` classes are left out.

    ω_c is what ‖w_c‖²/f_c − 1 has in common with w_jᵀΣw_j, whose law two values stand for.
    """
    parts = [each for each in found if each is not None]
    if not parts:
        return None
    values, shares, _ = (np.stack(each) for each in zip(*parts, strict=True))
    beyond = values if gaussian else values - 1.0
    beyond = np.where(np.arange(values.shape[1]) < first, 0.0, beyond)
    size = np.sqrt((shares * beyond**2).sum(axis=1))
    omega = beyond * (np.sqrt(2.0 / d) / np.maximum(size, _EQUAL))[:, None]
    reach = np.minimum(LARGEST_SPLIT * split / np.abs(omega).max(axis=1), 1.0)
    reach = np.where(size > _EQUAL, reach, 0.0)
    omega = omega * reach[:, None]
    sign = np.repeat([1.0, -1.0], count // 2) if split else np.zeros(count)
    factor = np.sqrt(1.0 + omega[:, :, None] * sign)
    weight = (shares * values)[:, :, None]
    along = (weight * values[:, :, None] * factor)[:, first:].sum(axis=1)
    return SplitRows(factor, 1.0 - reach**2, (weight * factor**2)[:, first:].sum(axis=1), along)


def step_classes(
    found: Sequence[Parts | None],
    inputs: InputMoments,
    rows: SplitRows | None,
    coherent: FloatArray,
    spread: FloatArray,
    in_traces: FloatArray,
    polynomials: FloatArray,
    gaussian: bool,
    first: int = 0,
) -> Classes | None:
    """The classes of rows that have equally many; on the `first` of them inputs are conditioned.

    coherent: R_g of (103), (B, K, 3); spread: e_g²φ0b_2 Var σ′, (B, K); in_traces: k_gm_1 of
    `trace_products`, (B, K); polynomials: those of `trace_polynomials`.
    """
    if rows is None:
        return None
    parts = [each for each in found if each is not None]
    values, shares, masses = (np.stack(each) for each in zip(*parts, strict=True))
    powers = values[:, :, None] ** np.arange(1, 4)  # (B, C, 3)
    beyond = powers if gaussian else powers - inputs.powers[:, None, 1:4]
    norms, left = norm_products(inputs, coherent, gaussian), rows.left[:, None]
    own, initial = np.matmul(beyond, coherent.transpose(0, 2, 1)), beyond[:, :, 0]
    along = (
        norms.shared / np.maximum(norms.plain, _EQUAL**2)[:, None]
    )  # regression of a neuron's norm on w_jᵀΣw_j
    taken = (1.0 - np.sqrt(left)) * along
    seen = values[:, :, None], 0.5 * coherent[:, None, :, 1], spread[:, None]
    variance = class_variances(*seen, rows.factor)
    plain = class_variances(values[:, :, None], in_traces[:, None], spread[:, None])
    linear = np.broadcast_to(np.arange(values.shape[1]) >= first, values.shape).astype(float)
    each = (shares * linear)[:, :, None]
    change = np.matmul((each * variance).transpose(0, 2, 1), variance)
    change -= np.matmul((each * plain).transpose(0, 2, 1), plain)
    return Classes(
        values,
        shares,
        masses,
        linear,
        NormProducts(
            norms.own - (1.0 - left) * norms.shared * along,
            left * norms.shared,
            rows.left * norms.plain,
        ),
        variance=variance,
        excess=class_excess(values, polynomials, plain, variance),
        trace_change=change,
        factor=rows.factor,
        own_norm=own - taken[:, None, :] * initial[:, :, None],
        initial_norm=np.asarray(np.sqrt(left) * initial),
        radius=np.zeros_like(spread),
    )


def class_excess(
    values: FloatArray, polynomials: FloatArray, plain: FloatArray, variance: FloatArray
) -> FloatArray:
    """Variance of the eigenvalues of K_g within each class, summed over groups, (B, C).

    It is the right side of (124). plain: the means of their diagonals by the same moments,
    (B, C, K), which the k_gc of `variance` replace.
    """
    powers = values[:, :, None] ** np.arange(HIGHEST + 1)
    square = np.einsum("bggn,bcn->bcg", polynomials, powers)
    return np.asarray(((square / plain**2 - 1.0) * variance**2).sum(axis=2))


def sample_radius(sample_norm: FloatArray, norm: FloatArray) -> FloatArray:
    """r_g: the norm of a sample, as a group sees it, is 1 ± r_g, (B, K) (eq. 123).

    s_gh less r_gr_hρ_g²ρ_h² has no negative eigenvalue.
    """
    square = norm**2
    seen = sample_norm / (square[:, :, None] * square[:, None, :])
    values, vectors = np.linalg.eigh(seen)
    found = np.abs(vectors[..., -1]) * np.sqrt(np.maximum(values[..., -1:], 0.0))
    most = np.maximum(found.max(axis=1, keepdims=True), _EQUAL)
    return np.asarray(found * np.minimum(LARGEST_RADIUS / most, 1.0))


def norm_products(inputs: InputMoments, coherent: FloatArray, gaussian: bool) -> NormProducts:
    """𝓜 between what neurons see of their initial norms w_jᵀΣ^kw_j (eq. 104)."""
    orders = np.arange(1, 4)
    matrix = inputs.powers[:, np.add.outer(orders, orders)]
    if not gaussian:
        each = inputs.powers[:, orders]
        matrix = matrix - each[:, :, None] * each[:, None, :]
    seen = np.einsum("bkl,bgl->bgk", matrix, coherent)
    return NormProducts((seen * coherent).sum(axis=2), seen[:, :, 0], matrix[:, 0, 0])


def coherent_norms(first: FloatArray, k_mean: FloatArray) -> FloatArray:
    """R_g: how a neuron's norm follows w_jᵀΣ^kw_j, k = 1, 2, 3, (B, K, 3) (eq. 103).

    first: 1 + 24c_4em_1Λ + ½e²φ0b_2M_2E[ψ²H_2]; k_mean: k m_1.
    """
    return np.stack([first, 2.0 * k_mean, k_mean**2], axis=2)


def beside_variance(kept: FloatArray, k_mean: FloatArray, powers: FloatArray) -> FloatArray:
    """V⊥_g, what a sample sees of a neuron's norm beside its pre-activation (eq. 99).

    powers: M_k, (B, 7, 1).
    """
    along = kept * powers[:, 2] + k_mean * powers[:, 3]
    square = kept**2 * powers[:, 3] + 2.0 * kept * k_mean * powers[:, 4] + k_mean**2 * powers[:, 5]
    return np.asarray(np.maximum(square - along**2, 0.0))


def class_variances(
    values: FloatArray, k_mean: FloatArray, spread: FloatArray, factor: FloatArray | float = 1.0
) -> FloatArray:
    """k_gc, variances of neurons in one direction of every class (eq. 109).

    s_c, k_gm_1, e_g²φ0b_2 Var σ′ and the norms of initial rows in a class, with axes of classes and
    groups that broadcast.
    """
    s, a = values, factor
    return np.asarray(a**2 * s + 2.0 * k_mean * a * s**2 + k_mean**2 * s**3 + spread * s**2)


def largest_share(problem: Problem, weights: SpikedWeights) -> float:
    """ϖ, the largest share of one direction in a neuron's variance after the step (eq. 114)."""
    return float(direction_shares(problem, weights).max())


def direction_shares(problem: Problem, weights: SpikedWeights) -> FloatArray:
    """The share of one direction of each class in a neuron's variance, of the group with most."""
    parts = input_classes(problem)
    if parts is None:
        return np.zeros(1)
    values, shares, _ = parts
    law = problem.law
    g = np.array(law.values if law.is_finite else (-3.0, 3.0))
    c_2 = float(coefficients(problem.sigma, 2)[2])
    e = problem.step_size / problem.width**0.5 * g
    k_mean = 2.0 * c_2 * e * linear_part(problem.star)[0]
    square = problem.phi_step * weights.residual_square
    spread = e**2 * square * problem.sigma.slope_variance
    variances = class_variances(values, k_mean[:, None], spread[:, None])  # (K, C)
    norms = variances @ shares
    return np.asarray((variances / norms[:, None]).max(axis=0) / problem.d)


def trace_products(
    k: FloatArray,
    delta: FloatArray,
    phi: FloatArray,
    moments: FloatArray,
    powers: FloatArray,
    outer: FloatArray | None = None,
) -> FloatArray:
    """tr(K_gK_h)/d from free moments of Σ, S and S2, (B, K, K) (eq. 108b).

    K_g = Σ^½[(I + k_gS)² + δ_gS2]Σ^½; moments: E r^j, (B, ≥ 5); powers: M_k, (B, 7). `outer` are
    those of the directions on which K_g and K_h are multiplied, where these are not all.
    """
    outer = powers if outer is None else outer
    found = trace_polynomials(k, delta, phi, moments, powers, outer)
    return np.asarray((found * outer[:, None, None, :]).sum(axis=3))


def trace_polynomials(
    k: FloatArray,
    delta: FloatArray,
    phi: FloatArray,
    moments: FloatArray,
    powers: FloatArray,
    outer: FloatArray,
) -> FloatArray:
    """The diagonal of K_gK_h as polynomials in the eigenvalue there, (B, K, K, 7).

    Arguments are those of `trace_products`; one of the two places where K_g and K_h are multiplied
    stays open.
    """
    one = np.ones_like(k)
    factors = np.stack([one, 2.0 * k, k**2, delta], axis=2)  # (B, K, 4) of 1, S, S², S2
    scale = phi[:, None] ** np.arange(_LONGEST)
    known = np.concatenate([scale, moments[:, : _LONGEST + 1], powers, outer], axis=1)
    table, starts, open_power = _word_terms()
    terms = known[:, table].prod(axis=2)[:, :, None] * open_power
    words = np.add.reduceat(terms, starts, axis=1).reshape(-1, 4, 4, HIGHEST + 1)
    words = np.moveaxis(words, 3, 1)  # (B, 7, 4, 4)
    found = factors[:, None] @ words @ factors.transpose(0, 2, 1)[:, None]
    return np.asarray(np.moveaxis(found, 1, 3))


@lru_cache(maxsize=1)
def _word_terms() -> tuple[IntArray, IntArray, FloatArray]:
    """Factors of every term of ⟨Σ A Σ A′⟩, A and A′ in 1, S, S², S2, and where each sum starts.

    A sum over noncrossing partitions. Factors are places among φ0^i, E r^j, M_k and the M_k of the
    outer directions, one after the other; that of the block with the first Σ is left out, and has
    a one at its power in the last array, (terms, 7).
    """
    first_moment, first_power = _LONGEST, 2 * _LONGEST + 1
    first_outer = first_power + HIGHEST + 1
    terms: list[list[int]] = []
    starts, open_powers = [], []
    for left, right in product(_LETTERS, repeat=2):
        starts.append(len(terms))
        letters = left + right
        gap = 2 if left and right else 3
        ends = (0, len(left))
        exponents = [gap if i in ends else 1 for i in range(len(letters))]
        if not letters:
            terms.append([])
            open_powers.append(2)
        for blocks, complement in _noncrossing(len(letters)) if letters else ():
            own = [first_moment + sum(letters[i] for i in block) for block in blocks]
            for block in complement:
                places = [(i + 1) % len(letters) for i in block]
                power = sum(exponents[i] for i in places)
                if 0 in places:
                    open_powers.append(power)
                else:
                    outside = any(i in ends for i in places)
                    own.append((first_outer if outside else first_power) + power)
            terms.append([*own, len(letters) - len(blocks)])  # φ0^(len(block) − 1) of every block
    longest = max(map(len, terms))
    table = np.array([term + [0] * (longest - len(term)) for term in terms])
    return table, np.array(starts), np.eye(HIGHEST + 1)[open_powers]


Partition = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=8)
def _noncrossing(count: int) -> tuple[tuple[Partition, Partition], ...]:
    """Noncrossing partitions of 0 … count − 1, each with its Kreweras complement."""
    found = []
    for labels in product(range(count), repeat=count):
        first_seen = list(dict.fromkeys(labels))
        if first_seen != list(range(len(first_seen))):
            continue  # each partition once
        blocks = tuple(tuple(i for i in range(count) if labels[i] == each) for each in first_seen)
        crossing = any(
            labels[a] == labels[c] != labels[b] == labels[d]
            for a in range(count)
            for b in range(a + 1, count)
            for c in range(b + 1, count)
            for d in range(c + 1, count)
        )
        if not crossing:
            found.append((blocks, _kreweras(blocks, count)))
    return tuple(found)


def _kreweras(blocks: Partition, count: int) -> Partition:
    """Cycles of π⁻¹ after the cyclic shift."""
    before = {}  # π⁻¹
    for block in blocks:
        for i, each in enumerate(block):
            before[each] = block[i - 1]
    left, cycles = set(range(count)), []
    while left:
        start = at = min(left)
        cycle = []
        while at in left:
            left.remove(at)
            cycle.append(at)
            at = before[(at + 1) % count]
        assert at == start
        cycles.append(tuple(cycle))
    return tuple(cycles)
