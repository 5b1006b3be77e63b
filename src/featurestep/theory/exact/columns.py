"""Columns of the regression (29): what the features of every group are, given κ.

Given κ and s (the rest of the target's directions) a field contributes B_0 + Σ s_iB_1i +
Σ (s_is_k − δ_ik)B_2ik, i ≤ k, to the output. Fields are A (means), τ and ψ_1 … ψ_r (bulk directions
along β and beside it), Δ (norms) and, for rows of W0 that are not normalised, Ω (initial norms).
At finite d nodes are pairs of κ and the norm of a sample, and there are fields of degree 2 and 3 in
(κ, s) with parts B_3 (`degrees`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.lattices import IN_NORM
from ...functions.nonlinearity import Nonlinearity
from ...functions.targets import AlignedTarget
from ..labels import Labels, label_moments, moments_at, pairs
from .degrees import (
    FieldColumns,
    HigherFields,
    Parts,
    RadialNodes,
    Tables,
    TablesAcross,
    averages_of,
    build_sectors,
    higher_fields,
    inputs,
    limited,
    own_shift,
    positive,
    stacked_parts,
)
from .dyson import matmul, real_product, symmetric, transposed
from .inputs import Classes, NormProducts
from .products import (
    ClassProducts,
    EigenvalueNodes,
    PairClasses,
    block_power,
    class_products,
    eigenvalue_nodes,
    own_scale,
    pair_classes,
    pair_sector,
)
from .sectors import (
    FormLayout,
    Forms,
    MixedCoordinates,
    Sector,
    SectorBlocks,
    form_layout,
    pair_covariance,
    weight_covariance,
)
from .step import Step

MOST_OVERLAP = 0.1  # share of (κ, s) in a neuron's square that is seen, to first order
MOST_GROWTH = 12.0  # of ν² with the norm of a sample
_MANY_GROUPS = 4  # from which products of tables take less time than sums over elements
_POINTS = 12  # averages between which others are interpolated


@dataclass(frozen=True)
class NodeTables:
    """What each of Q nodes shows: μ_gμ_h for the P pairs of groups, then ν² of the K groups."""

    in_chi: FloatArray  # (Q, P + K), with ν² as χ sees it
    in_v2: FloatArray  # (Q, P + K), with ν² as V̂2 sees it

    @cached_property
    def _products(self) -> FloatArray:
        """Products of two entries at every node, (Q, (P + K)²)."""
        product = self.in_v2[:, :, None] * self.in_chi[:, None, :]
        return np.asarray(product.reshape(len(product), -1))

    def second_moments(self, weight: FloatArray) -> FloatArray:
        """Σ over nodes of `weight` (B, Q) times products of two entries, (B, P + K, P + K)."""
        width = self.in_chi.shape[1]
        return real_product(weight, self._products).reshape(-1, width, width)


@dataclass(frozen=True)
class Columns:
    """Arrays at Q nodes of κ, or of κ and h; fields are A, τ, ψ_1 … ψ_r, Δ (, Ω), K of each.

    At finite d those of degree 2, (κκ), (κs), (ss), and of degree 3 follow in the place of Ω.
    """

    slope: FloatArray  # (B, Q, K) μ_g
    spread: FloatArray  # (B, Q, K) ν_g², as it enters χ
    spread_in_v2: FloatArray  # (B, Q, K) ν_g², as it enters V̂2: the same but for heavy tails
    curvature: FloatArray  # (B, Q, K) m′_g
    plain: FloatArray  # (B, Q, F) B_0
    linear: FloatArray  # (B, r, Q, F) B_1i
    square: FloatArray  # (B, P, Q, F) B_2ik, pairs i ≤ k
    _: KW_ONLY
    by_degree: FloatArray | None = None  # (B, 4, Q, F) B_0 … B_3 in units of h_b(s), at finite d
    sectors: tuple[Sector, ...] = ()  # blocks of degree 2 and 3
    along_kappa: MixedCoordinates | None = None  # κx_i, solved together with the linear ones
    higher: HigherFields | ClassProducts | None = None  # covariances of fields of degree 2 and 3
    across: TablesAcross | None = None  # slopes of tables in s² − 1
    aside: FloatArray | None = None  # (B, Q, K) part of A in s that is not in the sample norms
    cubic: FloatArray | None = None  # (B, Q, K) part of ψ along h_3(s), with classes of inputs
    kept_products: FloatArray | None = None  # `products` of the columns that these were taken from

    @cached_property
    def layout(self) -> FormLayout:
        """How forms of the tables are written in a row: of μ, the sectors and coordinates κx_i."""
        mixed = self.along_kappa is not None
        return form_layout(1 + len(self.sectors) + mixed, self.slope.shape[2], mixed)

    @cached_property
    def products(self) -> FloatArray:
        """Products of two groups' tables at every node for each element of `layout`, (B, Q, m).

        What the resolvent sees of the features: averages over samples are sums over its rows, and
        χ is a sum over its columns.
        """
        if self.kept_products is not None:
            return self.kept_products
        pairs = symmetric(self.slope.shape[2])
        tables = self._tables
        every = [table[..., pairs.first] * table[..., pairs.second] for table in tables]
        if self.along_kappa is not None:
            mixed = self.slope[..., :, None] * tables[-1][..., None, :]
            every.append(mixed.reshape(*mixed.shape[:2], -1))
        return np.concatenate(every, axis=2) if len(every) > 1 else every[0]

    @property
    def _tables(self) -> list[FloatArray]:
        """μ, those of the sectors and t_c, (B, Q, K) each."""
        last = [] if self.along_kappa is None else [self.along_kappa.table]
        return [self.slope, *(sector.table for sector in self.sectors), *last]

    @cached_property
    def _stacked(self) -> FloatArray:
        """The same in one array, (B, T, Q, K)."""
        return np.stack(self._tables, axis=1)

    def _is_by_tables(self, values: FloatArray) -> bool:
        """True if sums for values (B, …) are faster by products of tables than over elements."""
        own = len(self.slope) == len(values) and not np.iscomplexobj(values)
        return own and self.slope.shape[2] >= _MANY_GROUPS

    @cached_property
    def blocks(self) -> SectorBlocks | None:
        """Blocks of all sectors, and of coordinates κx_i as the last one; None without any."""
        last = () if self.along_kappa is None else (self.along_kappa.sector,)
        sectors = (*self.sectors, *last)
        return SectorBlocks(sectors) if sectors else None

    def dimensions(self, d: FloatArray) -> FloatArray:
        """Numbers of coordinates, (B, m), d of the linear block: √ of both for mixed elements."""
        if self.blocks is None:
            return d[:, None]
        every = np.concatenate([d[:, None], self.blocks.dimension], axis=1)
        if self.along_kappa is not None:
            every = np.concatenate([every, np.sqrt(every[:, :1] * every[:, -1:])], axis=1)
        return every[:, self.layout.table]

    def summed(self, weight: FloatArray, products: FloatArray | None = None) -> FloatArray:
        """Σ over nodes of `weight` (B, Q) times `products`, its own or the given, (B, m)."""
        if products is None and self._is_by_tables(weight):
            tables, mixed = self._stacked, None
            weighted = transposed(tables * weight[:, None, :, None])
            if self.along_kappa is not None:
                mixed = matmul(weighted[:, 0], tables[:, -1])
            return self.layout.flat(Forms(matmul(weighted, tables), mixed))
        products = self.products if products is None else products
        if len(products) < len(weight):  # all rows share the columns
            return real_product(weight, products[0])
        return matmul(weight[:, None, :], products)[:, 0]

    def contracted(self, flat: FloatArray, products: FloatArray | None = None) -> FloatArray:
        """Forms of the tables at every node, (B, Q), from their rows (B, m).

        Given products may be of the first elements only.
        """
        if products is None and self._is_by_tables(flat):
            tables, forms = self._stacked, self.layout.forms(flat)
            turned = matmul(tables, forms.own)
            if forms.mixed is not None:
                turned[:, -1] += matmul(tables[:, 0], forms.mixed)
            turned *= tables
            return np.asarray(turned.sum(axis=3).sum(axis=1))  # one order for every number of rows
        products = self.products if products is None else products
        count = products.shape[2]
        twice = flat[:, :count] * self.layout.twice[:count]
        if len(products) < len(twice):
            return real_product(twice, products[0].T)
        return matmul(products, twice[:, :, None])[:, :, 0]

    @cached_property
    def node_tables(self) -> NodeTables:
        """Tables of the nodes, for columns of one row without coordinates κx_i."""
        shown = self.products[0]
        return NodeTables(
            np.concatenate([shown, self.spread[0]], axis=1),
            np.concatenate([shown, self.spread_in_v2[0]], axis=1),
        )

    def power(self, norm: FloatArray) -> FloatArray:
        """Variance of a feature given a node, (B, Q, K), for the norms ρ_g (B, K)."""
        power = self.slope**2 * norm[:, None, :] ** 2 + self.spread
        for sector in self.sectors:
            power = power + sector.table**2
        if self.along_kappa is not None:
            power = power + self.along_kappa.table**2
        return power

    def bare(self) -> Columns:
        """The same without fields: what the fixed point needs."""
        none = self.plain[:, :, :0]
        kept = None if self._is_by_tables(self.slope) else self.products
        return Columns(
            self.slope, self.spread, self.spread_in_v2, none, none, none, none,
            sectors=self.sectors, along_kappa=self.along_kappa, kept_products=kept,
        )  # fmt: skip

    def take(self, rows: Any) -> Columns:
        """The same for some of the rows."""
        arrays: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        sectors, parts = arrays.pop("sectors"), ("higher", "along_kappa", "across")
        kept: dict[str, Any] = {
            k: v if v is None else v.take(rows) if k in parts else v[rows]
            for k, v in arrays.items()
        }
        return Columns(
            **kept,
            sectors=tuple(sector.take(rows) for sector in sectors),
        )


def build_columns(
    sigma: Nonlinearity, step: Step, kappa: FloatArray, x: FloatArray | None = None
) -> Columns:
    """Columns of all fields at the given κ (Q,) (eqs. 5, 39, 44, 120).

    With the norms of samples as a variable they are at all κ with h = 1, then at all with h = −1.
    `x` (Q,) are the samples' coordinates in a visible direction.
    """
    if step.is_radial:
        return _radial_columns(sigma, step, kappa)
    norm = step.norm[:, None, :]
    place = step.shift[:, None, :] * kappa[:, None]
    if step.visible is not None and x is not None:
        place = place + step.visible.loading[:, None, :] * x[:, None]
    averages = sigma.averages if step.visible is None else partial(averages_along, sigma)
    plain = averages(norm, place, 2 if step.classes is None else 4)
    mean, slope, second, spread = plain[0], plain[1], plain[2], plain[-1]
    curvature = 0.5 * second
    own: Anisotropy | None = None
    classes: PairClasses | None = None
    parts_of: EigenvalueNodes | None = None
    shown: ShownAtNorms | None = None
    along = np.zeros_like(norm)
    if step.classes is not None and step.has_products:
        own = anisotropy(step)
        pair = own.pair
        kappa, place, plain = (
            np.tile(kappa, 2),
            np.tile(place, (1, 2, 1)),
            np.tile(plain, (1, 2, 1)),
        )
        classes = pair_classes(step, step.classes)
        parts_of = eigenvalue_nodes(step, classes)
        radius = sample_radii(step.classes, kappa.size)
        found = averages(np.sqrt(radius) * norm, place, 2)
        along = limited(pair[:, None, :, 0, 0] / step.d[:, None, None], MOST_OVERLAP * norm**2)
        overlap = (kappa[:, None] ** 2 - 1.0) * along / norm**2
        overlap *= norm**2 / np.sqrt(1.0 + overlap**2)  # far out no more than ρ²
        shown = ShownAtNorms.of(step, parts_of, radius, found, plain, overlap)
        mean, slope, second, curvature = shown.mean, shown.slope, shown.second, shown.curvature
    k = kappa[:, None]
    if step.is_isotropic:
        means = _plain(step, mean)
    else:
        own = anisotropy(step) if own is None else own
        means = _means(step, own, k, mean, curvature)
    aside = None
    if step.visible is not None:
        aside = step.visible.aside[:, None, :] * slope
        means[1][:, 0] += aside
    tilt = np.zeros_like(mean)  # ℓ
    if step.is_full:  # a neuron's own direction in β (44)
        a = step.a[:, None, :]
        along, beside = own_direction(step)
        means[0][:] += a * along * k * slope - curvature * a**2 * (2.0 - along**2)
        means[1][:, 0] += 2.0 * k * curvature * a**2 * along * beside
        means[2][:, 0] -= curvature * (a * beside) ** 2
        tilt = 2.0 * curvature * a * beside
    fields = [means, _along(step, k * slope, k * tilt), *_across(step, slope, tilt)]
    cubic: FloatArray | None = None
    if shown is not None and own is not None:
        across = own.across[:, None, 0, 0] / step.d[:, None, None]
        cubic = overlap_columns(along, across, k, plain[3], fields)
    fields.append(_plain(step, curvature))
    if step.classes is not None:
        means[0][:] += _class_bend(step, step.classes.norms, kappa, plain)
        fields.append(_plain(step, step.shift_slope[:, None, :] * k * slope))  # (105)
        if classes is not None and own is not None:
            fields.extend(_products(step, kappa, second, own_scale(classes, own.pair)))
    elif step.is_gaussian:
        longer, further = step.norm_slope[:, None, :], step.shift_slope[:, None, :] * k
        means[0][:] += _bend(sigma, step, kappa) / step.d[:, None, None]
        fields.append(_plain(step, longer * curvature + further * slope))
    stacked = (np.concatenate(parts, axis=-1) for parts in zip(*fields, strict=True))
    if classes is None or parts_of is None or shown is None or cubic is None:
        return Columns(slope, spread, spread, curvature, *stacked)
    sector, higher = (
        pair_sector(step, parts_of, shown.table),
        class_products(step, classes, parts_of),
    )
    parts = (shown.linear, shown.spread, shown.spread, curvature)
    return Columns(*parts, *stacked, sectors=(sector,), higher=higher, aside=aside, cubic=cubic)


def overlap_columns(
    along: FloatArray,
    across: FloatArray,
    k: FloatArray,
    third: FloatArray,
    fields: list[_Field],
) -> FloatArray:
    """What overlaps of a neuron with (κ, s) add to τ and ψ, by (141); returns that of h_3(s) in ψ.

    K_ββ/d and K_ss/d, (B, 1, K), and s_3, (B, Q, K). As τ and ψ are beside themselves, κ² − 3
    stands for κ² − 1.
    """
    bent = 0.5 * third
    fields[1][0][:] += k * (k**2 - 3.0) * bent * along
    fields[1][2][:, 0] += k * bent * across
    fields[2][1][:, 0] += (k**2 - 1.0) * bent * along
    return np.asarray(np.sqrt(6.0) * bent * across)


class ShownAtNorms(NamedTuple):
    """What features show at nodes (κ, h), (B, 2Q, K) each."""

    mean: FloatArray  # of A
    slope: FloatArray  # of τ and ψ
    second: FloatArray  # of (κκ), (κs), (ss)
    curvature: FloatArray  # of Δ
    linear: FloatArray  # μ in the resolvent
    table: FloatArray  # of degree 2
    spread: FloatArray  # ν² above it

    @classmethod
    def of(
        cls,
        step: Step,
        nodes: EigenvalueNodes,
        radius: FloatArray,
        found: FloatArray,
        plain: FloatArray,
        overlap: FloatArray,
    ) -> ShownAtNorms:
        """From averages at √Rρ, and at ρ in `plain` (eq. 126).

        Both are means of σ and its derivatives and, at last, ν². The overlap is Sh of (135), which
        the resolvent sees by (136), (137).
        """
        v = step.norm[:, None, :] ** 2

        def centred(values: FloatArray, expected: FloatArray, power: int) -> FloatArray:
            """The same with the mean that is expected, where R^power is outside."""
            weight = radius**power
            return values - _mean_over_h(weight * values) / _mean_over_h(weight) + expected

        (mean, slope, second), (m, s_1, s_2) = found[:3], plain[:3]
        total = found[-1] + v * radius * slope**2 + mean**2  # E σ²
        total = centred(total, plain[-1] + v * s_1**2 + m**2, 0)
        mean, linear = centred(mean, m, 0), np.sqrt(radius) * centred(slope, s_1, 1)
        degree = radius / np.sqrt(_mean_over_h(radius**2)) * centred(second, s_2, 2)
        degree *= np.sqrt(0.5) * v
        power, kept = (part[:, None, :] for part in block_power(step, nodes))
        spread = np.maximum(total - mean**2 - v * linear**2 - kept * degree**2, 0.0)
        # With the norms that samples have along κ, to first order.
        leg, bent = overlap / v, 0.5 * radius * overlap
        linear += bent * plain[3] / np.sqrt(radius)
        degree += np.sqrt(0.5) * v * bent * plain[4]
        return cls(
            mean=mean,
            slope=centred(slope, s_1, 0),
            second=centred(second, s_2, 0),
            curvature=0.5 * radius * centred(second, s_2, 1),
            linear=linear,
            table=np.sqrt(power * positive(2.0 * leg)) * degree,
            spread=spread * positive(_growth(spread, radius) * leg),
        )


def _growth(values: FloatArray, radius: FloatArray) -> FloatArray:
    """d ln/d ln R by the values at both norms, (B, 2Q, K); 0 where the norms are equal."""
    apart, mean = radius - 1.0, _mean_over_h(values)
    difference = _mean_over_h(apart * values)
    with np.errstate(all="ignore"):
        found = difference / (mean * apart**2)
    return np.clip(np.nan_to_num(found), 0.0, MOST_GROWTH)


def sample_radii(classes: Classes, nodes: int) -> FloatArray:
    """R of (123) at all nodes, (B, 2Q, K)."""
    sign = np.repeat([1.0, -1.0], nodes // 2)[:, None]
    return np.asarray(1.0 + sign * classes.radius[:, None, :])


def _mean_over_h(values: FloatArray) -> FloatArray:
    """Means over h = ±1, at the nodes of both, (B, 2Q, K)."""
    mean = values.reshape(len(values), 2, -1, values.shape[2]).mean(axis=1)
    return np.tile(mean, (1, 2, 1))


def averages_along(
    sigma: Nonlinearity, norm: FloatArray, place: FloatArray, order: int
) -> FloatArray:
    """`sigma.averages` for (B, jQ, K), interpolated between places of a column that share a norm.

    Norms are (B, 1, K), or (B, jQ, K) with one value in each half of the nodes. Averages are smooth
    on the scale of the norm: 12 points at an eighth of it give 1e-9.
    """
    rows, nodes, size = place.shape
    halves = 2 if norm.shape[1] == nodes else 1
    by_column = place.reshape(rows, halves, -1, size).swapaxes(2, 3).reshape(-1, nodes // halves)
    norms = np.broadcast_to(norm[:, :: max(norm.shape[1] // halves, 1)], (rows, halves, size))
    norms = norms.reshape(-1)
    low, high = by_column.min(axis=1), by_column.max(axis=1)
    spacing = norms / IN_NORM
    counts = np.ceil((high - low) / spacing).astype(int) + _POINTS
    if counts.sum() > by_column.size:
        return sigma.averages(norm, place, order)
    first = low - (_POINTS // 2 - 1) * spacing
    known = sigma.averages_on_lattices(norms, first, counts, order).T.copy()
    at = (by_column - low[:, None]) / spacing[:, None]
    whole = np.floor(at).astype(int)
    points = (whole + (np.cumsum(counts) - counts)[:, None]).ravel()
    found = np.zeros((points.size, order + 2))
    for i, weight in enumerate(_lagrange((at - whole).ravel())):
        found += weight[:, None] * known.take(points + i, axis=0)
    shape = (order + 2, rows, halves, size, nodes // halves)
    return np.asarray(found.T.reshape(shape).swapaxes(3, 4).reshape(order + 2, *place.shape))


def _lagrange(x: FloatArray) -> FloatArray:
    """Weights of the points −5 … 6 for polynomials through them, (12, …), at x in [0, 1]."""
    points = np.arange(_POINTS) - (_POINTS // 2 - 1)
    apart = (np.subtract.outer(points, points) + np.eye(_POINTS)).prod(axis=1)
    found = np.empty((_POINTS, *x.shape))
    before = after = np.ones(x.shape)
    for i, point in enumerate(points):
        found[i] = before / apart[i]
        before = before * (x - point)
    for i in reversed(range(_POINTS)):
        found[i] *= after
        after = after * (x - points[i])
    return found


def _products(step: Step, kappa: FloatArray, second: FloatArray, scale: FloatArray) -> list[_Field]:
    """(κκ), (κs) and (ss) for s_2 = 2m′: h_2(κ), κs and h_2(s) times the `scale` of (122).

    What the scale adds to a neuron's norm is not in Δ.
    """
    half, k = math.sqrt(0.5), kappa[:, None]
    fields = []
    parts = np.moveaxis(scale, (3, 2), (0, 1))[:, :, :, None]  # (B, 1, K) each
    for (along, mixed, across), unscaled in zip(parts, (1.0, 0.0, 1.0), strict=True):
        norm = along + across - unscaled
        field = _plain(step, half * ((k**2 - 1.0) * along + norm) * second)
        field[1][:, 0], field[2][:, 0] = k * second * mixed, half * second * across
        fields.append(field)
    return fields


def _radial_columns(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> Columns:
    """The columns at finite d, for a target of one direction."""
    nodes = RadialNodes.of(kappa)
    seen = averages_of(sigma, step, kappa)
    weights = weight_covariance(step)
    d, pair = inputs(step), weights.special[:, :, :2, :2]
    tables = Tables(d, step.norm, seen, nodes, pair[:, :, 0, 0])
    own = own_shift(sigma, step, seen, nodes, pair)
    found = FieldColumns(d, step.norm, seen, nodes, pair, own)
    means, (tau, psi) = found.means(), found.linear()
    curvature = 0.5 * seen.s[2]
    if step.is_full:  # a neuron's own direction in β (44)
        a, (along, beside) = step.a[:, None, :], own_direction(step)
        tilt = 2.0 * curvature * a * beside  # ℓ
        means = Parts(
            means.b0 + a * along * nodes.kappa * seen.s[1] - curvature * a**2 * (2.0 - along**2),
            means.b1 + 2.0 * nodes.kappa * curvature * a**2 * along * beside,
            means.b2 - math.sqrt(2.0) * curvature * (a * beside) ** 2,
        )
        tau = tau._replace(b1=nodes.kappa * tilt)
        psi = psi._replace(b0=tilt, b2=math.sqrt(2.0) * tilt)
    every = [means, tau, psi, found.norms(), *found.square(), *found.cube()]
    return replace(
        columns_of_degrees(tables, every, weights.share, weights.bulk),
        across=tables.across(weights.special[:, :, 1, 1]),
        higher=higher_fields(step, weights),
    )


def columns_of_degrees(
    tables: Tables, every: Sequence[Parts], share: FloatArray, bulk: FloatArray
) -> Columns:
    """Columns of fields given by their parts, with the blocks for nodes of the bulk (147)."""
    curvature = 0.5 * tables.s[2]
    by_degree = stacked_parts(every, curvature)
    spread = tables.spread()
    sectors, along_kappa = build_sectors(tables, share, bulk)
    return Columns(
        slope=tables.slope(),
        spread=spread,
        spread_in_v2=spread,
        curvature=curvature,
        plain=by_degree[:, 0],
        linear=by_degree[:, 1:2],
        square=math.sqrt(0.5) * by_degree[:, 2:3],
        by_degree=by_degree,
        sectors=sectors,
        along_kappa=along_kappa,
    )


_Field = tuple[FloatArray, FloatArray, FloatArray]  # B_0, B_1 and B_2 of one field


def own_direction(step: Step) -> tuple[FloatArray, FloatArray]:
    """f_1 and f_2 of (43): the initial readout's direction along κ and s_1, (B, 1, 1)."""
    along = (step.output_slope / step.beta)[:, None, None]
    return along, (step.alignment / step.across)[:, None, None] * along


class Anisotropy(NamedTuple):
    """Variances of pre-activations of every group, K_ββ, K_βi and K_ik of (37) and (51)."""

    along: FloatArray  # (B, K)
    mixed: FloatArray  # (B, r, K)
    across: FloatArray  # (B, r, r, K)
    pair: FloatArray  # (B, K, 1 + r, 1 + r) all of them


def anisotropy(step: Step) -> Anisotropy:
    """The diagonal of (24) at Ṽ = 0."""
    pair = pair_covariance(step)
    own = np.moveaxis(pair, 1, -1)  # (B, 1 + r, 1 + r, K)
    return Anisotropy(own[:, 0, 0], own[:, 0, 1:], own[:, 1:, 1:], pair)


def _means(
    step: Step, seen: Anisotropy, k: FloatArray, mean: FloatArray, curvature: FloatArray
) -> _Field:
    """The column of A: means, and norms that depend on κ and s (eqs. 37, 51)."""
    size = curvature / step.d[:, None, None]  # (B, Q, K)
    both = pairs(step.directions)
    twice = np.array([1.0 + float(i != j) for i, j in both])[:, None, None]
    across = np.stack([seen.across[:, i, j] for i, j in both], axis=1)  # (B, P, K)
    return (
        mean + size * (k**2 - 1.0) * seen.along[:, None, :],
        2.0 * (k * size)[:, None] * seen.mixed[:, :, None, :],
        twice * size[:, None] * across[:, :, None, :],
    )


def _plain(step: Step, values: FloatArray) -> _Field:
    """A field that does not depend on s."""
    rows, count, size = values.shape
    r = step.directions
    nothing = np.zeros((rows, r, count, size)), np.zeros((rows, len(pairs(r)), count, size))
    return (values, *nothing)


def _along(step: Step, values: FloatArray, tilted: FloatArray) -> _Field:
    """τ: κ(μ + ℓs_1)."""
    field = _plain(step, values)
    field[1][:, 0] = tilted
    return field


def _across(step: Step, slope: FloatArray, tilt: FloatArray) -> list[_Field]:
    """ψ_i: s_i(μ + ℓs_1)."""
    fields = []
    for i in range(step.directions):
        field = _plain(step, tilt if i == 0 else np.zeros_like(slope))
        field[1][:, i] = slope
        field[2][:, i] = tilt  # pairs begin with (1, 1), (1, 2), …
        fields.append(field)
    return fields


def _bend(sigma: Nonlinearity, step: Step, kappa: FloatArray) -> FloatArray:
    """∂²m/∂ω², (B, Q, K), at u_g itself, not at the shift of (43) (eq. 40b)."""
    shift = step.shift + step.a * (step.output_slope / step.beta)[:, None]
    place = shift[:, None, :] * kappa[:, None]
    higher = sigma.derivative_means(step.norm[:, None, :], place, 4)
    longer, further = step.norm_slope[:, None, :], step.shift_slope[:, None, :] * kappa[:, None]
    return np.asarray(
        0.25 * longer**2 * higher[4] + longer * further * higher[3] + further**2 * higher[2]
    )


def _class_bend(
    step: Step, norms: NormProducts, kappa: FloatArray, higher: FloatArray
) -> FloatArray:
    """What the spread of w_jᵀΣ^kw_j over neurons adds to their mean, (B, Q, K) (eq. 108).

    higher: means of σ and its derivatives.
    """
    further = step.shift_slope[:, None, :] * kappa[:, None]
    own, shared = norms.own[:, None, :], norms.shared[:, None, :]
    plain = norms.plain[:, None, None]
    bend = 0.25 * own * higher[4] + shared * further * higher[3] + plain * further**2 * higher[2]
    return np.asarray(bend / step.d[:, None, None])


def build_labels(
    star: Nonlinearity | AlignedTarget,
    step: Step,
    kappa: FloatArray,
    x: FloatArray | None = None,
    known: Labels | None = None,
) -> Labels:
    """Moments of the labels given κ, or κ and x, with the label noise: (6), (50).

    `known` ones are those without the noise.
    """
    seen = step.visible
    if known is not None:
        found = known
    elif seen is not None and x is not None and isinstance(star, Nonlinearity):
        place = (seen.rest * step.alignment)[:, None] * kappa + seen.target[:, None] * x
        found = moments_at(star, (seen.rest * step.across)[:, None], place)
    else:
        found = label_moments(star, step.alignment, kappa)
    found = replace(found, rest=found.rest + step.noise[:, None])
    return found.twice() if step.has_norm_nodes else found
