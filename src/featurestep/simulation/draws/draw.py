"""One draw of everything random: inputs, labels, first-layer weights, readout, teacher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import InvalidProblem
from ...problem import Problem
from ...types import FloatArray
from ..arrays.backend import Array, Backend
from ..failures import NonFiniteFeatures
from .setting import Setting
from .streams import Fill, Streams

READOUT_PART, FIRST_STEP_PART = 0, 1  # parts of the streams `data` and `noise`


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a sample."""

    start: int
    X: Array  # (rows, d)
    clean: FloatArray  # σ⋆(X·β⋆), corrupted where the setting says so
    noise: FloatArray  # standard normal: y = clean + noise_std · noise


@dataclass(frozen=True)
class Sample:
    """Which rows: the stream they come from, its part, and how many."""

    stream: str
    part: int
    count: int
    first_row: int = 0  # where they lie among the shuffled rows of a user's array


class Draw:
    """The random objects of one seed, the same for every point that shares the sizes."""

    def __init__(
        self, problem: Problem, setting: Setting, streams: Streams, backend: Backend, n_test: int
    ) -> None:
        self.problem = problem
        self.setting = setting
        self.streams = streams
        self.backend = backend
        self.n_test = n_test
        self._fill = _filler(setting)
        self._buffer: FloatArray | None = None  # of inputs, for every sample in turn

    @cached_property
    def directions(self) -> FloatArray:
        """Orthonormal rows (directions, d): β⋆, or the target's several."""
        shape = (self.problem.d, self.setting.directions(self.problem))
        basis, R = np.linalg.qr(self.streams.generator("teacher").standard_normal(shape))
        return np.ascontiguousarray((basis * np.sign(np.diagonal(R))).T)

    def initial_weights(self) -> Array:
        """W0: the same normals scaled to unit rows, or to N(0, I/d) (theory, section 1)."""
        W0 = np.empty((self.problem.width, self.problem.d))
        self.streams.rows("initialisation", 0, 0, W0, _INITIAL_ROWS[self.problem.initial])
        return self.backend.put(W0)

    @cached_property
    def readout(self) -> FloatArray:
        """a_j = g_j/√N."""
        N = self.problem.width
        g = self.problem.law.sample(self.streams.generator("readout"), N)
        return np.asarray(g / N**0.5)

    def readout_sample(self, n: int) -> Sample:
        """The sample the readout is fitted on; smaller ones are its first rows."""
        return Sample("data", READOUT_PART, n)

    def step_sample(self, step: int) -> Sample:
        """The sample of a gradient step."""
        n0 = self.problem.n_step
        same_batch = self.setting.batches == "same"
        batch = 0 if same_batch else step
        if self.setting.data == "same" and batch == 0:
            return Sample("data", READOUT_PART, n0)
        last = 0 if isinstance(self.setting.inputs, str) else len(self.setting.inputs)
        return Sample("data", FIRST_STEP_PART + batch, n0, last - (batch + 1) * n0)

    def test_sample(self) -> Sample:
        """Fresh rows for the test error."""
        if isinstance(self.setting.inputs, str):
            return Sample("test", 0, self.n_test)
        used = sum(_batches(self.setting)) * self.problem.n_step
        return Sample("test", 0, self.n_test, len(self.setting.inputs) - used - self.n_test)

    def blocks(self, sample: Sample, rows: int) -> Iterator[Block]:
        """The sample in blocks of rows; the inputs' buffer is reused from block to block."""
        d = self.problem.d
        if self._buffer is None or len(self._buffer) < min(rows, sample.count):
            self._buffer = np.empty((min(rows, sample.count), d))
        for start in range(0, sample.count, rows):
            X = self._buffer[: min(rows, sample.count - start)]
            self._inputs(sample, start, X)
            on_device = self.backend.put(X)
            clean, noise = self._labels(sample, start, on_device)
            yield Block(start, on_device, clean, noise)

    def _inputs(self, sample: Sample, start: int, X: FloatArray) -> None:
        if isinstance(self.setting.inputs, str):
            self.streams.rows(sample.stream, sample.part, start, X, self._fill)
        else:
            first = sample.first_row + start
            np.take(self.setting.inputs, self._order[first : first + len(X)], axis=0, out=X)
        if self.setting.spectrum is not None:
            X *= np.sqrt(coordinate_variances(self.setting.spectrum, X.shape[1]))

    @cached_property
    def _order(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.streams.generator("data").permutation(len(self.setting.inputs))

    def _labels(self, sample: Sample, start: int, X: Array) -> tuple[FloatArray, FloatArray]:
        rows, k = len(X), len(self.directions)
        out = self.backend.empty(rows, k)
        along = self.backend.product(X, self.backend.put(self.directions), out)
        clean = self._target(self.backend.get(along))
        noise = np.zeros(rows)
        if sample.stream != "test":
            self.streams.rows("noise", 2 * sample.part, start, noise, _normal)
            clean = self._corrupt(sample, start, clean)
        return clean, noise

    def _target(self, along: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            values = self.setting.clean_labels(self.problem, along)
        if not np.all(np.isfinite(values)):
            where = along[~np.isfinite(values)][0]
            raise NonFiniteFeatures(f"the target is not finite at projections {where.tolist()}")
        return np.asarray(values, dtype=np.float64)

    def _corrupt(self, sample: Sample, start: int, clean: FloatArray) -> FloatArray:
        if self.setting.corrupted == 0:
            return clean
        draws = np.empty((len(clean), 1 + len(self.directions)))
        self.streams.rows("noise", 2 * sample.part + 1, start, draws, _corruption)
        unrelated = self._target(draws[:, 1:])
        return np.where(draws[:, 0] < self.setting.corrupted, unrelated, clean)


def check_sizes(problem: Problem, setting: Setting, n_test: int) -> None:
    """Refuse what this problem's sizes cannot be drawn from this setting."""
    d = problem.d
    directions = setting.directions(problem)
    if directions > d:
        raise InvalidProblem("directions", f"must be <= d = {d}", directions)
    if setting.spectrum is not None and len(setting.spectrum) > d:
        raise InvalidProblem("spectrum", f"must have at most d = {d} values", len(setting.spectrum))
    if isinstance(setting.inputs, str):
        return
    rows, columns = setting.inputs.shape
    if columns != d:
        raise InvalidProblem("inputs", f"must have d = {d} columns", setting.inputs.shape)
    fresh, shared = _batches(setting)
    n0 = problem.n_step
    needed = max(problem.n, shared * n0) + fresh * n0 + n_test
    if rows < needed:
        rule = f"must have at least {needed} rows (readout, steps and {n_test} for testing)"
        raise InvalidProblem("inputs", rule, rows)


def coordinate_variances(spectrum: tuple[float, ...], d: int) -> FloatArray:
    """Variance of each of d coordinates: every eigenvalue takes an equal share of them."""
    return np.array(spectrum)[np.arange(d) * len(spectrum) // d]


def _batches(setting: Setting) -> tuple[int, int]:
    """How many step batches need rows of their own, and whether one shares the readout's."""
    batches = 1 if setting.batches == "same" else len(setting.multiples)
    shared = int(setting.data == "same")
    return batches - shared, shared


def _normal(generator: np.random.Generator, out: FloatArray) -> None:
    generator.standard_normal(out=out)


def _unit_rows(generator: np.random.Generator, out: FloatArray) -> None:
    generator.standard_normal(out=out)
    out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]


def _gaussian_rows(generator: np.random.Generator, out: FloatArray) -> None:
    generator.standard_normal(out=out)
    out /= np.sqrt(out.shape[1])


_INITIAL_ROWS: dict[str, Fill] = {"sphere": _unit_rows, "gaussian": _gaussian_rows}


def _corruption(generator: np.random.Generator, out: FloatArray) -> None:
    generator.standard_normal(out=out)
    out[:, 0] = generator.random(len(out))


def _filler(setting: Setting) -> Fill:
    """How a chunk of inputs is drawn: mean 0 and variance 1 in every coordinate."""
    name, df = setting.law or ("gaussian", 0.0)

    def sphere(generator: np.random.Generator, out: FloatArray) -> None:
        _unit_rows(generator, out)
        out *= np.sqrt(out.shape[1])

    def rademacher(generator: np.random.Generator, out: FloatArray) -> None:
        out[:] = 2.0 * generator.integers(0, 2, out.shape) - 1.0

    def uniform(generator: np.random.Generator, out: FloatArray) -> None:
        out[:] = generator.uniform(-np.sqrt(3.0), np.sqrt(3.0), out.shape)

    def student(generator: np.random.Generator, out: FloatArray) -> None:
        out[:] = generator.standard_t(df, out.shape) * np.sqrt((df - 2.0) / df)

    laws: dict[str, Fill] = {
        "gaussian": _normal,
        "sphere": sphere,
        "rademacher": rademacher,
        "uniform": uniform,
        "student_t": student,
    }
    return laws[name]
