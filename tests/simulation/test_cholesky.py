"""The blocked factorisation against NumPy's, around its block size and where it must fail."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep.simulation.arrays.backend import make_backend
from featurestep.simulation.arrays.gram import factor

SIZE = 64


def gram(size):
    F = np.random.default_rng(size).standard_normal((size + 50, size))
    return F.T @ F


@pytest.mark.parametrize("size", [1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 37])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-3)])
def test_lower_triangle_is_the_factor(size, dtype, rtol):
    G = gram(size)
    A = G.astype(dtype)
    A[np.triu_indices(size, 1)] = np.nan  # only the lower triangle may be read
    assert factor(A) == 0
    L = np.tril(A)
    np.testing.assert_allclose(L @ L.T, G, rtol=rtol, atol=rtol * size)


def test_an_indefinite_matrix_is_reported_where_it_fails():
    G = np.eye(2 * SIZE)
    G[SIZE + 4, SIZE + 4] = -1.0
    assert factor(G) == SIZE + 5


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_many_shifts_are_solved_and_the_gram_matrix_is_kept(count):
    backend, G = make_backend("cpu", "float64"), gram(SIZE + 60)
    shifts = list(np.geomspace(0.1, 10, count))
    rhs = [np.random.default_rng(i).standard_normal((len(G), 1 + i % 2)) for i in range(count)]
    kept = G.copy()
    for shift, b, found in zip(shifts, rhs, backend.solve(G, shifts, rhs, False), strict=True):
        expected = np.linalg.solve(kept + shift * np.eye(len(G)), b)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    assert np.array_equal(G, kept)
