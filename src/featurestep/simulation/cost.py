"""What a run costs, counted before it starts: flops, and the peak of its memory.

A flop is one addition or multiplication of a matrix product, a Gram matrix (half a product) or a
factorisation; elementwise work and random numbers are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .backend import CHOLESKY_FLOPS, EIGEN_FLOPS, by_eigenvectors
from .failures import InsufficientMemory, gibibytes
from .plan import Fit, Group
from .setting import Setting
from .step import residual_basis
from .streams import CHUNK
from .variants import FeatureKey

BUFFER_BYTES = 64 << 20  # row buffers aim at this much together
GRAM_BYTES = 2 << 30  # Gram matrices held at once, unless max_memory says otherwise
MAX_ROWS, MIN_ROWS = 1024, 256
WORKSPACE = 24 << 20  # of BLAS and of pieces of elementwise work


def solve_flops(size: int, fits: Sequence[Fit]) -> int:
    """Flops of all the ridges and right-hand sides on one Gram matrix."""
    ridges = len({fit.ridge for fit in fits})
    solves = 2 * size * size * len(fits)
    if by_eigenvectors(ridges):
        return int(EIGEN_FLOPS * size**3) + 2 * solves
    return int(CHOLESKY_FLOPS * ridges * size**3) + solves


@dataclass(frozen=True)
class GroupCost:
    """How a group will be run, with its flops and its peak memory."""

    rows: int  # of one block
    buffers: int  # row buffers of width N
    passes: tuple[tuple[FeatureKey, ...], ...]  # keys whose Gram matrices are held together
    flops: int  # for one draw
    memory: int  # bytes at the peak


def group_cost(
    group: Group, setting: Setting, *, itemsize: int, rows: int | None, max_memory: int | None
) -> GroupCost:
    """The cheapest way to run a group that fits the memory, or InsufficientMemory."""
    shape = _Shape(group, setting, itemsize)
    rows = shape.default_rows() if rows is None else rows
    per_pass = max(1, GRAM_BYTES // shape.gram)
    if max_memory is not None:
        while rows > CHUNK and shape.memory(rows, 1) > max_memory:
            rows = max(CHUNK, rows // 2 // CHUNK * CHUNK)
        spare = max_memory - shape.memory(rows, 1)
        if spare < 0:
            raise InsufficientMemory(
                f"needs at least {gibibytes(shape.memory(rows, 1))} "
                f"({shape.describe()}); max_memory is {gibibytes(max_memory)}"
            )
        per_pass = 1 + spare // shape.gram
    keys = shape.primal_keys
    passes = tuple(tuple(keys[i : i + per_pass]) for i in range(0, len(keys), per_pass))
    held = max((len(keys) for keys in passes), default=0)
    return GroupCost(
        rows, shape.buffers, passes, shape.flops(len(passes)), shape.memory(rows, held)
    )


class _Shape:
    """Sizes of a group's arrays."""

    def __init__(self, group: Group, setting: Setting, itemsize: int) -> None:
        p = group.problem
        self.group, self.setting, self.itemsize = group, setting, itemsize
        self.N, self.d, self.n0 = p.width, p.d, p.step_samples
        self.matrices = group.projections(setting)
        self.draws_noise = any(key.base == "gaussian" for key in group.fits)
        self.buffers = max(2, self.matrices + 1 + self.draws_noise)
        self.primal, self.dual = group.sizes(dual=False), group.sizes(dual=True)
        self.gram = self.N * self.N * itemsize
        self.primal_keys = keys_with(group, self.primal)

    def describe(self) -> str:
        return f"n = {max(self.primal + self.dual)}, d = {self.d}, width = {self.N}"

    def default_rows(self) -> int:
        """As many rows as the buffers' share allows, between limits, a multiple of a chunk."""
        fitting = BUFFER_BYTES // (self.itemsize * (self.buffers * self.N + self.d))
        rows = max(MIN_ROWS, min(MAX_ROWS, fitting))
        longest = max(self.n0, self.group.n_test, *self.primal, *self.dual)
        return -(-min(rows, longest) // CHUNK) * CHUNK

    def memory(self, rows: int, grams: int) -> int:
        """Peak over the phases: steps, dual fits, primal fits, test."""
        N, d, item = self.N, self.d, self.itemsize
        blocks = rows * (self.buffers * N * item + 8 * d) + self.draws_noise * rows * N * 8
        blocks += rows * d * item if item != 8 else 0
        weight = N * d * item
        projected = self.matrices * weight
        phases = [projected]  # the test needs no more
        if self.group.steps_needed:
            basis = residual_basis(self.group.levels)
            moved = len(self.group.moves) - 1 if self.group.separate(self.setting) else 0
            later = 1 if len(self.setting.multiples) > 1 else 0
            phases.append((1 + basis + moved + later) * weight)
        if self.dual:
            n = self.dual[-1]
            phases.append(projected + (self.buffers * n * N + self._factors() * n * n) * item)
        if self.primal:
            phases.append(projected + (grams + self._factors() - 1) * self.gram)
        return blocks + max(phases) + WORKSPACE

    def _factors(self) -> int:
        """Matrices of the Gram's size alive during a solve, itself included."""
        # Itself and a factor; or itself, a copy, the vectors and their workspace of two.
        return 5 if by_eigenvectors(self._most_ridges()) else 2

    def _most_ridges(self) -> int:
        counts: dict[tuple[FeatureKey, int], set[float]] = {}
        for key, fits in self.group.fits.items():
            for fit in fits:
                counts.setdefault((key, fit.n), set()).add(fit.ridge)
        return max(len(ridges) for ridges in counts.values())

    def flops(self, passes: int) -> int:
        """Of one draw: what `GroupRun` counts as it goes."""
        N, d = self.N, self.d
        total = 0
        if self.group.steps_needed:
            total += 2 * (1 + residual_basis(self.group.levels)) * self.n0 * N * d
            later = len(self.setting.multiples) - 1
            total += later * len(self.group.moves) * 4 * self.n0 * N * d
        project = 2 * self.matrices * N * d
        if self.primal:
            n = self.primal[-1]
            total += passes * n * project + len(self.primal_keys) * n * N * (N + 4)
        if self.dual:
            n = self.dual[-1]
            total += n * project + len(keys_with(self.group, self.dual)) * n * n * N
        total += self.group.n_test * project
        for fits in self.group.fits.values():
            total += 2 * self.group.n_test * N * len(fits)
            for size in self.primal + self.dual:
                total += self._fit_flops(size, [fit for fit in fits if fit.n == size])
        return total

    def _fit_flops(self, n: int, fits: list[Fit]) -> int:
        if not fits:
            return 0
        if n > self.N:
            return solve_flops(self.N, fits)
        return solve_flops(n, fits) + 2 * n * self.N * len(fits)


def keys_with(group: Group, sizes: Sequence[int]) -> list[FeatureKey]:
    """Keys that have a fit of one of the sizes."""
    return [key for key, fits in group.fits.items() if any(fit.n in sizes for fit in fits)]
