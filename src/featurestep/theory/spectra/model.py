"""The model of a spectrum after one step: its equations on groups and nodes of `truncated_law`.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, normalised_hermite
from ...functions.quadrature import Rule, normal_quantile
from ..exact.columns import Columns, build_columns
from ..exact.degrees import dimension, pair_blocks, traceless_share
from ..exact.fixed_point import Evaluation, Samples
from ..exact.sectors import Sector
from ..exact.step import ProblemRow, Step, build_step, bulk_products, sample_norm_of_radius
from ..exact.weight_covariance import bulk_covariance
from ..resolution import Mirrored, finite_groups
from ..validity import spectrum_notes
from .equations import FULL, Accuracy, Equations
from .spike_system import GroupsInBulk, SpikeGroups, groups_in_bulk
from .truncated_law import (
    SAMPLES_BEYOND,
    Nodes,
    bulk_groups,
    groups_for_spikes,
    needed_refinement,
    node_rule,
    visible_degrees,
)
from .weights import WeightSpectrum, weight_spectrum

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
