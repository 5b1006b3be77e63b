"""Fixed point of the resolvent and errors after T steps: (7), (8) and (167)–(169) for one problem.

The state is V2, the responses to the readout's tables and Ξ_τ of every batch: of the linear table
G_φφ of the last step, at finite d also those of the blocks of degree 2 and 3. As for one step, ζ of
(169) is D_gζ_g = [VG_φφ]_gg: D enters the bulk's free energy through V alone. Errors come from the
adjoint of the linearised equations, which is their tangent (`exact.errors` says why).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import symmetric
from ..exact.fixed_point import LARGEST_MOVE, noise_only, robust_fixed_point
from ..exact.regression import InfluenceAcross
from ..exact.sectors import FormLayout, Forms, MixedAt, SectorsAt, half_sums
from .batches import Batch
from .chain import (
    DenseResponses,
    FreeResponses,
    mean_t_matrix,
    solve_chain,
    t_matrix,
)
from .degrees import Higher
from .directions import Bulk, Stage, gradient
from .readout import Fit, Readout

TOLERANCE, ACCEPTED = 1e-12, 1e-10
ADJOINT_TOLERANCE, ADJOINT_ACCEPTED = 1e-12, 1e-11
SWEEPS = 3  # updates of V2 and G for each of Ξ, which costs more


ONE = np.zeros(1, dtype=np.intp)  # the only row


@dataclass(frozen=True)
class StepsState:
    """The unknowns."""

    v2: FloatArray  # (K,)
    responses: Forms  # of the tables, (1, T, K, K): G_φφ of the last step, those of blocks
    xi: list[FloatArray]  # (2K, 2K) each

    @property
    def response(self) -> FloatArray:
        """G_φφ of the last step, (K, K)."""
        return np.asarray(self.responses.own[0, 0])


@dataclass(frozen=True)
class StepsPacking:
    """States as vectors: log V2, or changes of it, responses as rows, and upper triangles of Ξ."""

    layout: FormLayout
    steps: int

    def vector(self, groups: FloatArray, responses: Forms, xi: Sequence[FloatArray]) -> FloatArray:
        """The vector of a state."""
        many = symmetric(2 * self.layout.size)
        flat = self.layout.flat(responses)[0]
        return np.concatenate([groups, flat, *(many.upper(x) for x in xi)])

    def parts(self, vector: FloatArray) -> tuple[FloatArray, Forms, list[FloatArray]]:
        """The state of a vector."""
        size, many = self.layout.size, symmetric(2 * self.layout.size)
        ends = np.cumsum([size, self.layout.first.size, *[many.count] * (self.steps - 1)])
        groups, responses, *xi = np.split(vector, ends)
        return groups, self.layout.forms(responses[None]), [many.whole(x) for x in xi]


@dataclass(frozen=True)
class SamplesAt:
    """What the readout's samples say at a state: (7), (8), (131) and (138)."""

    shrink: FloatArray  # (X,) 1/(1 + χ)
    mass: FloatArray  # (X,) n w/(1 + χ)
    information: FloatArray  # (K, K) V, without what coordinates κx_i take
    sectors: SectorsAt | None  # with coordinates κx_i as the last one
    along_kappa: MixedAt | None

    def responses(self, linear: FloatArray) -> Forms:
        """Those of all tables, for G_φφ (K, K)."""
        whole = linear[None]
        if self.sectors is None or self.along_kappa is None:
            return Forms(whole[None])
        own = np.concatenate([whole[None], self.sectors.response], axis=1)
        beside, mixed = self.along_kappa.responses(whole)
        own[:, -1] += beside
        return Forms(own, mixed)

    def degrees(self, d: float, linear: FloatArray) -> FloatArray:
        """V2_gζ_g with the degrees of freedom of all blocks, (K,)."""
        found = d * (self.information * linear).sum(axis=1)
        if self.sectors is not None and self.along_kappa is not None:
            found = found + self.sectors.degrees[0] - self.along_kappa.taken(linear[None])[0]
        return np.asarray(found)


@dataclass(frozen=True)
class StepsFixedPoint:
    """The solution with everything that the equations say there."""

    state: StepsState
    nodes: SamplesAt
    bulk: Bulk[DenseResponses]
    residual: float
    iterations: int

    @property
    def shrink(self) -> FloatArray:
        """1/(1 + χ) at every node, (X,)."""
        return self.nodes.shrink

    @property
    def mass(self) -> FloatArray:
        """n w/(1 + χ), (X,)."""
        return self.nodes.mass


class StepsEquations:
    """The equations of one problem: its batches and its readout."""

    def __init__(
        self, batches: Sequence[Batch], readout: Readout, without: Bulk[FreeResponses]
    ) -> None:
        self.batches, self.readout, self.without = batches, readout, without
        self.size = readout.neurons.size
        self.initial = batches[0].before.norm2
        self.steps = len(batches)
        self.tables = readout.tables
        self.pack = StepsPacking(readout.columns.layout, self.steps)

    def influence(self, v2: FloatArray, forms: Forms) -> FloatArray:
        """Σ over tables of their forms, and ν² by V2, at every node (X,): χ, or a change of it."""
        found = self.readout.columns.spread[0] @ v2
        for table, form in zip(self.tables, forms.own[0], strict=True):
            found += ((table @ form) * table).sum(axis=1)
        if forms.mixed is not None:
            found += ((self.tables[0] @ forms.mixed[0]) * self.tables[-1]).sum(axis=1)
        return np.asarray(found)

    def seen(self, weight: FloatArray) -> Forms:
        """Σ over nodes of weight (X,) times tables' products, over the numbers of coordinates."""
        tables, (*own, mixed) = self.tables, self.readout.dimensions
        forms = [t.T @ (t * (weight / size)[:, None]) for t, size in zip(tables, own, strict=True)]
        if len(tables) == 1:
            return Forms(np.stack(forms)[None])
        crossed = tables[0].T @ (tables[-1] * (weight / mixed)[:, None])
        return Forms(np.stack(forms)[None], crossed[None])

    def between_roots(self, v2: FloatArray, forms: Forms) -> Forms:
        """Forms times √V2_g√V2_h."""
        root = np.sqrt(v2)
        both = root[:, None] * root
        return Forms(forms.own * both, None if forms.mixed is None else forms.mixed * both)

    def nodes(self, v2: FloatArray, responses: Forms) -> SamplesAt:
        """1/(1+χ), n w/(1+χ), V and the blocks at a state: (7), (8), (131), (138)."""
        readout = self.readout
        chi = self.influence(v2, self.between_roots(v2, responses))
        shrink = 1.0 / (1.0 + np.maximum(chi, 0.0))
        mass = readout.n * readout.weight * shrink
        seen = self.between_roots(v2, self.seen(mass))
        information, columns = seen.own[:, 0], readout.columns
        if columns.blocks is None or columns.along_kappa is None or seen.mixed is None:
            return SamplesAt(shrink, mass, information[0], None, None)
        every = SectorsAt(columns.blocks, seen.own[:, 1:])
        last = every.inverse[:, -1]
        mixed = MixedAt(columns.along_kappa, np.array([readout.d]), last, seen.mixed)
        return SamplesAt(shrink, mass, (information - mixed.eliminated)[0], every, mixed)

    def image(self, states: FloatArray, rows: IntArray) -> FloatArray:
        """The map whose fixed point is the solution, with (7) and (8) (eq. 169)."""
        log_v2, responses, xi = self.pack.parts(states[0])
        v2 = np.exp(log_v2)
        readout = self.readout
        for _ in range(SWEEPS):
            at = self.nodes(v2, responses)
            chain = solve_chain(xi, at.information, self.initial)
            linear = chain.last
            responses = at.responses(linear)
            free = readout.n * readout.ridge + at.mass @ readout.columns.spread_in_v2[0]
            demand = v2 * free + at.degrees(readout.d, linear)
            v2 = np.maximum(v2 * readout.neurons / demand, 1e-300)
        mapped = [
            mean_t_matrix(batch, response)
            for batch, response in zip(self.batches, chain.coupled(), strict=True)
        ]
        return self.pack.vector(np.log(v2), responses, mapped)[None]

    def across(self, at: StepsFixedPoint) -> InfluenceAcross | None:
        """What samples with large s have beside χ, as in (152), at finite d."""
        higher, labels = self.readout.higher, self.readout.across
        if higher is None or labels is None:
            return None
        forms = self.between_roots(at.state.v2, at.state.responses)
        slope = higher.spread @ at.state.v2
        for table, changed, form in zip(higher.tables, higher.slopes, forms.own[0], strict=True):
            slope += 2.0 * ((table @ form) * changed).sum(axis=1)
        if forms.mixed is not None:
            slope += ((higher.tables[0] @ forms.mixed[0]) * higher.slopes[-1]).sum(axis=1)
            slope += ((higher.slopes[0] @ forms.mixed[0]) * higher.tables[-1]).sum(axis=1)
        mass, shrink = at.mass[None], at.shrink[None]
        return InfluenceAcross(labels, slope[None], mass, shrink, self.readout.weight)

    def seen_across(self, higher: Higher, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes in s² − 1 of both parts of `seen`, (1, T, K, K) and (1, K, K)."""
        (*dimensions, both), size = self.readout.dimensions, self.size
        found = np.zeros((1, len(self.tables), size, size))
        for i, (table, changed) in enumerate(zip(higher.tables, higher.slopes, strict=True)):
            own = table.T @ (changed * (weight / dimensions[i])[:, None])
            found[0, i] = own + own.T
        each = (weight / both)[:, None]
        mixed = higher.tables[0].T @ (each * higher.slopes[-1])
        mixed += higher.slopes[0].T @ (each * higher.tables[-1])
        return found, mixed[None]

    def guess(self) -> StepsState:
        """Features taken as noise of their size, and the bulk without readout."""
        readout, frame = self.readout, self.batches[-1].after
        columns = readout.columns
        power = readout.weight @ columns.power(np.sqrt(frame.norm2)[None])[0]
        sizes = np.array([readout.n]), np.array([readout.ridge])
        v2 = noise_only(*sizes, readout.neurons[None], power[None])[0]
        size, count = self.size, len(self.tables)
        own = np.zeros((1, count, size, size))
        own[0, 0] = np.diag(frame.norm2)
        if count > 1:
            own[0, 1:] = np.eye(size)  # of blocks that the readout does not see
        mixed = np.zeros((1, size, size)) if count > 1 else None
        return StepsState(v2, Forms(own, mixed), list(self.without.xi))

    def solve(self) -> StepsFixedPoint:
        """The solution, by Anderson's acceleration."""
        guess, size = self.guess(), self.size
        start = self.pack.vector(np.log(guess.v2), guess.responses, guess.xi)
        each = [np.maximum(np.abs(np.diag(x)), 1.0) ** 0.5 for x in (guess.response, *guess.xi)]
        outer = [np.outer(x, x) for x in each]
        sizes = np.ones_like(guess.responses.own)
        sizes[0, 0] = outer[0]
        mixed = None if guess.responses.mixed is None else np.ones((1, size, size))
        scale = self.pack.vector(np.ones(size), Forms(sizes, mixed), outer[1:])
        found = robust_fixed_point(
            self.image,
            start[None],
            scale=scale[None],
            tolerance=TOLERANCE,
            accepted=ACCEPTED,
            reach=LARGEST_MOVE,
        )
        log_v2, responses, xi = self.pack.parts(found.state[0])
        v2 = np.exp(log_v2)
        at = self.nodes(v2, responses)
        chain = solve_chain(xi, at.information, self.initial)
        responses_of = [
            DenseResponses(t_matrix(batch, response))
            for batch, response in zip(self.batches, chain.coupled(), strict=True)
        ]
        bulk = Bulk(chain, responses_of, xi, at.information)
        state = StepsState(v2, at.responses(chain.last), xi)
        return StepsFixedPoint(state, at, bulk, float(found.residual[0]), int(found.iterations[0]))


def bulk_without_readout(batches: Sequence[Batch]) -> Bulk[FreeResponses]:
    """The bulk at V = 0, where T is explicit: G is diag(ρ², 0) there."""
    responses = [FreeResponses.of(batch) for batch in batches]
    xi = [t.averaged(batch.shown.law.weight) for batch, t in zip(batches, responses, strict=True)]
    norm2 = batches[0].before.norm2
    nothing = np.zeros((norm2.size, norm2.size))
    return Bulk(solve_chain(xi, nothing, norm2), responses, xi, nothing)


@dataclass(frozen=True)
class StepsErrors:
    """What the fitted readout costs, by ξ and by group."""

    by_place: FloatArray  # (X,) E[(y − f)²|ξ]
    train_by_place: FloatArray  # (X,) the same times 1/(1 + χ)², on training samples
    readout_squares: FloatArray  # (K,) P_g = Σ_{j∈g} â_j²
    grams: Forms  # Q_gh of (13), and the same for the tables of blocks
    square_gram: FloatArray | None  # (1, K, K) the same for s_2


class StepsAdjoint:
    """The linearised equations with gradients of the readout's loss as source."""

    def __init__(
        self, equations: StepsEquations, at: StepsFixedPoint, stages: Sequence[Stage], fitted: Fit
    ) -> None:
        self.equations, self.at, self.fitted = equations, at, fitted
        readout, size = equations.readout, equations.size
        v2, information = at.state.v2, at.bulk.information
        self.root = np.sqrt(v2 / readout.d)
        count, special = fitted.dual.size // size, readout.special
        scaled = fitted.dual.reshape(count, size) * self.root
        found = gradient(stages, at.bulk, scaled[special].ravel())
        self.self_energy = [each / readout.d for each in found.self_energy]
        response = -found.information
        bulk = fitted.coefficients.reshape(count, size)[readout.bulk]
        self.bulk_force = self.root[:, None] * response * self.root - bulk.T @ bulk
        work = (fitted.dual * fitted.coefficients).reshape(count, size).sum(axis=0)
        self.group_force = (information * response).sum(axis=1) - work
        self.mixed_force: tuple[FloatArray, FloatArray] | None = None  # on tables of (138)
        if at.nodes.along_kappa is not None:
            along = at.nodes.along_kappa
            self.mixed_force = along.seen(np.sqrt(v2)[None], self.bulk_force[None])
            own = np.diag(self.mixed_force[0][0]) / v2
            self.group_force = self.group_force - along.coordinates.dimension[0] * own
        self.degrees = at.nodes.degrees(readout.d, at.state.response)
        self.misfit = fitted.misfit
        self.square_force: FloatArray | None = None  # on nE[s_2s_2ᵀ/(1 + χ)]
        if fitted.block is not None:
            found_by = fitted.block.force(scaled[None, special.stop - 1 : readout.squares.stop])
            self.group_force = self.group_force + (fitted.block.information * found_by)[0].sum(1)
            own_squares = fitted.coefficients.reshape(count, size)[readout.squares]
            force = self.root[:, None] * found_by[0] * self.root - own_squares.T @ own_squares
            second = 2.0 * readout.columns.curvature[0]
            self.misfit = self.misfit + ((second @ force) * second).sum(axis=1)
            self.square_force = force
        self.seen_misfit = self.misfit  # by the training samples
        self.seen_across: tuple[FloatArray, FloatArray] | None = None  # by (152)
        if fitted.across is not None and fitted.misfit_across is not None and readout.higher:
            self.seen_misfit = self.misfit - fitted.across.on_training(fitted.misfit_across)[0]
            squares = at.shrink * fitted.across.force(fitted.misfit_across)[0]
            self.seen_across = equations.seen_across(readout.higher, squares)
            self.group_force = self.group_force - v2 * (squares @ readout.higher.spread)

    def solve(self) -> StepsErrors:
        """Error by ξ, P_g and Q of the fitted readout."""
        pack, at = self.equations.pack, self.at
        nothing = np.zeros_like(pack.vector(self.root, at.state.responses, at.state.xi))
        first = self.image(nothing[None], ONE)
        scale = np.full_like(first, max(np.abs(first).max(), 1e-300))
        found = robust_fixed_point(
            self.image, first, scale=scale, tolerance=ADJOINT_TOLERANCE, accepted=ADJOINT_ACCEPTED
        )
        relative, responses, _ = pack.parts(found.state[0])
        squares, grams = at.state.v2 * relative, self._grams(relative, responses)
        varied = self.equations.influence(squares, grams)
        seen = (self.seen_misfit + varied) * at.shrink**2
        force = None if self.square_force is None else self.square_force[None]
        return StepsErrors(self.misfit + varied, seen, squares, grams, force)

    def _grams(self, relative: FloatArray, responses: Forms) -> Forms:
        """dV1, and the same for the tables of blocks."""
        at, mean = self.at, half_sums(relative[None])[0]
        own = responses.own + mean * at.state.responses.own
        mixed = responses.mixed
        if mixed is not None and at.state.responses.mixed is not None:
            mixed = mixed + mean * at.state.responses.mixed
        found = self.equations.between_roots(at.state.v2, Forms(own, mixed))
        found.own[:, 0] += self.bulk_force
        if found.mixed is None or self.mixed_force is None:
            return found
        found.own[:, -1] += self.mixed_force[0]
        return found._replace(mixed=found.mixed + self.mixed_force[1])

    def image(self, states: FloatArray, rows: IntArray) -> FloatArray:
        """The linearised map."""
        equations, at = self.equations, self.at
        relative, responses, xi = equations.pack.parts(states[0])
        size = 2 * equations.size
        change = [each.copy() for each in self.self_energy]
        for each, matrix in zip(change, xi, strict=True):
            each[:size, :size] += matrix
        for _ in range(SWEEPS):
            relative, moved, responses = self._reply(relative, responses, change)
        again = [
            t.change(batch, each[:size, :size])
            for batch, t, each in zip(equations.batches, at.bulk.responses, moved, strict=True)
        ]
        return equations.pack.vector(relative, responses, again)[None]

    def _reply(
        self, relative: FloatArray, responses: Forms, change: Sequence[FloatArray]
    ) -> tuple[FloatArray, list[FloatArray], Forms]:
        """d log V2, dG and the changes of the responses for dΞ, `change`, on local rows."""
        equations, at = self.equations, self.at
        readout, columns, nodes = equations.readout, equations.readout.columns, at.nodes
        grams = self._grams(relative, responses)
        error = self.seen_misfit + equations.influence(at.state.v2 * relative, grams)
        squares = at.mass * at.shrink * error
        asked = equations.seen(-squares)
        if self.seen_across is not None and asked.mixed is not None:
            own, cross = self.seen_across
            asked = Forms(asked.own - own, asked.mixed - cross)
        asked = equations.between_roots(at.state.v2, asked)
        mean = half_sums(relative[None])
        changed = asked.own[0, 0] + mean[0] * nodes.information
        total = self.group_force - relative * self.degrees
        changes: list[FloatArray] = []  # of the blocks' responses
        mixed = None
        if nodes.sectors is not None:
            own = asked.own[:, 1:] + mean[:, None] * nodes.sectors.information
            replied, freedom = nodes.sectors.reply(ONE, own)
            total = total + freedom[0]
            changes.append(replied)
            if nodes.along_kappa is not None and asked.mixed is not None:
                cross = asked.mixed + mean * nodes.along_kappa.cross
                mixed = nodes.along_kappa.reply(ONE, own[:, -1], cross, relative[None])
                changed = changed + (mean * nodes.along_kappa.eliminated - mixed.eliminated)[0]
        moved = at.bulk.chain.change(change, changed)
        size = 2 * equations.size
        linear, answer = at.state.response, moved[-1][size:, size:]
        own_degrees = (changed * linear + nodes.information * answer).sum(axis=1)
        total = total + readout.d * own_degrees - at.state.v2 * (squares @ columns.spread[0])
        found, with_linear = np.concatenate([answer[None, None], *changes], axis=1), None
        if mixed is not None:
            total = total - mixed.taken(linear[None], answer[None])[0]
            beside, with_linear = mixed.responses(linear[None], answer[None])
            found[:, -1] += beside
        return -total / readout.neurons, moved, Forms(found, with_linear)
