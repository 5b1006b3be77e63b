"""The step of a network with several outputs, on rows of the user's own."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import NonFiniteFeatures, Problem
from featurestep.simulation import BLOCK_ROWS, Block, NetworkOnRows, gradient, make_backend

N_STEP, D, OUTPUTS = BLOCK_ROWS + 300, 7, 3  # more than one block


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_step_is_the_sum_of_the_outputs_own_gradients(activation):
    problem = Problem(
        activation=activation, n=1, n_step=N_STEP, d=D, width=40, step_size=1.0, ridge=1.0
    )
    network = NetworkOnRows(problem, make_backend("cpu", "float64"), seed=3, outputs=OUTPUTS)
    rng = np.random.default_rng(0)
    X, R = rng.standard_normal((N_STEP, D)), rng.standard_normal((N_STEP, OUTPUTS))
    found = network.step(network.W0, X, R)
    total = np.zeros_like(found.G)
    buffers = (np.empty((N_STEP, 40)), np.empty((N_STEP, 40)))
    for k, (a, r) in enumerate(zip(network.initial_readouts, R.T, strict=True)):
        block = Block(0, X, r, 0.0 * r)
        one = gradient(network.backend, problem, network.W0, a, [block], (0.0,), buffers)
        total += one.G[0]
        np.testing.assert_allclose(found.beta[k], one.beta[0][0], rtol=1e-12)
    np.testing.assert_allclose(found.G, total, atol=1e-14 * N_STEP**0.5)


def test_a_gradient_that_overflows_is_refused():
    problem = Problem(activation="relu", n=1, d=2, width=4, step_size=1.0, ridge=1.0)
    network = NetworkOnRows(problem, make_backend("cpu", "float64"), seed=0, outputs=1)
    with pytest.raises(NonFiniteFeatures, match="the gradient is not finite"):
        network.step(network.W0, np.full((5, 2), 1e200), np.full((5, 1), 1e200))
