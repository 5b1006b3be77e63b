"""Solving for the readout with any convex loss: the map of `convex`, iterated (section 35)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ...core.types import BoolArray, FloatArray, IntArray
from ...functions.quadrature import Crowds, Rule, crowding
from ..resolution import INNER, ROUGH_NODES, Resolution, Roughness
from .convex import Fitting, NodeSums, Sides, Unknowns, mapped, norm_by_scaling, sides, sums_at
from .dyson import averaged, diagonals, symmetric, t_matrix_without_readout
from .fixed_point import History, Samples, fixed_point
from .label_rules import COARSE as COARSE_ORDERS
from .label_rules import FINE, SIGNS, WHOLE, Orders, node_count, whole_orders
from .losses import Measured
from .step import Step

TOLERANCE = 1e-11
ACCEPTED = 1e-10
ROUGH = 1e-4  # where the solution on coarse rules ends
ROUGH_ACCEPTED = 1e-3
LARGEST_MOVE = 2.0  # of any component in one step
PLAIN_STEPS = 3  # of the map itself, before its acceleration
FAR = 0.5  # relative change above which steps are damped
MOST_STEPS = 150
_PLACES = 8  # between two nodes of κ, at which an output's changes are looked at
LEVELLED = 3.0  # distances, in units of the output's spread, that change a loss
NODE_ERROR = 1e-9  # of averages over κ
CHI_DIGITS = 3.5  # logarithm of their accuracy, times the change of log(1 + χ) between nodes
COARSE = -1  # the level of coarse rules
_FAR_S = 6.0  # twice an s that is improbable
COARSE_NODES = 0.6  # share of the nodes of κ that they have
MOST_FINER = 16.0  # factor on the density of nodes of κ
MOST_CROWDS = 12  # of them; beyond, nodes are denser everywhere
_MARGIN = 1.15  # height of a crowd, in units of what is lacking
_STRIP = 4.5  # of analyticity: the trapezoidal rule's error is e^{−2π·strip}
CALL_CELLS = 5_000  # nodes of κ and s that cost as much as sums on one level more
FEW_ROWS = 12  # that are all solved from the beginning
WAVE = 3  # times the rows that are known, the rows after the next wave
LONG_MEMORY = 20  # of rows that have what a neighbour has seen
MEMORIES = (12, 5, 2)  # of Anderson's acceleration, one after the other where it fails


@dataclass(frozen=True)
class ConvexPacking:
    """Unknowns as vectors, in units in which they are of order 1."""

    groups: int
    fields: int

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Of the blocks of a vector."""
        few, many = symmetric(self.groups).count, symmetric(2 * self.groups).count
        return self.groups, few, many, self.fields, 1, self.groups, few, many

    def _unit(self, step: Step, v2: FloatArray) -> FloatArray:
        """√(D n) of every field, and √(D n d) of A, (B, F)."""
        root = np.sqrt(v2 / step.d[:, None] * step.n[:, None])
        unit = np.tile(root, self.fields // self.groups)
        unit[:, : self.groups] *= np.sqrt(step.d)[:, None]
        return unit

    def vector(self, step: Step, of: Unknowns) -> FloatArray:
        """(B, n) of unknowns."""
        few, many = symmetric(self.groups), symmetric(2 * self.groups)
        return np.concatenate(
            [
                np.log(of.v2),
                few.upper(of.phi_phi),
                many.upper(of.xi),
                of.coefficients / self._unit(step, of.v2),
                of.intercept[:, None],
                of.relative,
                few.upper(of.bulk),
                many.upper(of.xi_change),
            ],
            axis=1,
        )

    def unknowns(self, step: Step, vector: FloatArray) -> Unknowns:
        """The unknowns of vectors."""
        few, many = symmetric(self.groups), symmetric(2 * self.groups)
        parts = np.split(vector, np.cumsum(self.lengths)[:-1], axis=1)
        v2 = np.exp(parts[0])
        return Unknowns(
            v2=v2,
            phi_phi=few.whole(parts[1]),
            xi=many.whole(parts[2]),
            coefficients=parts[3] * self._unit(step, v2),
            intercept=parts[4][:, 0],
            relative=parts[5],
            bulk=few.whole(parts[6]),
            xi_change=many.whole(parts[7]),
        )

    def scale(self, vector: FloatArray) -> FloatArray:
        """The root mean square of the block that a component belongs to, at least 1e-3."""
        starts = np.cumsum((0, *self.lengths[:-1]))
        sizes = np.sqrt(np.add.reduceat(vector**2, starts, axis=1) / np.array(self.lengths))
        return np.repeat(np.maximum(sizes, 1e-3), self.lengths, axis=1)


class ConvexSolution(NamedTuple):
    """The fixed point of every row, and what follows from it; (B,) where not said otherwise."""

    unknowns: Unknowns  # with the intercept of columns that are not centred
    measured: Measured
    squares: FloatArray  # ‖â‖²
    self_check: FloatArray
    roughness: Roughness
    nodes: IntArray  # of κ
    residual: FloatArray
    iterations: IntArray


class Level(NamedTuple):
    """Rules for κ and s, and what they resolve."""

    crowds: Crowds  # where nodes of κ are denser than in the rule of the problem
    order: int  # of `_FINE_ORDERS`
    density: FloatArray  # (P,) of nodes of κ at places of `output_changes`, in units of that rule's
    cells: float  # nodes of κ and s


@dataclass
class Rules:
    """Fits of all rows on rules of several levels.

    Losses and errors vary faster with κ and s where outputs are large beside their spread, so that
    every row has its own level: `COARSE` to begin with, then such that the solution is resolved.
    """

    resolution: Resolution
    sample: Callable[[Step, Rule], Samples]  # nodes of κ ↦ columns there
    fit: Callable[[Samples, Orders, IntArray], Fitting]  # of some rows, nodes of s ↦ labels there
    step: Step

    def __post_init__(self) -> None:
        self._levels: list[Level] = []
        self._samples: dict[Crowds | None, Samples] = {}
        self._all: dict[int, Fitting] = {}
        self._part: dict[int, tuple[IntArray, Fitting]] = {}
        self._bare: Samples | None = None
        self._bare_part: tuple[IntArray, Samples]

    def at(self, level: int, rows: IntArray, only: bool = False) -> Fitting:
        """The fit of some rows on the rules of a level; `only` if these are not needed again."""
        if level not in self._all:
            crowds, orders = None, COARSE_ORDERS
            if level != COARSE:
                crowds, orders = self._levels[level].crowds, _FINE_ORDERS[self._levels[level].order]
            if crowds not in self._samples:
                finer = COARSE_NODES if crowds is None else 1.0
                nodes = self.resolution.node_rule(finer, crowds or ())
                self._samples[crowds] = self.sample(self.step, nodes)
            samples = self._samples[crowds]
            if only:
                return self.fit(samples.take(rows), orders, rows)
            self._all[level] = self.fit(samples, orders, np.arange(len(self.step)))
        latest = self._part.get(level)
        if latest is None or not np.array_equal(latest[0], rows):
            latest = self._part[level] = rows, self._all[level].take(rows)
        return latest[1]

    @cached_property
    def packing(self) -> ConvexPacking:
        """How the unknowns are written as vectors."""
        every = self.at(COARSE, np.arange(len(self.step))).samples
        return ConvexPacking(self.step.k.shape[1], every.columns.plain.shape[2])

    def bare(self, rows: IntArray) -> Samples:
        """Some rows without fields, on coarse nodes: for what does not depend on nodes."""
        if self._bare is None:
            samples = self.at(COARSE, np.arange(len(self.step))).samples
            self._bare = replace(samples, columns=samples.columns.bare())
            self._bare_part = np.arange(len(self.step)), self._bare
        if not np.array_equal(self._bare_part[0], rows):
            self._bare_part = rows, self._bare.take(rows)
        return self._bare_part[1]

    def levels(self, rows: IntArray, states: FloatArray) -> IntArray:
        """The level that resolves solutions near these states, for each row."""
        at = sides(self.at(COARSE, rows), self._unknowns(rows, states))
        return self._resolving(output_changes(at), _order_of(at), np.full(rows.size, COARSE))

    def error_levels(self, rows: IntArray, states: FloatArray, now: IntArray) -> IntArray:
        """The level that resolves the errors too, or where it does the one that a row has now."""
        at = sides(self.at(COARSE, rows), self._unknowns(rows, states))
        changes = np.maximum(output_changes(at), output_changes(at, errors=True))
        return self._resolving(changes, _order_of(at, errors=True), now)

    def _unknowns(self, rows: IntArray, states: FloatArray) -> Unknowns:
        return self.packing.unknowns(self.at(COARSE, rows).samples.step, states)

    def _resolving(self, changes: FloatArray, order: IntArray, now: IntArray) -> IntArray:
        """Levels with nodes of κ that are as dense as changes (B, P) need, and these nodes of s.

        Rows of one level are solved together, which is most of what a grid gains: they have a level
        that others have where it costs little more.
        """
        needed = np.clip(np.nan_to_num(changes), 1.0, MOST_FINER)
        coarse = self.at(COARSE, np.arange(1))
        kappa, is_real = coarse.samples.kappa, coarse.labels.is_real
        ends = self.resolution.node_number(kappa @ _between(kappa.size))
        number, every = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
        in_s = np.array([node_count(orders, is_real=is_real) for orders in _FINE_ORDERS])

        def level_for(rows: IntArray) -> Level:
            crowds, highest = crowded(number, needed[rows].max(axis=0)), order[rows].max()
            density = crowding(number, crowds)
            return Level(crowds, int(highest), density, float(density @ every) * in_s[highest])

        cells, found = (needed @ every) * in_s[order], now.copy()
        by_cells = np.argsort(-cells)
        for place, row in enumerate(by_cells):
            resolving = [
                each
                for each, level in enumerate(self._levels)
                if level.order >= order[row] and np.all(level.density >= needed[row])
            ]
            if found[row] in resolving:
                continue
            own = level_for(by_cells[place : place + 1])
            best = min(resolving, key=lambda each: self._levels[each].cells, default=COARSE)
            if best == COARSE or self._levels[best].cells > own.cells + CALL_CELLS:
                best = len(self._levels)
                joint = level_for(by_cells[place:])
                self._levels.append(joint if joint.cells <= own.cells + CALL_CELLS else own)
            found[row] = best
        return found

    def easier(self, factor: FloatArray) -> Rules:
        """The same with λ times a factor, (B,)."""
        return Rules(
            self.resolution,
            self.sample,
            self.fit,
            replace(self.step, ridge=self.step.ridge * factor),
        )


_FINE_ORDERS: tuple[Orders, ...] = (*WHOLE, FINE)


def crowded(number: FloatArray, needed: FloatArray) -> Crowds:
    """Crowds of nodes that are as dense as `needed` (P,) at places, told by numbers of nodes (P,).

    One after the other where most is lacking, of that height and of the width of what is lacking,
    or wider: nodes as a function of their number must be analytic in a wide strip.
    """
    found: list[tuple[float, float, float]] = []
    lacking = needed - 1.0
    while (most := float(lacking.max())) > 0.0:
        low = np.flatnonzero(lacking <= 0.5 * most)
        place = int(lacking.argmax())
        left = low[low < place].max(initial=-1) + 1
        right = low[low > place].min(initial=number.size) - 1
        height = _MARGIN * most
        peak = math.sqrt(1.0 + height)
        strip = peak + 0.5 * height * math.log((peak + 1.0) / (peak - 1.0))  # for width 1
        width = max(_STRIP / strip, 0.5 * float(number[right] - number[left]))
        if len(found) == MOST_CROWDS:
            width = float(np.ptp(number))
        found.append((0.5 * float(number[left] + number[right]), width, height))
        lacking = needed - crowding(number, tuple(found))
    return tuple(found)


def _order_of(at: Sides, errors: bool = False) -> IntArray:
    """Which of `_FINE_ORDERS` resolves the solution in s, or with `errors` its errors, (B,)."""
    labels, parts = at.fitting.labels, at.parts
    if labels.is_real:
        if labels.parts is None:
            return np.full(len(parts), len(WHOLE))
        if at.fitting.loss.is_quadratic:  # averages of polynomials of degree 4
            return np.zeros(len(parts), dtype=np.intp)
        parts = parts - labels.parts.transpose(0, 2, 1)
    change = np.abs(parts[:, 1]) + _FAR_S * np.abs(parts[:, 2])
    found = whole_orders(
        change,
        np.sqrt((at.output.variance + at.output.noise)[..., 0]),
        at.fitting.samples.kappa,
        accuracy=NODE_ERROR,
        strip=0.0 if errors else at.fitting.loss.strip,
        is_real=labels.is_real,
    )
    return found % len(_FINE_ORDERS)


def output_changes(at: Sides, errors: bool = False) -> FloatArray:
    """By how much nodes of κ are too far apart for a solution on coarse ones, (B, P) at places.

    Averages are smooth functions of the output's distance from places where a loss or its proximal
    map bends (with `errors`, an error), over its spread: the trapezoidal rule needs steps of that
    distance of order 1, longer ones where κ is improbable. Distances may change much faster near a
    bend than from node to node, so that they are compared at places between the nodes. Where χ
    changes by orders of magnitude, nodes are as dense as `Roughness` asks for.
    """
    loss = at.fitting.loss
    width = 0.0 if errors else loss.width
    labels, samples = at.fitting.labels, at.fitting.samples
    between = _between(samples.kappa.size)
    mean, variance = _of_output(at)
    mean, variance = mean @ between, np.exp(np.log(np.maximum(variance, 1e-300)) @ between)
    spread = np.sqrt(variance + width**2)
    log_chi = np.log1p(at.output.influence[..., 0]) @ between
    chi = np.expm1(log_chi)
    places = loss.error_bends(chi) if errors else loss.bends(chi)
    bends = [(mean + sign * place) / spread for place in places for sign in SIGNS]
    fixed = np.broadcast_to(labels.changes @ between, (len(labels.changes), *mean.shape))
    distance = np.concatenate([np.reshape(bends, (-1, *mean.shape)), fixed])  # (·, B, ·)
    before, after = distance[..., :-1], distance[..., 1:]
    near = (np.minimum(np.abs(before), np.abs(after)) < LEVELLED) | (before * after < 0.0)
    kappa = np.abs(samples.kappa @ between)
    nearest = np.minimum(kappa[1:], kappa[:-1])
    digits = np.maximum(-np.log(NODE_ERROR) - 0.5 * nearest**2, 1e-3)
    change = np.abs(after - before) * near * np.sqrt(digits / (2.0 * np.pi**2))
    inner = nearest < INNER  # beyond, roughness carries no weight
    rough = np.abs(np.diff(log_chi)) * np.maximum(inner / ROUGH_NODES, digits / CHI_DIGITS)
    return np.asarray(_PLACES * COARSE_NODES * np.maximum(change.max(axis=0, initial=0.0), rough))


@lru_cache(maxsize=64)
def _between(count: int) -> FloatArray:
    """Values at `count` equispaced nodes ↦ values at `_PLACES` times as many, (count, ·).

    Cubic polynomials through four nodes.
    """
    place = np.arange(_PLACES * (count - 1) + 1) / _PLACES
    first = np.clip(np.floor(place).astype(np.intp) - 1, 0, count - 4)
    found = np.zeros((count, place.size))
    for own in range(4):
        others = [other for other in range(4) if other != own]
        factors = [(place - first - other) / (own - other) for other in others]
        found[first + own, np.arange(place.size)] = np.prod(factors, axis=0)
    return found


def _of_output(at: Sides) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the output given κ, or for real labels of its distance from the label.

    Both are (B, Q).
    """
    labels, output = at.fitting.labels, at.output
    if not labels.is_real:
        square = at.parts[:, 1] ** 2 + 2.0 * at.parts[:, 2] ** 2
        return at.parts[:, 0], output.variance[..., 0] + square
    distance, weight = output.mean - labels.label[0], labels.weight[0]
    mean = (weight * distance).sum(axis=2)
    square = (weight * (distance - mean[:, :, None]) ** 2).sum(axis=2)
    return mean, output.variance[..., 0] + output.noise[..., 0] + square


class Found(NamedTuple):
    """Where each row stopped, as `Fixed` tells, and on which rules."""

    state: FloatArray  # (B, n)
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)
    level: IntArray  # (B,)
    norm: FloatArray  # (B,) λ‖â‖² by `norm_by_scaling`


class _Map:
    """The joint map of every row, on coarse rules until it has nearly converged.

    The unknowns do not depend on the rules, so that the history of differences holds for both.
    """

    def __init__(self, rules: Rules, rows: IntArray, coarse: bool) -> None:
        self.rules, self.rows, self.coarse = rules, rows, coarse
        self.level = np.full(rows.size, COARSE)
        self.new = np.zeros(rows.size, dtype=bool)  # rows whose level is another than before
        self.next = self.new.copy()
        self.least = np.full(rows.size, np.inf)  # change of any state on this level
        self.norm = np.zeros(rows.size)  # λ‖â‖² by `norm_by_scaling`, where it was

    def image(self, states: FloatArray, active: IntArray) -> FloatArray:
        """States of some rows ↦ their images.

        Sums over samples are on the rules of each row, all else is for all rows at once.
        """
        self.new, self.next = self.next, np.zeros_like(self.new)
        rules, pack, rows, level = self.rules, self.rules.packing, self.rows[active], self.level
        samples = rules.bare(rows)
        unknowns = pack.unknowns(samples.step, states)
        parts = [np.flatnonzero(level[active] == each) for each in np.unique(level[active])]
        sums = [
            sums_at(rules.at(int(level[active[part[0]]]), rows[part]), unknowns.take(part))
            for part in parts
        ]
        intercept = rules.at(COARSE, rows[:1]).intercept
        whole = NodeSums.joined(sums, parts)
        at = mapped(samples, unknowns, whole, intercept=intercept)
        found = pack.vector(samples.step, at.unknowns)
        change = np.abs((found - states) / pack.scale(states)).max(axis=1)
        better = self.new[active] | (change <= self.least[active])
        norm = norm_by_scaling(unknowns, whole, at)
        self.least[active[better]], self.norm[active[better]] = change[better], norm[better]
        if not self.coarse:
            done = np.flatnonzero((level[active] == COARSE) & (change <= ROUGH))
            if done.size:
                self.level[active[done]] = rules.levels(rows[done], found[done])
                self.next[active[done]] = True
        return found

    def changed(self, active: IntArray) -> BoolArray:
        """Rows whose latest image was the first on fine rules."""
        return np.asarray(self.new[active])


def _accelerated(
    rules: Rules,
    rows: IntArray,
    start: FloatArray,
    depth: int,
    *,
    coarse: bool = False,
    history: History | None = None,
) -> Found:
    """Anderson's acceleration of the joint map from a start.

    With `coarse` rows stay on coarse rules.
    """
    of = _Map(rules, rows, coarse)
    found = fixed_point(
        of.image,
        start,
        scale=rules.packing.scale,
        tolerance=ROUGH if coarse else TOLERANCE,
        reach=LARGEST_MOVE,
        most=MOST_STEPS,
        depth=depth,
        far=FAR,
        changed=of.changed,
        history=history,
    )
    return Found(*found, of.level, of.norm)


def solve(rules: Rules) -> ConvexSolution:
    """The solution of all rows.

    Of many rows a few are solved first, far from each other. The others follow in waves, each
    larger than all before, and start from what lies between the rows that are known.
    """
    place = _coordinates(rules.step)
    order = _spread_out(place)
    states = np.empty((order.size, sum(rules.packing.lengths)))
    iterations, level = np.empty((2, order.size), dtype=np.intp)
    residual, norm = np.empty((2, order.size))
    found = Found(states, residual, iterations, level, norm)
    history = History(*np.zeros((2, MEMORIES[0], *states.shape)))
    done = 0
    while done < order.size:
        end = WAVE * done if done else FEW_ROWS
        rows, known = np.sort(order[done:end]), order[:done]
        known = known[found.residual[known] <= ACCEPTED]
        start = _interpolated(place, known, found.state[known], rows)
        if start is not None:
            near = ((place[rows, None] - place[known]) ** 2).sum(axis=2).argmin(axis=1)
            seen = history.take(known[near])
        else:
            seen = history.take(rows)
        again = _from(rules, rows, start, seen)
        history.steps[:, rows], history.changes[:, rows] = seen
        for whole, part in zip(found, again, strict=True):
            whole[rows] = part
        done = end
    return _summary(rules, found)


def _from(rules: Rules, rows: IntArray, start: FloatArray | None, history: History) -> Found:
    """Rows from a start near their solutions; those that fail, from the beginning."""
    if start is None:
        return _solved(rules, rows, history)
    found = _accelerated(rules, rows, start, LONG_MEMORY, history=history)
    lost = np.flatnonzero(~(found.residual <= ACCEPTED))
    if lost.size:
        _keep_better(found, lost, _solved(rules, rows[lost]))
    return found


def _solved(rules: Rules, rows: IntArray, history: History | None = None) -> Found:
    """Rows from the beginning: with a shorter memory where they fail, then along a path of λ."""
    fitting, pack = rules.at(COARSE, rows), rules.packing
    step, unknowns = fitting.samples.step, _start(fitting.samples)
    start = pack.vector(step, unknowns)
    for _ in range(PLAIN_STEPS):
        sums = sums_at(fitting, unknowns)
        unknowns = mapped(fitting.samples, unknowns, sums, intercept=fitting.intercept).unknowns
    near = pack.vector(step, unknowns)
    near = np.where(np.isfinite(near).all(axis=1, keepdims=True), near, start)
    found = _accelerated(rules, rows, near, MEMORIES[0], history=history)
    found.iterations[:] += PLAIN_STEPS
    for depth in MEMORIES[1:]:
        lost = np.flatnonzero(~(found.residual <= ACCEPTED))
        if lost.size:
            _keep_better(found, lost, _accelerated(rules, rows[lost], start[lost], depth))
    lost = np.flatnonzero(~(found.residual <= ACCEPTED))
    if lost.size:
        near = _along_ridges(rules, rows[lost], start[lost])
        _keep_better(found, lost, _accelerated(rules, rows[lost], near, MEMORIES[0]))
    return found


def _keep_better(found: Found, lost: IntArray, again: Found) -> None:
    """Put second solutions of some rows in the place of the first where they are better."""
    better = again.residual < found.residual[lost]
    total = found.iterations[lost] + again.iterations
    for whole, part in zip(found, again, strict=True):
        whole[lost[better]] = part[better]
    found.iterations[lost] = total


def _along_ridges(rules: Rules, rows: IntArray, start: FloatArray) -> FloatArray:
    """From a larger λ, at which the fixed point is easy, down to near the problem's own."""
    ridge = rules.step.ridge
    factor = np.where(ridge < 0.5, 0.5 / ridge, 30.0)
    state = start
    while np.any(factor[rows] > 1.0):
        found = _accelerated(rules.easier(factor), rows, state, MEMORIES[0], coarse=True)
        good = found.residual <= ROUGH_ACCEPTED
        state = np.where(good[:, None], found.state, state)
        factor = np.maximum(factor / 3.0, 1.0)
    return state


def _coordinates(step: Step) -> FloatArray:
    """Numbers by which rows differ, (B, C), each of range 1."""
    sizes = (step.ridge, step.n, step.d, step.phi, step.neurons.sum(axis=1))
    others = (step.e[:, -1], step.alignment, step.beta, step.noise, step.target[:, 1])
    table = np.stack([*map(np.log, sizes), *others], axis=1)
    extent = np.ptp(table, axis=0)
    return np.asarray(table[:, extent > 0.0] / extent[extent > 0.0])


def _spread_out(place: FloatArray) -> IntArray:
    """All rows in an order in which each is far from those before it."""
    chosen = [0]
    nearest = ((place - place[0]) ** 2).sum(axis=1)
    nearest[0] = -1.0
    while len(chosen) < len(place):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, ((place - place[chosen[-1]]) ** 2).sum(axis=1))
        nearest[chosen[-1]] = -1.0
    return np.array(chosen)


def _interpolated(
    place: FloatArray, known: IntArray, states: FloatArray, others: IntArray
) -> FloatArray | None:
    """States between known ones, by cubic splines |x|³ with a linear part; None of too few."""
    if known.size < FEW_ROWS // 2:
        return None

    def basis(at: FloatArray) -> FloatArray:
        distance = np.sqrt(((at[:, None] - place[known]) ** 2).sum(axis=2))
        return np.concatenate([distance**3, np.ones((len(at), 1)), at], axis=1)

    rest = 1 + place.shape[1]
    matrix = np.zeros((known.size + rest, known.size + rest))
    matrix[: known.size] = basis(place[known])
    matrix[known.size :, : known.size] = matrix[: known.size, known.size :].T
    right = np.concatenate([states, np.zeros((rest, states.shape[1]))])
    coefficients = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(basis(place[others]) @ coefficients)


def _summary(rules: Rules, found: Found) -> ConvexSolution:
    """What follows from the solutions, on the rules that they were found on or on finer ones."""
    every = np.arange(len(rules.step))
    unknowns = rules.packing.unknowns(rules.step, found.state)
    measured = Measured(*(np.empty(every.size) for _ in Measured._fields))
    nodes, intercept = np.empty((2, every.size))
    roughness = Roughness(np.empty(every.size), np.empty(every.size))
    for level in np.unique(found.level):
        rows = np.flatnonzero(found.level == level)
        fitting = rules.at(int(level), rows)
        at = sides(fitting, unknowns.take(rows))
        for whole, part in zip(measured, at.measured, strict=True):
            whole[rows] = part
        nodes[rows] = fitting.samples.kappa.size
        intercept[rows] = at.plain_intercept
        share = at.unknowns.v2 / fitting.samples.step.neurons
        seen = Roughness.of(
            at.output.influence[..., 0], share, fitting.samples.kappa, share.shape[1]
        )
        roughness.nodes[rows], roughness.groups[rows] = seen.nodes, seen.groups
    finer = rules.error_levels(every, found.state, found.level)
    for level in np.unique(finer[finer != found.level]):
        rows = np.flatnonzero((finer == level) & (finer != found.level))
        fitting = rules.at(int(level), rows, only=True)
        errors = sides(fitting, unknowns.take(rows)).errors
        measured.test_error[rows], measured.train_error[rows] = errors
        nodes[rows] = fitting.samples.kappa.size
    squares = (unknowns.v2 * unknowns.relative).sum(axis=1)
    penalty = rules.step.ridge * squares
    return ConvexSolution(
        unknowns._replace(intercept=intercept),
        measured,
        squares,
        np.abs(found.norm - penalty) / (2.0 * measured.train_loss + penalty),
        roughness,
        nodes.astype(np.intp),
        found.residual,
        found.iterations,
    )


def _start(samples: Samples) -> Unknowns:
    """Features taken as noise, a readout of size one spread over all neurons."""
    step = samples.step
    rows, size = step.k.shape
    v2 = step.neurons / (step.n * (0.1 + step.ridge))[:, None]
    relative = 0.3 * step.neurons / step.neurons.sum(axis=1, keepdims=True) / v2
    return Unknowns(
        v2=v2,
        phi_phi=np.broadcast_to(np.eye(size), (rows, size, size)).copy(),
        xi=averaged(step.r_weight, t_matrix_without_readout(step)),
        coefficients=np.zeros((rows, samples.columns.plain.shape[2])),
        intercept=np.zeros(rows),
        relative=relative,
        bulk=diagonals(relative),
        xi_change=np.zeros((rows, 2 * size, 2 * size)),
    )
