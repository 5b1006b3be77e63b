"""The blocked factorisation against NumPy's, around its block size and where it must fail."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import SingularSystem
from featurestep.simulation import make_backend

SIZE = 64


def gram(size):
    F = np.random.default_rng(size).standard_normal((size + 50, size))
    return F.T @ F


@pytest.mark.parametrize("size", [1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 37])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-3)])
@pytest.mark.parametrize("overwrite", [False, True])
def test_only_the_lower_triangle_is_read(size, dtype, rtol, overwrite):
    G = gram(size)
    A = G.astype(dtype)
    A[np.triu_indices(size, 1)] = np.nan
    x = np.random.default_rng(0).standard_normal((size, 2))
    (found,) = make_backend("cpu", dtype).solve(A, [0.0], [(G @ x).astype(dtype)], overwrite)
    np.testing.assert_allclose(found, x, rtol=rtol, atol=rtol)


def test_an_indefinite_matrix_is_refused():
    G = np.eye(2 * SIZE)
    G[SIZE + 4, SIZE + 4] = -1.0
    with pytest.raises(SingularSystem, match="raise the ridge"):
        make_backend("cpu", "float64").solve(G, [0.0], [np.ones((2 * SIZE, 1))], False)


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
