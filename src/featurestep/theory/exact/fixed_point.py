"""The fixed point of the resolvent: (7), (8), (22), (23) and (131)–(133), for every solver.

The state of a problem is V2 (traces of the resolvent over the groups of neurons), χ (a sample's
own influence, at nodes of κ) and Ξ (self-energy of the weights' bulk). Blocks of higher degrees,
the sectors of `degrees`, need no unknowns of their own. `evaluate` gives everything that the
equations say at a state, for real λ and for complex λ = −z. At real λ > 0 the state is found by
Anderson's acceleration (`solve`), for any number of groups; spectra follow it to complex λ by
Newton's method (`spectra.newton`).

In place of (23) for ζ stands D_gζ_g = [ṼG_φφ]_gg, which follows from it: D enters the bulk's free
energy through Ṽ alone.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.types import BoolArray, FloatArray, IntArray
from .columns import Columns
from .dyson import (
    Blocks,
    averaged,
    bulk_blocks,
    class_blocks,
    matmul,
    symmetric,
    t_matrix,
    t_matrix_without_readout,
)
from .sectors import FormLayout, Forms, MixedAt, SectorAt, SectorsAt
from .step import Step

ACCEPTED = 1e-10  # residual of a solution
TOLERANCE = 1e-12
ComplexArray = npt.NDArray[Any]
Map = Callable[[FloatArray, IntArray], FloatArray]  # states of some rows ↦ their images
REGULARISATION = 1e-13  # of the least squares over the history of differences
NEIGHBOURS_ERROR = 0.03  # relative, of differences that were seen near another solution
MAX_IDLE_STEPS = 30  # without progress
DAMPING = (0.7, 0.7, 0.7, 0.35)  # factors on changes that are large
FORGOTTEN = 1e5  # times the present change: less costs steps, without any limit some rows stall
LARGEST_MOVE = 2.0  # of log V2, log(1 + χ) and Ξ in one step of Anderson's acceleration


@dataclass(frozen=True)
class Samples:
    """What the readout's samples show of every group of neurons, at Q nodes of κ."""

    step: Step
    columns: Columns
    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,) probabilities

    def take(self, rows: IntArray) -> Samples:
        """The same for some of the rows."""
        return Samples(self.step.take(rows), self.columns.take(rows), self.kappa, self.weight)

    @cached_property
    def dimensions(self) -> FloatArray:
        """Numbers of coordinates for every element of the columns' forms, (B, m)."""
        return self.columns.dimensions(self.step.d)


class Subsets:
    """Samples of some rows, kept while the same rows are asked for."""

    def __init__(self, samples: Samples) -> None:
        self.samples = self._latest = samples
        self._rows = np.arange(len(samples.step))

    def take(self, rows: IntArray) -> Samples:
        """The samples of these rows; those of all without a copy."""
        if rows.size == len(self.samples.step):
            return self.samples
        if not np.array_equal(rows, self._rows):
            self._rows, self._latest = rows, self.samples.take(rows)
        return self._latest


@dataclass(frozen=True)
class State:
    """The unknowns of the fixed point, for B rows or places z."""

    v2: FloatArray  # (B, K) V2_g = tr over group g of (FᵀF + λn)⁻¹
    chi: FloatArray  # (B, Q) χ(κ)
    xi: FloatArray  # (B, 2K, 2K) Ξ on (p, φ̂), symmetric

    def take(self, rows: Any) -> State:
        """The same for some of the rows."""
        return State(self.v2[rows], self.chi[rows], self.xi[rows])


@dataclass(frozen=True)
class Evaluation:
    """Equations (7), (8), (22) and (23) at one state."""

    samples: Samples
    ridge: FloatArray  # (B,) λ; −z for a spectrum
    state: State
    shrink: FloatArray  # (B, Q) 1/(1 + χ)
    mass: FloatArray  # (B, Q) n w/(1 + χ)
    roots: FloatArray  # (B, m) √V2_g√V2_h for every element of the columns' forms
    information: FloatArray  # (B, K, K) Ṽ = √D V̂1 √D, without what `along_kappa` eliminates
    blocks: Blocks
    every_sector: SectorsAt | None = None  # with coordinates κx_i as the last one
    along_kappa: MixedAt | None = None
    known_noise: FloatArray | None = None  # (B, K) V̂2, where it is not a sum over these nodes

    @property
    def sectors(self) -> tuple[SectorAt, ...]:
        """One sector at a time."""
        return () if self.every_sector is None else self.every_sector.each()

    @property
    def direction(self) -> FloatArray:
        """μ√V2, (B, Q, K)."""
        return np.asarray(self.samples.columns.slope * np.sqrt(self.state.v2)[:, None, :])

    @cached_property
    def t_matrices(self) -> FloatArray:
        """T(r) of (22), (B, M, 2K, 2K)."""
        return t_matrix(self.samples.step, self.blocks.coupled)

    def average(self, weights: FloatArray) -> FloatArray:
        """Σ_m w_m T(r_m) for weights (B, …, M), (B, …, 2K, 2K)."""
        return averaged(weights, self.t_matrices)

    @cached_property
    def class_whole(self) -> FloatArray:
        """G_c of (94) on (p, φ, φ̂), (B, C, 3K, 3K)."""
        if self.samples.step.classes is None:
            return self.blocks.whole[:, None]
        return class_blocks(self.samples.step, self.state.xi, self.information).whole

    @cached_property
    def degrees(self) -> FloatArray:
        """V2_gζ_g = d[ṼG_φφ]_gg, (B, K), ζ of (23)."""
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.samples.step.d[:, None] * trace)

    @cached_property
    def demand(self) -> FloatArray:
        """V2_g(t_g + ζ_g), N_g at the solution of (23), (B, K)."""
        columns, step, noise = self.samples.columns, self.samples.step, self.known_noise
        if noise is None:
            noise = matmul(self.mass[:, None, :], columns.spread_in_v2)[:, 0]  # V̂2 of (8)
        free_part = (step.n * self.ridge)[:, None]
        return np.asarray(self.state.v2 * (free_part + noise) + self.all_degrees)

    @cached_property
    def all_degrees(self) -> FloatArray:
        """V2_gζ_g with the degrees of freedom of all sectors, (B, K)."""
        found = self.degrees
        if self.every_sector is not None:
            found = found + self.every_sector.degrees
        if self.along_kappa is not None:
            found = found - self.along_kappa.taken(self.blocks.phi_phi)
        return found

    @cached_property
    def responses(self) -> Forms:
        """Forms of tables in χ between √V2: G_φφ, the sectors' and those of coordinates κx_i."""
        if self.every_sector is None:
            return Forms(self.blocks.phi_phi[:, None])
        own, mixed = self.every_sector.response, None
        own = np.concatenate([self.blocks.phi_phi[:, None], own], axis=1)
        if self.along_kappa is not None:
            beside, mixed = self.along_kappa.responses(self.blocks.phi_phi)
            own[:, -1] += beside
        return Forms(own, mixed)

    def between_roots(self, forms: Forms) -> FloatArray:
        """Forms times √V2_g√V2_h as rows, (B, m)."""
        return np.asarray(self.samples.columns.layout.flat(forms) * self.roots)

    @cached_property
    def mapped_v2(self) -> FloatArray:
        """V2_g = N_g/(t_g + ζ_g), (B, K) (eqs. 10, 23)."""
        return np.asarray(self.state.v2 * (self.samples.step.neurons / self.demand))

    @cached_property
    def mapped_chi(self) -> FloatArray:
        """χ(κ) = Σ μ_gμ_h V1_gh + Σ ν_g² V2_g, (B, Q) (eq. 7)."""
        blocks = self.samples.columns.contracted(self.between_roots(self.responses))
        if not np.iscomplexobj(blocks):
            blocks = np.maximum(blocks, np.where(self.ridge < 0.0, -np.inf, 0.0)[:, None])
        noise = matmul(self.samples.columns.spread, self.state.v2[:, :, None])[:, :, 0]
        return np.asarray(blocks + noise)

    @cached_property
    def mapped_xi(self) -> FloatArray:
        """Ξ = E_r T(r), (B, 2K, 2K) (eq. 22)."""
        return self.average(self.samples.step.r_weight)

    @cached_property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        groups = np.abs(self.samples.step.neurons / self.demand - 1.0).max(axis=1)
        nodes = np.abs((self.mapped_chi - self.state.chi) * self.shrink).max(axis=1)
        bulk = np.abs(self.mapped_xi - self.state.xi).max(axis=(1, 2))
        return np.asarray(np.maximum(np.maximum(groups, nodes), bulk))


class SampleSums(NamedTuple):
    """Sums over samples of their tables, each sample with a weight."""

    products: FloatArray  # (B, m) of `Columns.products`
    noise: FloatArray  # (B, K) of ν²


def evaluate(
    samples: Samples,
    state: State,
    ridge: FloatArray | None = None,
    sums: SampleSums | None = None,
) -> Evaluation:
    """V̂1 and everything that follows from it at a state (eq. 8).

    λ is that of the problems, or the given one (B,). `sums` have the weights n w⟨h⟩ of (75), for
    another loss than the square; they may be over other nodes than those of the samples.

    A step of one row serves states of any number of rows. At real λ < 0 complex numbers are not
    needed where all V2 of a state have one sign.
    """
    step, columns = samples.step, samples.columns
    shrink = 1.0 / (1.0 + state.chi)
    mass = step.n[:, None] * samples.weight * shrink
    products = columns.summed(mass) if sums is None else sums.products
    layout = columns.layout
    roots = _pair_roots(layout, state.v2)
    seen = layout.forms(products * roots / samples.dimensions)
    information, every_sector, along_kappa = seen.own[:, 0], None, None
    if columns.blocks is not None:
        every_sector = SectorsAt(columns.blocks, seen.own[:, 1:])
    if columns.along_kappa is not None and every_sector is not None and seen.mixed is not None:
        last = every_sector.inverse[:, -1]
        along_kappa = MixedAt(columns.along_kappa, step.d, last, seen.mixed)
        information = information - along_kappa.eliminated
    return Evaluation(
        samples=samples,
        ridge=step.ridge if ridge is None else ridge,
        state=state,
        shrink=shrink,
        mass=mass,
        roots=roots,
        information=information,
        blocks=bulk_blocks(step, state.xi, information),
        every_sector=every_sector,
        along_kappa=along_kappa,
        known_noise=None if sums is None else sums.noise,
    )


def _pair_roots(layout: FormLayout, v2: FloatArray) -> FloatArray:
    """√V2_g√V2_h of every element, (B, m): real where V2 is, of one sign for all groups."""
    if np.iscomplexobj(v2):
        return layout.pairs(root_above(v2))
    return np.asarray(np.sign(v2[:, :1]) * layout.pairs(np.sqrt(np.abs(v2))))


def root_above(v2: ComplexArray) -> ComplexArray:
    """√V2 for Im V2 ≥ 0: continuous across the negative axis, where rounding makes it −0."""
    root = np.sqrt(v2)
    return np.where((v2.real < 0.0) & np.signbit(v2.imag), -root, root)


@dataclass(frozen=True)
class Solution:
    """The evaluation at the fixed point, with the residual of the undamped map for each row."""

    at: Evaluation
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def solve(samples: Samples, slack: float = 1.0) -> Solution:
    """Solve for all rows at their λ > 0; `slack` multiplies the tolerance.

    Anderson's acceleration in log V2, log(1 + χ) and Ξ. All are updated by one evaluation: with
    three updates of V2 and χ for each of Ξ a row takes 1.3 times fewer steps, and 2.5 times more
    evaluations.
    """
    step, some = samples.step, Subsets(replace(samples, columns=samples.columns.bare()))
    pack = Packing(step.k.shape[1], samples.kappa.size)

    def image(states: FloatArray, rows: IntArray) -> FloatArray:
        found = evaluate(some.take(rows), pack.state(states))
        v2 = np.maximum(found.mapped_v2, 1e-300)
        return pack.vector(State(v2, found.mapped_chi, found.mapped_xi))

    guess = _guess(samples)
    found = robust_fixed_point(
        image,
        pack.vector(guess),
        scale=pack.scale(guess),
        tolerance=slack * TOLERANCE,
        accepted=slack * ACCEPTED,
        reach=LARGEST_MOVE,
    )
    return Solution(evaluate(samples, pack.state(found.state)), found.residual, found.iterations)


@dataclass(frozen=True)
class Packing:
    """States as vectors (B, K + Q + K(2K+1)): log V2, log(1 + χ) and the upper triangle of Ξ."""

    groups: int
    nodes: int

    def vector(self, state: State) -> FloatArray:
        """The vectors of states."""
        xi = symmetric(2 * self.groups).upper(state.xi)
        return np.concatenate([np.log(state.v2), np.log1p(state.chi), xi], axis=1)

    def state(self, vector: FloatArray) -> State:
        """The states of vectors."""
        last = self.groups + self.nodes
        log_v2, log_chi = vector[:, : self.groups], vector[:, self.groups : last]
        xi = symmetric(2 * self.groups).whole(vector[:, last:])
        return State(np.exp(log_v2), np.expm1(log_chi), xi)

    def scale(self, state: State) -> FloatArray:
        """Sizes of the components: 1, or more where the weights grew far beyond it."""
        each = np.maximum(np.abs(np.einsum("bii->bi", state.xi)), 1.0) ** 0.5
        xi = symmetric(2 * self.groups).upper(each[:, :, None] * each[:, None, :])
        return np.concatenate([np.ones((len(xi), self.groups + self.nodes)), xi], axis=1)


def _guess(samples: Samples) -> State:
    """Features taken as pure noise of their size, and the bulk without readout."""
    step, columns = samples.step, samples.columns
    power = columns.power(step.norm)
    mean = np.einsum("q,bqk->bk", samples.weight, power)
    v2 = noise_only(step.n, step.ridge, step.neurons, mean)
    xi = averaged(step.r_weight, t_matrix_without_readout(step))
    return State(v2, matmul(power, v2[:, :, None])[:, :, 0], xi)


def noise_only(
    n: FloatArray, ridge: FloatArray, neurons: FloatArray, power: FloatArray
) -> FloatArray:
    """V2_g = N_g/(λn + nP_g/(1+χ)), (B, K), with χ = ΣP_gV2_g, by bisection in log χ."""
    free, samples = (n * ridge)[:, None], n[:, None]

    def v2(chi: FloatArray) -> FloatArray:
        return np.asarray(neurons / (free + samples * power / (1.0 + chi)))

    high = np.log((power * neurons / free).sum(axis=1, keepdims=True) + 1e-300)
    low = np.minimum(high, 0.0) - 30.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        below = (power * v2(np.exp(middle))).sum(axis=1, keepdims=True) > np.exp(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return v2(np.exp(0.5 * (low + high)))


class History(NamedTuple):
    """Differences of states and of their changes that the acceleration has seen, newest last."""

    steps: FloatArray  # (H, B, n)
    changes: FloatArray

    def take(self, rows: IntArray) -> History:
        """The same of some rows."""
        return History(self.steps[:, rows], self.changes[:, rows])


class Fixed(NamedTuple):
    """Where each row stopped, and the change that the undamped map makes there."""

    state: FloatArray  # (B, n)
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def fixed_point(
    image: Map,
    start: FloatArray,
    *,
    scale: FloatArray | Callable[[FloatArray], FloatArray],
    tolerance: float,
    reach: float = np.inf,
    most: int = 300,
    depth: int = 8,
    far: float = np.inf,
    changed: Callable[[IntArray], BoolArray] | None = None,
    history: History | None = None,
) -> Fixed:
    """Iterate x = image(x) until the largest change of any component is below the tolerance.

    Components are measured in units of `scale` (B, n), or of what it returns at states. None moves
    by more than `reach` in one step. Rows that have converged are left out. While the change of a
    row is larger than `far` it takes damped steps, and changes 1e5 times larger than the
    latest are forgotten. `changed` tells of which rows the map is another one than in the step
    before (a more accurate one, say): their history stays, but for the difference of the two.
    `history` holds differences that were seen near solutions of similar maps, and on return those
    that each row has seen last.
    """
    rows, every = len(start), np.arange(len(start))
    x, active = start.copy(), every
    best = Fixed(start.copy(), np.full(rows, np.inf), np.zeros(rows, dtype=np.intp))
    idle = np.zeros(rows, dtype=np.intp)
    known = _Differences(start, depth, history)
    weights = None if callable(scale) else 1.0 / scale
    last = np.full(rows, np.inf)
    before: tuple[FloatArray, FloatArray] | None = None
    for iteration in range(most):
        is_whole = active.size == rows
        here = x if is_whole else x[active]
        if callable(scale):
            weight = 1.0 / scale(here)
            weight = np.where(np.isfinite(weight), weight, known.weight)
            known.weigh(weight)
        elif weights is not None:
            weight = weights if is_whole else weights[active]
        f = image(here, active) - here
        seen = f * weight
        worst = np.abs(seen).max(axis=1)
        finite = np.isfinite(worst)
        too_far: FloatArray | None = None
        if not finite.all():
            lost = ~finite
            worst[lost] = np.inf
            too_far, here = here[lost], here.copy()
            if before is not None:
                here[lost], f[lost] = before[0][lost], before[1][lost]
            seen = f * weight
        better = worst < best.residual[active]
        if is_whole and better.all():
            best.state[:], best.residual[:] = here, worst
        else:
            best.state[active[better]] = here[better]
            best.residual[active[better]] = worst[better]
        best.iterations[active] = iteration + 1
        idle[active] = np.where(better, 0, idle[active] + 1)
        if before is not None:
            step, change = here - before[0], f - before[1]
            if changed is not None:
                other = changed(active)
                step[other] = change[other] = 0.0
                best.residual[active[other]] = worst[other]
                best.state[active[other]] = here[other]
            known.add(step, change, weight, last)
        going = (worst > tolerance) & (idle[active] < MAX_IDLE_STEPS)
        if history is not None:
            known.write(history, active, ~going)
        if not going.any():
            break
        if np.isfinite(far):
            known.forget(FORGOTTEN * worst)
        move = known.move(f, seen)
        if np.isfinite(far) and (damped := worst > far).any():
            factor = DAMPING[iteration % len(DAMPING)]
            move[damped] = np.clip(factor * f[damped], -reach, reach)
        if too_far is not None:
            move[lost] = 0.5 * (too_far - here[lost])
        if np.isfinite(reach):
            longest = np.abs(move * weight).max(axis=1, keepdims=True)
            move *= np.minimum(1.0, reach / np.maximum(longest, 1e-300))
        last = worst
        x = here + move if is_whole else _placed(x, active, here + move)
        if not going.all():
            active = active[going]
            known = known.take(going)
            here, f, last = here[going], f[going], last[going]
        before = here, f
    return best


def _placed(whole: FloatArray, rows: IntArray, values: FloatArray) -> FloatArray:
    """The array with other values in some rows, in place."""
    whole[rows] = values
    return whole


class _Differences:
    """Differences of states and of their changes that B rows have seen last, H of them."""

    def __init__(self, like: FloatArray, depth: int, history: History | None = None) -> None:
        rows, size = like.shape
        self.sums = np.empty((rows, depth, size))  # of a state's difference and its change's
        self.changes = np.empty((rows, depth, size))  # times the weights
        self.gram = np.zeros((rows, depth, depth))  # of the changes
        self.errors = np.zeros((rows, depth))  # sizes of the changes before
        self.uncertainty = np.zeros((rows, depth))  # relative errors of the differences
        self.order: list[int] = []  # places, the newest last
        self.weight: FloatArray = np.ones((rows, size))
        if history is not None:
            kept = list(zip(*history, strict=True))[-depth:]
            for step, change in kept:
                self.add(step, change, self.weight, self.errors[:, 0], NEIGHBOURS_ERROR)

    def add(
        self,
        step: FloatArray,
        change: FloatArray,
        weight: FloatArray,
        error: FloatArray,
        uncertainty: float = 0.0,
    ) -> None:
        """One more difference, in the place of the oldest."""
        depth = self.sums.shape[1]
        place = self.order.pop(0) if len(self.order) == depth else len(self.order)
        self.order.append(place)
        count, self.weight = len(self.order), weight
        np.add(step, change, out=self.sums[:, place])
        own = self.changes[:, place] = change * weight
        products = np.matmul(self.changes[:, :count], own[:, :, None])[:, :, 0]
        self.gram[:, place, :count] = self.gram[:, :count, place] = products
        self.errors[:, place], self.uncertainty[:, place] = error, uncertainty

    def weigh(self, weight: FloatArray) -> None:
        """Measure changes by other weights."""
        count = len(self.order)
        seen = self.changes[:, :count]
        seen *= (weight / self.weight)[:, None, :]
        self.gram[:, :count, :count] = np.matmul(seen, seen.transpose(0, 2, 1))
        self.weight = weight

    def move(self, f: FloatArray, seen: FloatArray) -> FloatArray:
        """The way to the state whose change, extrapolated from the differences, is the smallest.

        f and seen: the change here, (B, n), and the same times the weights.
        """
        count = len(self.order)
        if count == 0:
            return f.copy()
        gram = self.gram[:, :count, :count]
        size = np.maximum(np.sqrt(gram.diagonal(axis1=1, axis2=2)), 1e-150)
        scaled = gram / (size[:, :, None] * size[:, None, :])
        index = np.arange(count)
        scaled[:, index, index] += REGULARISATION + self.uncertainty[:, :count] ** 2
        right = np.matmul(self.changes[:, :count], seen[:, :, None]) / size[:, :, None]
        mix: Any = np.linalg.solve(scaled, right)
        mix = (mix[:, :, 0] / size)[:, None, :]
        found: FloatArray = f - np.matmul(mix, self.sums[:, :count])[:, 0]
        return found

    def forget(self, most: FloatArray) -> None:
        """Drop what was seen where changes were larger, (B,)."""
        count = len(self.order)
        old = self.errors[:, :count] > most[:, None]
        if old.any():
            self.sums[:, :count][old] = self.changes[:, :count][old] = 0.0
            kept = np.where(old, 0.0, 1.0)
            self.gram[:, :count, :count] *= kept[:, :, None] * kept[:, None, :]

    def write(self, history: History, active: IntArray, stopped: BoolArray) -> None:
        """Write the newest differences of rows that stopped, in place."""
        if not stopped.any():
            return
        rows, count = active[stopped], min(len(history.steps), len(self.order))
        for i in range(1, count + 1):
            place = self.order[-i]
            change = self.changes[stopped, place] / self.weight[stopped]
            history.changes[-i, rows] = change
            history.steps[-i, rows] = self.sums[stopped, place] - change

    def take(self, rows: Any) -> _Differences:
        """The same of some rows."""
        found = copy(self)
        for name in ("sums", "changes", "gram", "errors", "uncertainty", "weight"):
            setattr(found, name, getattr(self, name)[rows])
        found.order = list(self.order)
        return found


def robust_fixed_point(
    image: Map,
    start: FloatArray,
    *,
    scale: FloatArray,
    tolerance: float,
    accepted: float,
    reach: float = np.inf,
) -> Fixed:
    """The same; rows that fail begin again with short steps and little history."""
    found = fixed_point(image, start, scale=scale, tolerance=tolerance, reach=reach)
    lost = np.flatnonzero(~(found.residual <= accepted))
    if lost.size:
        again = fixed_point(
            lambda states, rows: image(states, lost[rows]),
            start[lost],
            scale=scale[lost],
            tolerance=tolerance,
            reach=0.25 * reach,
            most=1500,
            depth=3,
        )
        better = again.residual < found.residual[lost]
        for whole, part in zip(found, again, strict=True):
            whole[lost[better]] = part[better]
    return found
