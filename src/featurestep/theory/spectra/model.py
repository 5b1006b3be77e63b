"""The model of a spectrum after one step: its groups and nodes, and its equations on them.

Rows and columns of F vary. Equations (7)–(8) take Σ_j F_ij² R_jj for its mean. Entries with a
fourth cumulant k_4 = k_4(κ, g) make it vary: χ of a sample by a variance Σ_g k_4 V2_g²/N_g, and the
denominator of (23) of a neuron by n E[k_4/(1+χ)²]. An entry enters its own row's χ but not the
weight 1/(1+χ) with which its column sees it (a cavity), so ν² in χ varies with the row only and ν²
in V̂2 with the column. This is the first correction in k_4/n, the one known for sparse matrices; it
is kept where it moves the edge by more than the edge fluctuates. An activation without a linear
part learns nothing and keeps the plain law of Marchenko and Pastur.

Where n and N are of the order of d², degrees 2 and 3 have blocks (131), a part of the bulk of their
own. A spectrum has fewer terms of sections 50–53 than a prediction: tables t_k at nodes of κ and
‖x‖, without what a neuron's overlap with κ adds, the coordinates κx_i among the others of degree 2,
and no fields of degree 2 and 3. The norm of a sample is that of the nodes.

Laws of κ, ‖x‖ and g are cut off where finite samples end: among n samples hardly any |κ| exceeds
κ_n with P(|κ| > κ_n) = ½/n. Beyond it a row of F would lie outside the bulk by itself, but no such
row is there; with the full law an unbounded activation has a bulk without an edge. So the rules of
κ end at κ_n (that of a Gaussian readout law for spikes at g_N, that of the step's residual at a few
of its samples), and their outer weights are chosen such that low moments remain those of the full
law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.spiked import SpikedWeights, spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients, normalised_hermite
from ...functions.quadrature import (
    Rule,
    gauss_from_measure,
    gauss_hermite,
    gauss_law,
    largest_expected,
    normal_quantile,
    saturating_gauss_law,
    stretched_uniform,
    truncated_normal,
    truncated_normal_size,
)
from ..exact.columns import Columns, build_columns
from ..exact.degrees import DEGREES, dimension, pair_blocks, traceless_share
from ..exact.fixed_point import Evaluation, Samples
from ..exact.sectors import Sector, bulk_covariance
from ..exact.step import ProblemRow, Step, build_step, bulk_products, sample_norm_of_radius
from ..resolution import (
    FEWEST_INPUTS,
    MOST_GROUPS,
    MOST_NODES,
    Mirrored,
    finite_groups,
    rounded_down,
)
from ..validity import spectrum_notes
from .equations import FULL, Accuracy, Equations
from .spike_system import GroupsInBulk, SpikeGroups, groups_in_bulk
from .weights import WeightSpectrum, weight_spectrum

SAMPLES_BEYOND = 20.0  # samples of the step whose residual may exceed the end of the law of r
MAX_REFINEMENT = 4.0
_SPACING = 0.5  # of the rules' nodes in their stretched variables
_MIN_BULK_GROUPS = 3  # nodes of a continuous law, for a bulk
_BULK_GROUPS = 6  # that are enough, but for bulks that are apart
_MIN_GROUP = 0.02  # share of neurons: groups of fewer lie outside the bulk of the others
_MAX_SEPARATION = {False: 0.03, True: 0.5}  # of groups: up to that many, and beyond
_SATURATION = {
    True: 0.5,
    False: 0.3,
}  # of `saturating_gauss_law` over a step's reach, if σ is bounded or not
_OUTER_RADIUS = 20.0  # |z| at which a bounded activation has taken its largest values
_KAPPA_NODES = 7  # for a group's mean square
_MIN_SHARE = 0.002  # of neurons or samples that is not to be cut off from the rest
_MIN_ROW_SPREAD = 0.06  # spread of a row's variance, from that of ‖x‖, that is worth nodes
_RADIUS_NODES = 3  # of ‖x‖, whose spread is small
_VISIBLE = 0.02  # min(n, N) over the coordinates of a degree, from which it has a block (131)
_NO_PART = 1e-9  # |c_k| of an activation without degree k


@dataclass(frozen=True)
class Nodes:
    """Nodes of κ and, where its spread can be seen, of ‖x‖."""

    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,)
    radius: FloatArray | None = None  # (Q,) ‖x‖/√d

    def twice(self) -> Nodes:
        """Every node two times, with half of its weight."""
        radius = None if self.radius is None else np.repeat(self.radius, 2)
        return Nodes(np.repeat(self.kappa, 2), np.repeat(0.5 * self.weight, 2), radius)


def needed_refinement(samples: Samples, least: float) -> float:
    """How fine the rules must be, at least `least`, for gaps not to open between their nodes.

    A group alone (or a node) would fill a bulk of relative width about 4√(N/n) or 4√(n/N): mean
    squares of neighbours have to differ by less.
    """
    step, columns = samples.step, samples.columns
    power = columns.power(step.norm)[0]  # (Q, K)
    share = step.neurons[0] / step.neurons.sum()
    ratio = float(step.neurons.sum() / step.n[0])
    width = 4.0 * math.sqrt(min(ratio, 1.0 / ratio))
    largest = max(
        _largest_ratio(samples.weight @ power, share), _largest_ratio(power @ share, samples.weight)
    )
    needed = 2.0 ** (0.5 * np.ceil(2.0 * np.log2(largest / (0.15 * width))))
    return float(np.clip(needed, least, MAX_REFINEMENT))


def _largest_ratio(values: FloatArray, share: FloatArray) -> float:
    """Logarithm of the largest ratio of neighbouring values that carry some weight."""
    order = np.argsort(values)
    kept = np.log(values[order][share[order] > _MIN_SHARE])
    return float(np.diff(kept).max(initial=1e-12))


def bulk_groups(problem: Problem, weights: SpikedWeights, limit: int) -> Rule:
    """The values of a finite law, or the few groups that stand for any other in a bulk."""
    found = finite_groups(problem)
    if found is None or found[0].size > limit:
        found = few_groups(problem, weights, limit)
    return Mirrored.of(found, problem.sigma).rule


def few_groups(problem: Problem, weights: SpikedWeights, limit: int) -> Rule:
    """Groups of a continuous law, or one of many values, for a bulk: at most `limit`.

    As many as the step needs: few where all neurons are alike, more where the bulks that
    neighbouring groups would fill by themselves are apart. Over random problems edges are then
    those of twice as many groups to 1e-5 (uniform law) or 1e-4, where the law has a sharp edge.
    """
    if problem.law.name == "gaussian" and not _is_bounded(problem.sigma):
        # its outermost neurons are apart however many groups there are
        limit = min(limit, _BULK_GROUPS)
    fewest = min(_MIN_BULK_GROUPS, limit)
    rule = _gauss_groups(problem, weights, fewest)
    close = _are_close(problem, weights, rule)
    for count in range(fewest + 1, limit + 1):
        more = _gauss_groups(problem, weights, count)
        were_close, close = close, _are_close(problem, weights, more)
        if were_close and close:
            break
        rule = more
    return rule


def _are_close(problem: Problem, weights: SpikedWeights, rule: Rule) -> bool:
    """True if bulks of neighbouring groups overlap enough for a rule of that many groups.

    Mean squares of an activation that oscillates may be alike at the groups of one rule by chance,
    so `few_groups` asks two rules.
    """
    g, share = rule
    most = _MAX_SEPARATION[g.size >= _BULK_GROUPS]
    return _separation(problem, weights, g[share > _MIN_GROUP]) < most


def _separation(problem: Problem, weights: SpikedWeights, g: FloatArray) -> float:
    """Largest distance of neighbouring groups' mean squares, over the width of a group's bulk.

    That is about 4√(N/n) or 4√(n/N), relative to its place.
    """
    ratio = problem.width / problem.n
    kappa, share = gauss_hermite(_KAPPA_NODES)
    norm = weights.norm(g)
    moments = problem.sigma.moments(norm, weights.shift(g) * kappa[:, None])
    squares = np.sort(np.log(share @ (moments.spread + (norm * moments.slope) ** 2)))
    return float(np.diff(squares).max(initial=0.0)) / (4.0 * math.sqrt(min(ratio, 1.0 / ratio)))


def _gauss_groups(problem: Problem, weights: SpikedWeights, count: int) -> Rule:
    """Gauss nodes of a law, in a variable in which features are near to polynomials of it.

    Features of a bounded activation level off where its weights grow. Those of others grow with
    the weights, and the largest decide on the edge: the outermost stay where Gauss nodes lie.
    """
    bounded = _is_bounded(problem.sigma)
    law, rate = problem.law, _SATURATION[bounded] * _reach(weights)
    if law.is_finite:
        g, share = np.array(law.values), np.array(law.probabilities)
        rule = gauss_from_measure(g / np.sqrt(1.0 + (rate * g) ** 2), share, count)
        return rule.nodes / np.sqrt(1.0 - (rate * rule.nodes) ** 2), rule.weights
    end = None if bounded else float(gauss_law(law.name, count)[0][-1])
    return saturating_gauss_law(law.name, count, rate, end)


def _is_bounded(sigma: Nonlinearity) -> bool:
    z = np.linspace(-2.0 * _OUTER_RADIUS, 2.0 * _OUTER_RADIUS, 801)
    with np.errstate(all="ignore"):
        values = np.abs(sigma(z))
    return bool(values.max() <= 1.01 * values[np.abs(z) <= _OUTER_RADIUS].max())


def _reach(weights: SpikedWeights) -> float:
    """The 1/g at which a step's effect on a neuron is of order 1."""
    effects = (abs(weights.unit_shift), abs(weights.unit_drift), math.sqrt(weights.unit_growth))
    return max(*effects, 1e-300)


def groups_for_spikes(problem: Problem, weights: SpikedWeights, refinement: float) -> Rule:
    """Groups of a continuous law for the spikes."""
    reach = _reach(weights)
    scale = rounded_down(0.5 / reach)
    widest = rounded_down(0.6 / reach) if problem.sigma.oscillates else 1.0
    spacing = _SPACING / refinement
    if problem.law.name == "uniform":
        return stretched_uniform(scale, widest, spacing)
    end = largest_expected(problem.width)
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_GROUPS, "groups"
    )
    return truncated_normal(end, scale, widest, spacing)


def node_rule(problem: Problem, weights: SpikedWeights, refinement: float) -> Nodes:
    """Nodes up to what n samples show: of κ and, where its spread is visible, of ‖x‖."""
    sigma = problem.sigma
    largest = max(map(abs, problem.law.values)) if problem.law.is_finite else 1.0
    shift = max(abs(weights.unit_shift) * largest, 1e-300)
    scale = rounded_down(0.5 / shift)
    widest = rounded_down(1.0 / shift) if sigma.oscillates else 1.0
    end, spacing = largest_expected(problem.n), _SPACING / refinement
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_NODES, "nodes"
    )
    kappa, weight = truncated_normal(end, scale, widest, spacing)
    if not (visible_degrees(problem) or is_norm_spread_visible(problem)):
        return Nodes(kappa, weight)
    z, share = gauss_hermite(_RADIUS_NODES)
    cube = 2.0 / (9.0 * problem.d)  # Wilson and Hilferty: (‖x‖²/d)^(1/3) is normal
    radius = np.maximum(1.0 - cube + math.sqrt(cube) * z, 0.1) ** 1.5
    both = np.multiply.outer(weight, share).ravel()
    return Nodes(np.repeat(kappa, z.size), both, np.tile(radius, kappa.size))


def _refuse_if_many(problem: Problem, count: int, most: int, what: str) -> None:
    if count > most:
        raise NotConverged(
            f"activation {problem.sigma.name} oscillates too fast at this step: "
            f"more than {most} {what} would be needed; take a smaller step"
        )


def is_norm_spread_visible(problem: Problem) -> bool:
    """Whether the spread of ‖x‖, 1/√(2d), makes that of a row's power visible.

    By |d log/d log r| at r = 1 of a row's mean square beside w·x: of ν², μ² and (m − c_0)².
    """
    sigma, change, sizes = problem.sigma, 1e-3, []
    c_0 = float(coefficients(sigma, 0)[0])
    for radius in (1.0 - change, 1.0 + change):
        mean, slope, spread = (
            float(np.ravel(m)[0]) for m in sigma.moments(np.array([radius]), np.zeros(1))
        )
        sizes.append((mean - c_0) ** 2 + slope**2 + spread)
    sensitivity = abs(math.log(sizes[1] / sizes[0])) / (2.0 * change)
    return sensitivity / math.sqrt(2.0 * problem.d) > _MIN_ROW_SPREAD


def visible_degrees(problem: Problem) -> tuple[int, ...]:
    """Degrees of which n and N show more than noise."""
    if problem.covariance is not None or problem.steps > 1 or problem.d < FEWEST_INPUTS:
        return ()
    found = []
    for k in DEGREES:
        count = float(dimension(np.array([float(problem.d)]), k)[0])
        part = problem.step_size > 0.0 or abs(float(coefficients(problem.sigma, k)[k])) > _NO_PART
        if part and min(problem.n, problem.width) > _VISIBLE * count:
            found.append(k)
    return tuple(found)


HIGHEST = 6  # degree of the polynomials that spikes are compared with
MAX_GROUPS = 8  # of a bulk: Newton's matrix has K(5K+5)/2 rows
MAX_VARYING_GROUPS = 3  # where rows and columns vary by chance, which doubles them
_MIN_SLOPE = 1e-9  # |c_1| below which an activation has no linear part
_MIN_CUMULANT_SPREAD = 0.14  # relative spread of a row's or column's power by chance, worth nodes
_CUMULANT_POINTS = 161
_MIN_NOISE = 0.02  # share of ν² that is left at the lowest node


@dataclass(frozen=True)
class Coordinates:
    """Means of functions of κ and of the target's coordinates, given a node.

    After one step a node is a value of κ. After several it is ξ, of which κ has a part only.
    """

    kappa: FloatArray  # (Y,) values of κ at which a spike's function is given
    hermite: FloatArray  # (Q, HIGHEST + 1) E[H_k(κ)|node], normalised
    powers: FloatArray  # (Q, HIGHEST) E[κ^k|node]
    power_squares: FloatArray  # (HIGHEST,) E κ^2k
    target: FloatArray  # (r, Q) E[θ_k·x|node]
    across: FloatArray  # (r, r) what θ_k·x has of s
    are_kappa: bool = True  # whether the nodes are those of κ

    def function(self, at_nodes: FloatArray, overlaps: FloatArray) -> FloatArray:
        """A function of κ from its values at the nodes.

        Where these are not those of κ, from its overlaps with H_0 … H_6.
        """
        if self.are_kappa:
            return at_nodes
        return np.asarray(overlaps @ normalised_hermite(HIGHEST, self.kappa))


@dataclass(frozen=True)
class Model:
    """One problem's equations."""

    problem: Problem
    samples: Samples  # of one row
    spike_groups: SpikeGroups | None  # groups for the spikes, where the bulk needs fewer
    varies: bool  # whether rows and columns vary by chance: ν² then enters χ and V̂2 differently
    atom: float  # share of eigenvalues that are 0
    notes: tuple[str, ...]  # what predictions of the same problem leave out

    def equations(self, accuracy: Accuracy) -> Equations:
        """Its fixed point as a function of z."""
        return Equations(self.samples, accuracy, varies=self.varies)

    def groups_at(self, found: Evaluation) -> GroupsInBulk:
        """The groups whose fields may make spikes, at real places above the bulk."""
        return groups_in_bulk(found, self.spike_groups)

    @cached_property
    def coordinates(self) -> Coordinates:
        """κ and the target's coordinates at the nodes."""
        step, kappa = self.samples.step, self.samples.kappa
        gamma = float(step.alignment[0])
        target = np.zeros((step.directions, kappa.size))
        target[0] = gamma * kappa
        across = np.eye(step.directions)
        across[0, 0] = math.sqrt(max(1.0 - gamma**2, 0.0))
        powers = kappa[:, None] ** np.arange(1, HIGHEST + 1)
        return Coordinates(
            kappa=kappa,
            hermite=normalised_hermite(HIGHEST, kappa).T,
            powers=powers,
            power_squares=self.samples.weight @ powers**2,
            target=target,
            across=across,
        )

    @property
    def weights(self) -> WeightSpectrum:
        """The spectrum of the weights."""
        return weight_spectrum(self.samples.step)

    def moments(self) -> tuple[float, float]:
        """First two moments of the bulk: (1/N) tr of FᵀF/n and of its square, means left out.

        With p_g = ρ_g²μ_g² + ν_g² and P_g = E p_g they are Σ π_g P_g and Σ π_g(P_g² + C_g),
        C_g = Σ_h N_h (E[p_g p_h]/n + (tr K_gK_h/d) E[μ_gμ_h]²/d): the 1/z expansion of (7), (8),
        (22), (23). In a mean with p_h, p_g is what V̂2 sees of it and p_h what χ sees.
        """
        step = self.samples.step
        return bulk_moments(
            self.samples.columns, self.samples.weight, step.norm[0] ** 2, step.neurons[0],
            bulk_products(step)[0], (step.n[0], step.d[0]),
        )  # fmt: skip


def build_model(problem: Problem, accuracy: Accuracy = FULL, *, refinement: float = 1.0) -> Model:
    """The model of one problem; `refinement` multiplies the number of nodes that it needs.

    Finite laws have one group for each value. For a continuous law, or one of many values, the
    bulk's integrals over g are smooth: few groups are enough for it. Spikes have columns that are
    not, and many groups.
    """
    weights = spiked_weights(problem)
    most = MAX_GROUPS // (1 + _splits_rows(problem))
    few, nodes = bulk_groups(problem, weights, most), node_rule(problem, weights, 1.0)
    samples = _samples(problem, few, nodes, accuracy)
    fine = refinement * needed_refinement(samples, accuracy.rules)
    if fine != 1.0:
        nodes = node_rule(problem, weights, fine)
        samples = _samples(problem, few, nodes, accuracy)
    variance = row_column_variance(problem, samples)
    if variance is not None and few[0].size > MAX_VARYING_GROUPS:  # it takes twice as many
        few = bulk_groups(problem, weights, MAX_VARYING_GROUPS)
        samples = _samples(problem, few, nodes, accuracy)
        variance = row_column_variance(problem, samples)
    if variance is not None:
        samples = _with_variance(problem, few, nodes, variance, accuracy)
        nodes = nodes.twice()
    finite, spike_groups = finite_groups(problem), None
    many = finite or groups_for_spikes(problem, weights, fine * accuracy.spike_groups)
    many = Mirrored.of(many, problem.sigma).rule
    if finite is None or few[0].size < many[0].size:
        spike_groups = SpikeGroups(_samples(problem, many, nodes, accuracy))
    return Model(
        problem=problem,
        samples=samples,
        spike_groups=spike_groups,
        varies=variance is not None,
        atom=share_of_zeros(problem),
        notes=spectrum_notes(problem, weights),
    )


def _samples(problem: Problem, groups: Rule, nodes: Nodes, accuracy: Accuracy) -> Samples:
    """Columns of the groups at the nodes, with the law of r that the step's samples show."""
    beyond = problem.n_step / (2.0 * SAMPLES_BEYOND)
    step = build_step(
        [ProblemRow(problem)],
        groups,
        accuracy.r_nodes,
        samples=beyond,
        by_norm=_splits_rows(problem),
    )
    columns = build_columns(problem.sigma, step, nodes.kappa)
    if nodes.radius is not None:
        columns = _at_radii(problem.sigma, step, columns, nodes.kappa, nodes.radius)
        # The nodes have the variance of ‖x‖: of s_gh what inputs on the sphere have is left.
        left = step.sample_norm - sample_norm_of_radius(step)
        step = replace(step, sample_norm=left)
    columns = with_blocks(problem, step, columns, nodes.kappa, nodes.radius)
    return Samples(step, columns, nodes.kappa, nodes.weight)


def _splits_rows(problem: Problem) -> bool:
    """True if groups of Gaussian rows are cut in two by norm (143): where there are blocks."""
    return problem.initial == "gaussian" and bool(visible_degrees(problem))


def share_of_zeros(problem: Problem) -> float:
    """Share of eigenvalues that are 0: features beyond the rank."""
    rank = min(problem.n, problem.width)
    if problem.sigma.slope_variance == 0.0:  # affine features have the rank of the inputs
        rank = min(rank, problem.d)
    return 1.0 - rank / problem.width


def bulk_moments(
    columns: Columns,
    weight: FloatArray,
    norm2: FloatArray,
    neurons: FloatArray,
    products: FloatArray,
    sizes: tuple[float, float],
) -> tuple[float, float]:
    """(1/N) tr of FᵀF/n and of its square, means of the features left out.

    norm2, neurons: ρ_g² and N_g, (K,); products: tr(K_gK_h)/d, (K, K); sizes: n and d.
    """
    n, d = sizes
    slope = columns.slope[0]
    linear = norm2 * slope**2  # (Q, K)
    in_chi, in_v2 = linear + columns.spread[0], linear + columns.spread_in_v2[0]
    pairs = ((slope.T * weight) @ slope) ** 2 * products / d
    for sector in columns.sectors:
        table, products = sector.table[0], sector.products[0]  # (Q, K), (P, K, K)
        in_chi, in_v2 = in_chi + table**2, in_v2 + table**2
        shared = np.einsum("p,pgh->gh", sector.share[0], products**2)
        pairs = pairs + ((table.T * weight) @ table) ** 2 * shared / sector.dimension[0]
    size = weight @ in_v2
    rows = (in_v2.T * weight) @ in_chi / n
    share = neurons / neurons.sum()
    return float(share @ size), float(share @ (size**2 + (rows + pairs) @ neurons))


def _at_radii(
    sigma: Nonlinearity, step: Step, columns: Columns, kappa: FloatArray, radius: FloatArray
) -> Columns:
    """The columns with what ‖x‖ changes in the moments (5), to first order."""
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    usual, here = (sigma.moments(norm * r, place) for r in (1.0, radius[:, None]))
    plain = columns.plain.copy()
    plain[:, :, : step.k.shape[1]] += here.mean - usual.mean
    growth = np.divide(
        here.spread, usual.spread, out=np.ones_like(here.spread), where=usual.spread > 0.0
    )
    spread = columns.spread * growth
    slope = columns.slope + here.slope - usual.slope  # w·x has the spread of ‖x‖ already
    return replace(columns, plain=plain, slope=slope, spread=spread, spread_in_v2=spread)


def with_blocks(
    problem: Problem,
    step: Step,
    columns: Columns,
    kappa: FloatArray,
    radius: FloatArray | None,
) -> Columns:
    """The columns with a sector of (134) for every visible degree, which ν² loses.

    kappa, radius: κ and ‖x‖/√d at the nodes, (Q,). Without a step, or for degree 3, a sector is one
    block, else one for each pair of nodes of the bulk of the weights (147).
    """
    degrees = visible_degrees(problem)
    if not degrees:
        return columns
    scale = np.ones((1, 1)) if radius is None else radius[:, None]
    norm, place = step.norm[:, None, :] * scale, step.shift[:, None, :] * kappa[:, None]
    means = problem.sigma.averages(norm, place, max(degrees))
    spread, sectors, d = columns.spread, [], step.d
    one = np.ones((len(step), 1)), np.ones((len(step), 1, step.norm.shape[1]))
    for k in degrees:
        whole = norm**k * means[k] / math.sqrt(math.factorial(k))
        blocks = one
        if k == 2 and np.any(step.e):
            blocks = pair_blocks(step.norm**2, *bulk_covariance(step))
        share = traceless_share(d, k)[:, None, None]
        sectors.append(Sector(dimension(d, k), np.sqrt(share) * whole, *blocks))
        spread = spread - whole**2
    spread = np.maximum(spread, 0.0)
    return replace(columns, spread=spread, spread_in_v2=spread, sectors=tuple(sectors))


@dataclass(frozen=True)
class Variance:
    """Standard deviations of ν² by chance: among rows, (Q, 1), and among columns, (Q, K)."""

    rows: FloatArray
    columns: FloatArray


def row_column_variance(problem: Problem, samples: Samples) -> Variance | None:
    """How rows and columns vary by chance; None where it is too little to be seen."""
    if abs(problem.sigma.mean_slope) < _MIN_SLOPE:
        return None
    step, columns, weight = samples.step, samples.columns, samples.weight
    share = step.neurons[0] / step.neurons.sum()
    power = columns.power(step.norm)[0]
    cumulant = _fourth_cumulants(problem, samples)
    relative = (weight @ cumulant @ share) / (weight @ power**2 @ share)
    if relative / min(problem.n, problem.width) < _MIN_CUMULANT_SPREAD**2:
        return None
    rows = np.sqrt(cumulant @ share / problem.width)[:, None]
    return Variance(rows, np.sqrt(cumulant / problem.n))


def _fourth_cumulants(problem: Problem, samples: Samples) -> FloatArray:
    """k_4 of a feature given κ, (Q, K), over as many entries as the features have."""
    end = -normal_quantile(0.25 / (problem.n * problem.width))
    z = np.linspace(-end, end, _CUMULANT_POINTS)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    places = samples.step.shift[0] * samples.kappa[:, None]
    values = problem.sigma(places[:, :, None] + samples.step.norm[0][:, None] * z)
    values -= (values @ weight)[:, :, None]
    np.square(values, out=values)
    return np.asarray(np.maximum(values**2 @ weight - 3.0 * (values @ weight) ** 2, 0.0))


def _with_variance(
    problem: Problem, groups: Rule, nodes: Nodes, variance: Variance, accuracy: Accuracy
) -> Samples:
    """ν² with its variance by two nodes for every sample, in χ, and every group, in V̂2."""
    doubled = np.repeat(groups[0], 2), np.repeat(0.5 * groups[1], 2)
    samples = _samples(problem, doubled, nodes.twice(), accuracy)
    spread, least = samples.columns.spread, _MIN_NOISE * samples.columns.spread
    sign = np.array([-1.0, 1.0])
    in_chi = (variance.rows * sign).reshape(-1, 1)
    in_v2 = np.repeat((variance.columns[:, :, None] * sign).reshape(len(nodes.kappa), -1), 2, 0)
    columns = replace(
        samples.columns,
        spread=np.maximum(spread + in_chi, least),
        spread_in_v2=np.maximum(spread + in_v2, least),
    )
    return replace(samples, columns=columns)
