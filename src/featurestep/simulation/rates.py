"""What a backend does in a second, measured now: products, factorisations, random numbers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from ..functions.nonlinearity import Nonlinearity
from .arguments import Resources
from .arrays.backend import Backend
from .arrays.gram import CHOLESKY_FLOPS
from .draws.laws import NORMAL
from .draws.streams import Streams
from .network.cost import Work
from .network.step import evaluate

SIDE = {"cuda": 8192, "cpu": 1024, "torch": 1024}  # of the matrices that are timed
RUNS = 3


def measured_rates(resources: Resources, sigma: Nonlinearity) -> Work:
    """A short measurement: less than a second on a GPU, a few on a CPU."""
    backend, source = resources.backend, resources.source([Streams(0)])
    m = SIDE[backend.name]
    draw = partial(source.rows, "data", 0, 0, (m, m), NORMAL, reuse=True)
    X = source.rows("data", 0, 0, (m, m), NORMAL, reuse=False)
    solver = backend.solver
    gram = solver.outer_gram(solver.cast(X))
    rhs = solver.put(np.ones((m, 1)))
    out = backend.empty(m, m)
    features = partial(evaluate, backend, sigma, out, out)
    return Work(
        products=2 * m**3 / _seconds(backend, lambda: backend.product(X, X, out)),
        solves=CHOLESKY_FLOPS * m**3
        / _seconds(backend, lambda: solver.solve(gram, [float(m)] * 2, [rhs, rhs], False)) * 2,
        numbers=m * m / _seconds(backend, draw),
        features=m * m / _seconds(backend, features),
    )  # fmt: skip


def _seconds(backend: Backend, work: Callable[[], object]) -> float:
    """The median of a few runs after one that warms up."""
    times = []
    for _ in range(RUNS + 1):
        backend.synchronise()
        started = time.perf_counter()
        work()
        backend.synchronise()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])
