"""Which points share what, and what a run costs: its flops and the peak of its memory.

Points that agree on sizes, functions, labels, residual and the laws of readout and first layer form
a group: they share the draw, the gradient and the projections of every sample. In a group,
features are computed once for each (variant, step size, noise level of the step), whatever the
ridges and sample sizes.

A flop is one addition or multiplication of a matrix product, a Gram matrix (half a product) or a
factorisation; elementwise work and random numbers are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ...core.checks import positive, whole_number
from ...core.display import gibibytes
from ...core.errors import InsufficientMemory, InvalidProblem
from ...core.problem import Problem
from ..backend import CHOLESKY_FLOPS, EIGEN_FLOPS, Backend, by_eigenvectors, make_backend
from ..setting import Setting
from ..streams import CHUNK, DeviceSource, Source, Streams
from .losses import LOSSES
from .step import FeatureKey, Move, Variant, feature_key, residual_basis

Slot = tuple[int, int]  # variant, point: where a number goes in the result
DRAWN = ("host", "device")
UNLIMITED = 1 << 62  # bytes, for what is only costed, and where nobody knows a limit
Costed = TypeVar("Costed")


@dataclass(frozen=True)
class Resources:
    """What computes, and how much memory it may take."""

    backend: Backend
    max_memory: int | None  # bytes
    block_rows: int | None  # whole chunks, in which rows are drawn
    drawn: str = "host"  # where random numbers are made

    @property
    def limit(self) -> tuple[int, str]:
        """Bytes a run may take, and what they are called."""
        if self.max_memory is not None:
            return self.max_memory, "max_memory"
        most = self.backend.limits.most
        return UNLIMITED if most is None else most, "usable memory"

    def source(self, streams: Sequence[Streams]) -> Source:
        """Where the rows of one seed, or of several, come from."""
        kind = DeviceSource if self.drawn == "device" else Source
        return kind(streams, self.backend)

    def record(self) -> dict[str, str]:
        """Versions, BLAS, dtype and device."""
        backend = self.backend
        made = {"dtype": backend.precision, "device": backend.name, "drawn": self.drawn}
        return {**backend.describe(), **made}


def make_resources(
    *,
    dtype: str,
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
) -> Resources:
    """The checked resources; a GPU draws its own numbers unless it is told otherwise."""
    if drawn not in (None, *DRAWN):
        raise InvalidProblem("drawn", f"must be {' or '.join(DRAWN)}", drawn)
    if drawn == "device" and device == "cpu":
        raise InvalidProblem("drawn", "must be host where the device is cpu", drawn)
    return Resources(
        backend=make_backend(device, dtype),
        drawn=drawn or ("device" if device == "cuda" else "host"),
        max_memory=None if max_memory is None else int(positive("max_memory", max_memory)),
        block_rows=None if block_rows is None else _whole_chunks(block_rows),
    )


def _whole_chunks(block_rows: Any) -> int:
    return -(-whole_number("block_rows", block_rows) // CHUNK) * CHUNK


def costed(make: Callable[[Resources], Costed], resources: Resources) -> Costed:
    """What is made with these resources; where it does not fit a machine, what it would take.

    A limit that was asked for is kept.
    """
    try:
        return make(resources)
    except InsufficientMemory:
        if resources.max_memory is not None:
            raise
        return make(replace(resources, max_memory=UNLIMITED))


class ReadoutFit(NamedTuple):
    """One fit of the readout on given features."""

    n: int
    ridge: float
    noise: float
    loss: str = "square"
    intercept: bool = False

    def by_samples(self, width: int) -> bool:
        """True if its matrices are (n, n), else (width, width).

        The hinge's are (n, n) always, see `convex`.
        """
        return self.loss == "hinge" or self.n <= width


@dataclass
class Group:
    """Points that share a draw."""

    problem: Problem  # any of them: for sizes, functions, laws and residual
    setting: Setting
    n_test: int
    points: dict[int, Problem] = field(default_factory=dict)
    fits: dict[FeatureKey, dict[ReadoutFit, list[Slot]]] = field(default_factory=dict)

    @property
    def has_square_loss(self) -> bool:
        """True if readouts are fitted by ridge regression: sums over rows are enough."""
        return self.problem.has_square_loss

    @property
    def levels(self) -> tuple[float, ...]:
        """Noise levels of the step's labels."""
        return tuple(sorted({p.noise_std for p in self.points.values()}))

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every step taken by trained features."""
        trained = {key.move: None for key in self.fits if key.base == "trained"}
        return tuple(trained)

    @property
    def steps_needed(self) -> bool:
        """Whether anything depends on the gradient."""
        return any(key.sizes for key in self.fits)

    @property
    def initial_needed(self) -> bool:
        """Whether any features use XW0ᵀ on its own."""
        return any(key.base != "trained" for key in self.fits)

    @property
    def separate(self) -> bool:
        """Whether to project each trained W on its own: no more products than W0 and G need.

        After several steps there is no choice: W is not linear in the step size.
        """
        if self.problem.steps > 1:
            return True
        return len(self.moves) + self.initial_needed <= 1 + residual_basis(self.levels)

    @property
    def projections(self) -> int:
        """How many matrices every sample is multiplied with."""
        if not self.moves:
            return 1
        if self.separate:
            return len(self.moves) + self.initial_needed
        return 1 + residual_basis(self.levels)

    def sizes(self, dual: bool) -> list[int]:
        """Sample sizes whose Gram matrix is on the sample's side (dual) or the neurons'."""
        every = {n for key in self.fits for n in self.by_size(key)}
        return sorted(n for n in every if (n <= self.problem.width) == dual)

    def keys(self, dual: bool) -> list[FeatureKey]:
        """The features that are fitted at one of these sizes."""
        sizes = self.sizes(dual)
        return [key for key in self.fits if not self.by_size(key).keys().isdisjoint(sizes)]

    def by_side(self, key: FeatureKey) -> dict[tuple[int, bool], list[ReadoutFit]]:
        """Fits by their sample size and whether their matrices are (n, n); see `convex`."""
        found: dict[tuple[int, bool], list[ReadoutFit]] = {}
        for fit in self.fits[key]:
            found.setdefault((fit.n, fit.by_samples(self.problem.width)), []).append(fit)
        return found

    def by_size(self, key: FeatureKey) -> dict[int, list[ReadoutFit]]:
        """The fits on some features by their sample size, ascending."""
        sizes = sorted({fit.n for fit in self.fits[key]})
        return {n: [fit for fit in self.fits[key] if fit.n == n] for n in sizes}


def make_groups(
    problems: Sequence[Problem], variants: tuple[Variant, ...], n_test: int, setting: Setting
) -> list[Group]:
    """The groups of a list of points, in order of first appearance."""
    groups: dict[Any, Group] = {}
    for index, problem in enumerate(problems):
        group = groups.setdefault(group_key(problem), Group(problem, setting, n_test))
        group.points[index] = problem
        for number, variant in enumerate(variants):
            key = feature_key(variant, problem)
            fits = group.fits.setdefault(key, {})
            fit = ReadoutFit(
                problem.n, problem.ridge, problem.noise_std, problem.loss, bool(problem.intercept)
            )
            fits.setdefault(fit, []).append((number, index))
    return list(groups.values())


def default_test_size(problems: Sequence[Problem]) -> int:
    """Twice the largest n, between 4000 and 20,000: enough for the draws' own scatter to rule."""
    return min(max(2 * max(p.n for p in problems), 4000), 20_000)


def group_key(problem: Problem) -> tuple[Any, ...]:
    """What points of one draw have in common.

    Labels ±1 are not linear in their noise, so that points with different ones share nothing.
    """
    signs = (problem.noise_std, problem.flip) if problem.is_binary else None
    return (
        *(problem.has_square_loss, signs),
        *(problem.d, problem.width, problem.n_step, problem.residual, problem.initial),
        *(problem.rows, problem.steps, problem.batches, problem.covariance),
        *(problem.target_exponent, problem.target_mass, problem.target_direction),
        *(problem.sigma, problem.teacher or problem.sigma_star, problem.law),
    )


MIN_ROWS = 256
SCALED_ROWS = 1024  # rows that a weighted Gram matrix scales at a time


def solve_flops(size: int, fits: Collection[ReadoutFit], backend: Backend) -> int:
    """Flops of all the ridges and right-hand sides on one Gram matrix."""
    ridges = len({fit.ridge for fit in fits})
    solves = 2 * size * size * len(fits)
    if by_eigenvectors(ridges, backend.eigen_flops):
        return int(EIGEN_FLOPS * size**3) + 2 * solves
    return int(CHOLESKY_FLOPS * ridges * size**3) + solves


def convex_flops(fit: ReadoutFit, width: int) -> int:
    """Flops of a fit with another loss, as promised.

    For as many steps as its loss takes on most problems; the true number is not known before.
    """
    n, N, steps = fit.n, width, LOSSES[fit.loss].steps
    sides = 1 + fit.intercept
    products = 8 * n * N
    if fit.by_samples(N):
        return steps * (products + int(CHOLESKY_FLOPS * n**3 + 2 * sides * n**2))
    products += n * N * N
    return steps * (products + int(CHOLESKY_FLOPS * N**3 + 2 * sides * N**2))


@dataclass(frozen=True)
class GroupCost:
    """How a group will be run, with its flops and its peak memory."""

    group: Group
    rows: int  # of one block
    buffers: int  # row buffers of width N
    flops: int  # for one draw
    memory: int  # bytes at the peak
    held: int = 0  # rows of the sample that have all their projections in memory
    primal: tuple[int, ...] = ()  # sample sizes above the width
    hold: bool = False  # whether they too are fitted from what is held, or block by block
    passes: tuple[tuple[FeatureKey, ...], ...] = ()  # keys fitted together, a Gram matrix each


def group_cost(group: Group, resources: Resources) -> GroupCost:
    """The cheapest way to run a group that fits the memory, or InsufficientMemory.

    n ≤ N: the sample is held. n > N: it is held when that takes less memory than a Gram matrix
    for every key, and streamed otherwise, when memory no longer depends on n. Other losses than the
    square need the sample itself, which is held.
    """
    shape = Shape(group, resources.backend)
    rows = shape.default_rows() if resources.block_rows is None else resources.block_rows
    per_pass = max(1, shape.limits.grams // shape.gram)
    most, told = resources.limit
    hold = shape.holding_is_smaller(per_pass) or not group.has_square_loss
    if hold and group.has_square_loss and shape.memory(rows, 1, hold=True) > most:
        hold = False
    while rows > CHUNK and shape.memory(rows, 1, hold) > most:
        rows = max(CHUNK, rows // 2 // CHUNK * CHUNK)
    spare = most - shape.memory(rows, 1, hold)
    if spare < 0:
        raise InsufficientMemory(
            f"needs at least {gibibytes(shape.memory(rows, 1, hold))} "
            f"({shape.describe()}); {told} is {gibibytes(most)}"
        )
    per_pass = 1 if hold else min(per_pass, 1 + spare // shape.gram)
    keys = group.keys(dual=False) if group.has_square_loss else []
    passes = tuple(tuple(keys[i : i + per_pass]) for i in range(0, len(keys), per_pass))
    return GroupCost(
        group=group,
        rows=rows,
        buffers=shape.buffers,
        held=shape.held(hold),
        primal=tuple(shape.primal),
        hold=hold,
        passes=passes,
        flops=shape.flops(hold, len(passes)),
        memory=shape.memory(rows, max((len(keys) for keys in passes), default=1), hold),
    )


class Shape:
    """Sizes of a group's arrays."""

    def __init__(self, group: Group, backend: Backend) -> None:
        p = group.problem
        self.group, self.backend, self.steps = group, backend, group.problem.steps
        self.itemsize, self.solver_itemsize = backend.itemsize, backend.solver.itemsize
        self.limits = backend.limits
        self.N, self.d, self.n0 = p.width, p.d, p.n_step
        self.matrices = group.projections
        self.draws_noise = any(key.base == "gaussian" for key in group.fits)
        self.buffers = max(2, self.matrices + 1 + self.draws_noise)
        self.primal, self.dual = group.sizes(dual=False), group.sizes(dual=True)
        self.gram = self.N * self.N * self.solver_itemsize

    def describe(self) -> str:
        n = max(problem.n for problem in self.group.points.values())
        return f"n = {n}, d = {self.d}, width = {self.N}"

    def default_rows(self) -> int:
        """As many rows as the buffers' share allows, between limits, a multiple of a chunk."""
        fitting = self.limits.buffers // (self.itemsize * (self.buffers * self.N + self.d))
        rows = max(MIN_ROWS, min(self.limits.rows, fitting))
        longest = max(self.n0, self.group.n_test, *self.primal, *self.dual)
        return -(-min(rows, longest) // CHUNK) * CHUNK

    def holding_is_smaller(self, per_pass: int) -> bool:
        """Whether the whole sample's projections take less room than the Gram matrices."""
        if not self.primal:
            return False
        grams = min(per_pass, len(self.group.keys(dual=False)))
        return self.buffers * self.primal[-1] * self.N * self.itemsize < (grams - 1) * self.gram

    def memory(self, rows: int, grams: int, hold: bool) -> int:
        """Peak over the phases: steps, held fits, streamed fits, test."""
        N, d, item = self.N, self.d, self.itemsize
        projected = self.matrices * N * d * item
        phases = [projected, self.step_bytes()]  # the test needs no more
        held = self.held(hold)
        if held:
            side = max(self.dual[-1] if self.dual else 0, N if hold else 0)
            factors = self._factors() * side * side * self.solver_itemsize
            if not self.group.has_square_loss:
                factors = self._convex_bytes()
            cast = held * N * self.solver_itemsize if self.mixed else 0
            phases.append(projected + self.buffers * held * N * item + cast + factors)
        if self.primal and not hold:
            phases.append(projected + (grams + self._factors() - 1) * self.gram)
        return self.block_bytes(rows) + max(phases) + self.limits.workspace

    def held(self, hold: bool) -> int:
        """Rows of the sample whose projections are in memory together."""
        return max([*self.dual, *(self.primal if hold else ())], default=0)

    @property
    def mixed(self) -> bool:
        """Whether features change precision on their way into a Gram matrix."""
        return self.itemsize != self.solver_itemsize

    def block_bytes(self, rows: int) -> int:
        """Buffers for the rows of a block."""
        N, d, item = self.N, self.d, self.itemsize
        blocks = rows * (self.buffers * N * item + 8 * d) + self.draws_noise * rows * N * 8
        cast = rows * N * self.solver_itemsize if self.mixed else 0
        return blocks + cast + (rows * d * item if item != 8 else 0)

    def step_bytes(self) -> int:
        """Weights and gradients alive during the steps."""
        if not self.group.steps_needed:
            return 0
        basis = residual_basis(self.group.levels)
        moved = len(self.group.moves) - 1 if self.group.separate else 0
        later = 1 if self.steps > 1 else 0
        shaped = self.group.problem.covariance is not None  # their products with Σ^½
        aligned = (1 if self.group.separate else 1 + basis) if shaped else 0
        return (1 + basis + moved + later + aligned) * self.N * self.d * self.itemsize

    def _convex_bytes(self) -> int:
        """Of a fit with another loss: FFᵀ and what is factored, or FᵀWF and some scaled rows."""
        N, item = self.N, self.solver_itemsize
        sides = {side for key in self.group.fits for side in self.group.by_side(key)}
        sizes = [2 * n * n if by_samples else N * (N + 2 * min(n, SCALED_ROWS))
                 for n, by_samples in sides]  # fmt: skip
        return max(sizes) * item

    def _factors(self) -> int:
        """Matrices of the Gram's size alive during a solve, itself included."""
        group = self.group
        each = [fits for key in group.fits for fits in group.by_size(key).values()]
        ridges = max(len({fit.ridge for fit in fits}) for fits in each)
        used_up = not self.dual and len(self.primal) == 1  # a lone solve may factor in place
        return self.backend.factors(ridges) if ridges > 1 or used_up else 2

    def flops(self, hold: bool, passes: int) -> int:
        """Of one draw, as `GroupRun` counts them on its way."""
        N, group, square = self.N, self.group, self.group.has_square_loss
        streamed = 0 if hold else passes * max(self.primal, default=0)
        rows = group.n_test + self.held(hold) + streamed
        flops = 2 * self.matrices * N * self.d * rows
        for key, fits in group.fits.items():
            flops += self._square_flops(key) if square else self._convex_flops(key)
            flops += 2 * group.n_test * N * len(fits)
        return flops + (self.step_flops() if group.steps_needed else 0)

    def _square_flops(self, key: FeatureKey) -> int:
        """Gram matrices and solves of ridge regression on some features."""
        N, sizes = self.N, self.group.by_size(key)
        products = N * max((n for n in sizes if n <= N), default=0) ** 2
        # Streamed rows go on to the largest size of any key.
        products += (self.primal[-1] if max(sizes) > N else 0) * N * (N + 4)
        return products + sum(self._fit_flops(n, same) for n, same in sizes.items())

    def _convex_flops(self, key: FeatureKey) -> int:
        """Gram matrices and Newton steps with other losses on some features."""
        grams = sum(n * n * self.N for n, by_samples in self.group.by_side(key) if by_samples)
        return grams + sum(convex_flops(fit, self.N) for fit in self.group.fits[key])

    def step_flops(self) -> int:
        """Of the gradients."""
        first = 2 * (1 + residual_basis(self.group.levels)) * self.n0 * self.N * self.d
        return first + (self.steps - 1) * len(self.group.moves) * 4 * self.n0 * self.N * self.d

    def _fit_flops(self, n: int, fits: list[ReadoutFit]) -> int:
        dual = 2 * n * self.N * len(fits) if n <= self.N else 0
        return solve_flops(min(n, self.N), fits, self.backend) + dual
