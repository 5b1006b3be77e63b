"""One draw of everything random: inputs, labels, first-layer weights, readout, teacher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.covariance import resolve_covariance
from ..core.errors import InvalidProblem, NonFiniteFeatures
from ..core.problem import Problem
from ..core.types import FloatArray
from .backend import Array
from .setting import CORRUPTION, Setting, borders, corners, law_of_initial, law_of_inputs
from .streams import CHUNK, Source, Streams

READOUT_PART, FIRST_STEP_PART = 0, 1  # parts of the streams `data` and `noise`


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a sample."""

    start: int
    X: Array  # (rows, d); every array may have an axis of draws in front
    clean: Array  # (rows,) in float64: σ⋆(X·β⋆), corrupted where the setting says so
    noise: Array  # (rows,) in float64, standard normal: y = clean + noise_std · noise
    # Of labels ±1 (but those of a test sample) `clean` is the label itself, and `noise` 0.

    @property
    def rows(self) -> int:
        """How many."""
        return int(self.X.shape[-2])


@dataclass(frozen=True)
class SampleRange:
    """Which rows: the stream they come from, its part, and how many."""

    stream: str
    part: int
    count: int
    first_row: int = 0  # where they lie among the shuffled rows of a user's array
    start: int = 0  # rows before this one are left to others; a multiple of CHUNK
    shared: int = 0  # rows before this one are those of the readout's sample

    def within(self, rows: tuple[int, int]) -> SampleRange:
        """Some of its rows, from the first to before the last."""
        return replace(self, start=rows[0], count=rows[1])


class Draw:
    """The random objects of one seed, the same for every point that shares the sizes.

    From a source of several seeds, it is all their draws at once: each array has one more axis,
    in front.
    """

    def __init__(self, problem: Problem, setting: Setting, source: Source, n_test: int) -> None:
        self.problem = problem
        self.setting = setting
        self.source = source
        self.backend = source.backend
        self.n_test = n_test
        self.lead = source.lead
        self._law = law_of_inputs(setting.law, problem.d)
        self._covariance = problem.input_covariance

    @property
    def streams(self) -> Streams:
        """Of the first seed."""
        return self.source.streams[0]

    @cached_property
    def directions(self) -> FloatArray:
        """Orthonormal rows (directions, d): θ = Σ^½β⋆, or the target's several."""
        shape = (self.problem.d, self.setting.directions(self.problem))
        shaped = self._covariance is not None or self.problem.target_direction is not None

        def one(streams: Streams) -> FloatArray:
            normals = streams.generator("teacher").standard_normal(shape)
            if shaped:
                normals = self._along_mass(normals)
            basis, R = np.linalg.qr(normals)
            return np.ascontiguousarray((basis * np.sign(np.diagonal(R))).T)

        return self.source.each(one)

    def _along_mass(self, normals: FloatArray) -> FloatArray:
        """Columns (d, directions) with the mass of the problem's target in each class."""
        covariance = self._covariance or resolve_covariance((1.0,), self.problem.d)
        law = self.problem.target_law
        found = np.stack([law.draw(column, covariance) for column in normals.T], axis=1)
        return found if covariance.vectors is None else covariance.vectors.T @ found

    @cached_property
    def raw_directions(self) -> FloatArray:
        """Rows β⋆ = Σ^(−½)θ: the target is a function of X·β⋆."""
        if self._covariance is None:
            return self.directions
        variances, vectors = self._covariance.variances, self._covariance.vectors
        inverse = np.where(variances > 0.0, variances, np.inf) ** -0.5
        if vectors is None:
            return self.directions * inverse
        return np.asarray(((self.directions @ vectors.T) * inverse) @ vectors)

    @property
    def unit_directions(self) -> FloatArray:
        """The directions of all β⋆ as unit rows."""
        if self._covariance is None:
            return self.directions
        rows = self.raw_directions
        return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))

    def whitened(self, matrix: Array) -> Array:
        """A matrix (…, d) times Σ^½: what it does to inputs of covariance 1."""
        if self._covariance is None:
            return matrix
        if self._covariance.vectors is None:
            return matrix * self._scales
        return self.backend.product(matrix, self._root)

    def initial_weights(self) -> Array:
        """W0: the same normals scaled to unit rows, or to N(0, I/d) (theory, section 1)."""
        shape = (self.problem.width, self.problem.d)
        law = law_of_initial(self.problem.initial, self.problem.d)
        return self.source.rows("initialisation", 0, 0, shape, law, reuse=False)

    @cached_property
    def readout(self) -> FloatArray:
        """a_j = g_j/√N."""
        N, law = self.problem.width, self.problem.law
        drawn = self.source.each(lambda streams: law.sample(streams.generator("readout"), N))
        return np.asarray(drawn / N**0.5)

    def readout_sample(self, n: int) -> SampleRange:
        """The sample the readout is fitted on; smaller ones are its first rows."""
        return SampleRange("data", READOUT_PART, n)

    def step_sample(self, step: int) -> SampleRange:
        """The sample of a gradient step."""
        n0, shared = self.problem.n_step, self.problem.shared_rows
        batch = 0 if self.problem.batches == "same" else step
        last = 0 if isinstance(self.setting.inputs, str) else len(self.setting.inputs)
        first = last - (batch + 1) * n0
        if batch:  # the first one has fewer rows of its own
            return SampleRange("data", FIRST_STEP_PART + batch, n0, first + shared)
        return SampleRange("data", FIRST_STEP_PART, n0, first, shared=shared)

    def test_sample(self) -> SampleRange:
        """Fresh rows for the test error."""
        if isinstance(self.setting.inputs, str):
            return SampleRange("test", 0, self.n_test)
        left = len(self.setting.inputs) - _own_rows(self.problem)
        return SampleRange("test", 0, self.n_test, left - self.n_test)

    def blocks(self, sample: SampleRange, rows: int) -> Iterator[Block]:
        """The sample in blocks of rows; the inputs' memory is reused from block to block."""
        for start in range(sample.start, sample.count, rows):
            end = min(start + rows, sample.count)
            shared = min(max(sample.shared, start), end)
            if start < shared:
                yield self._block(self.readout_sample(shared), start, start, shared)
            if shared < end:
                drawn = shared - shared % CHUNK if shared > start else start
                yield self._block(sample, drawn, shared, end)

    def _block(self, sample: SampleRange, drawn: int, start: int, end: int) -> Block:
        """Rows from start to end, of those drawn from where a chunk of the stream starts."""
        X = self._inputs(sample, drawn, end - drawn)
        clean, noise = self._labels(sample, drawn, X)
        left = start - drawn
        return Block(start, X[..., left:, :], clean[..., left:], noise[..., left:])

    def _inputs(self, sample: SampleRange, start: int, rows: int) -> Array:
        d = self.problem.d
        if isinstance(self.setting.inputs, str):
            clusters = self.setting.mixture
            extra = 0 if clusters is None else 1  # a column that picks a row's cluster
            at = (sample.stream, sample.part, start)
            X = self.source.rows(*at, (rows, d + extra), self._law, reuse=True)
            if clusters is not None:
                X = self._clustered(X, *clusters)
        else:
            first = sample.first_row + start
            X = self.backend.put(self.setting.inputs[self._order[..., first : first + rows]])
        if self._covariance is None:
            return X
        if self._covariance.vectors is not None:
            return self.backend.product(X, self._root)
        X *= self._scales
        return X

    def _clustered(self, X: Array, clusters: int, separation: float) -> Array:
        """Normals with their clusters' centres added, each coordinate at variance 1."""
        d, k = self.problem.d, clusters - 1
        pick, ends = X[..., d:], borders(clusters)
        centres = self.backend.put(corners(clusters, separation))
        out = self.backend.empty(*X.shape[:-1], d)
        out[...] = X[..., :d]
        for i in range(clusters):
            inside = (pick > float(ends[i])) & (pick <= float(ends[i + 1]))  # (…, rows, 1)
            out[..., :k] += inside * centres[i]
        out[..., :k] *= (1.0 + separation**2 / k) ** -0.5
        return out

    @cached_property
    def _root(self) -> Array:
        """Σ^½ of a covariance that is not diagonal."""
        assert self._covariance is not None
        return self.backend.put(self._covariance.root)

    @cached_property
    def _scales(self) -> Array:
        """The diagonal of Σ^½."""
        assert self._covariance is not None
        return self.backend.put(np.sqrt(self._covariance.variances))

    @cached_property
    def _order(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        count = len(self.setting.inputs)
        return self.source.each(lambda streams: streams.generator("data").permutation(count))

    def _labels(self, sample: SampleRange, start: int, X: Array) -> tuple[Array, Array]:
        clean = self._target(self.backend.wide(self.backend.product(X, self._on_device)))
        if sample.stream == "test":
            return clean, 0.0 * clean
        noise = self.source.column("noise", 2 * sample.part, start, X.shape[-2])
        clean = self._corrupt(sample, start, clean)
        if self.problem.is_binary:
            return self._signs(sample, start, clean, noise), 0.0 * clean
        return clean, noise

    def _signs(self, sample: SampleRange, start: int, clean: Array, noise: Array) -> Array:
        """y = sign(σ⋆ + noise_std · noise), some of them flipped (theory, eq. 71)."""
        ones = 0.0 * clean + 1.0
        y = self.backend.where(clean + self.problem.noise_std * noise >= 0.0, ones, -ones)
        if self.problem.flip == 0.0:
            return y
        draws = self.source.column("flips", sample.part, start, clean.shape[-1])
        return self.backend.where(draws < flip_threshold(self.problem.flip), -y, y)

    @cached_property
    def _on_device(self) -> Array:
        return self.backend.put(self.raw_directions)

    def _target(self, along: Array) -> Array:
        """σ⋆ of projections (…, rows, directions), in float64."""
        teacher = self.setting.teacher_of(self.problem)
        with np.errstate(all="ignore"):
            if teacher is None:
                values = self.backend.value(self.problem.sigma_star)(along[..., 0])
            else:
                on_host = self.backend.get(along)
                flat = teacher(on_host.reshape(-1, on_host.shape[-1]))
                values = self.backend.wide(flat.reshape(on_host.shape[:-1]))
        if not np.isfinite(float(values.sum())):  # one number is fetched where all is well
            wrong = ~np.isfinite(self.backend.get(values))
            if wrong.any():
                where = self.backend.get(along)[wrong][0].tolist()
                raise NonFiniteFeatures(f"the target is not finite at projections {where}")
        return values

    def _corrupt(self, sample: SampleRange, start: int, clean: Array) -> Array:
        if self.setting.corrupted == 0:
            return clean
        shape = (clean.shape[-1], 1 + self.directions.shape[-2])
        at = ("noise", 2 * sample.part + 1, start)
        draws = self.backend.wide(self.source.rows(*at, shape, CORRUPTION, reuse=False))
        chosen = draws[..., 0] < self.setting.corrupted
        unrelated = self._target(draws[..., 1:])
        return self.backend.where(chosen, unrelated, clean)


def flip_threshold(flip: float) -> float:
    """The standard normal quantile below which a label's draw of the stream `flips` flips it."""
    from scipy.special import ndtri  # slow to load

    return float(ndtri(flip))


def check_sizes(problem: Problem, setting: Setting, n_test: int) -> None:
    """Refuse what this problem's sizes cannot be drawn from this setting."""
    d = problem.d
    directions = setting.directions(problem)
    if directions > d:
        raise InvalidProblem("directions", f"must be <= d = {d}", directions)
    if problem.target_direction is not None and directions > 1:
        rule = "must be left out for a target of several directions"
        raise InvalidProblem("target_direction", rule, problem.target_direction)
    if setting.mixture is not None and setting.mixture[0] > d:
        raise InvalidProblem("inputs", f"must have at most d = {d} clusters", setting.inputs)
    if isinstance(setting.inputs, str):
        return
    rows, columns = setting.inputs.shape
    if columns != d:
        raise InvalidProblem("inputs", f"must have d = {d} columns", setting.inputs.shape)
    needed = problem.n + _own_rows(problem) + n_test
    if rows < needed:
        rule = f"must have at least {needed} rows (readout, steps and {n_test} for testing)"
        raise InvalidProblem("inputs", rule, rows)


def _own_rows(problem: Problem) -> int:
    """Rows of all steps that are not the readout's."""
    batches = 1 if problem.batches == "same" else problem.steps
    return batches * problem.n_step - problem.shared_rows
