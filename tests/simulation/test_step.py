"""The gradient against finite differences of the loss, and the step against its theory."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import Problem, simulate
from featurestep.core.spiked import spiked_weights
from featurestep.simulation import gradient

from .dense import draw_of, whole


def ours(problem, draw, W, levels):
    rows = 64
    buffers = tuple(np.empty((rows, problem.width)) for _ in range(2))
    blocks = draw.blocks(draw.step_sample(0), rows)
    return gradient(draw.backend, problem, W, draw.readout, blocks, levels, buffers)


@pytest.mark.parametrize("activation", ["tanh", "gelu", "H1 + 0.2*H3"])
def test_full_gradient_is_that_of_the_loss(activation):
    """G = −∂/∂W of (1/2n0)Σ(y − f)², by central differences in random directions."""
    p = Problem(
        n=50, d=12, width=15, n_step=130, ridge=0.1, noise_std=0.3, step_size=1.0,
        residual="full", activation=activation, target="H1 + H2",
    )  # fmt: skip
    draw = draw_of(p)
    X0, clean, noise = whole(draw, draw.step_sample(0))
    y0, W = clean + 0.3 * noise, draw.initial_weights()

    def loss(weights):
        return np.mean((y0 - p.sigma(X0 @ weights.T) @ draw.readout) ** 2) / 2

    G = ours(p, draw, W, (0.3,)).G[0]
    for direction in np.random.default_rng(0).standard_normal((5, *W.shape)):
        h = 1e-5
        slope = (loss(W + h * direction) - loss(W - h * direction)) / (2 * h)
        assert np.sum(G * direction) == pytest.approx(-slope, rel=1e-7)


def test_labels_gradient_is_that_of_the_correlation():
    """With r = y0, G is the gradient of (1/n0)Σ y f."""
    p = Problem(n=50, d=12, width=15, n_step=70, ridge=0.1, step_size=1.0, activation="erf")
    draw = draw_of(p)
    X0, y0, _ = whole(draw, draw.step_sample(0))
    W = draw.initial_weights()
    G = ours(p, draw, W, (0.0,)).G[0]
    direction, h = np.random.default_rng(1).standard_normal(W.shape), 1e-5

    def correlation(weights):
        return np.mean(y0 * (p.sigma(X0 @ weights.T) @ draw.readout))

    slope = (correlation(W + h * direction) - correlation(W - h * direction)) / (2 * h)
    assert np.sum(G * direction) == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("residual", ["labels", "full"])
def test_noise_levels_share_two_gradients(residual):
    p = Problem(n=50, d=12, width=15, ridge=0.1, step_size=1.0, residual=residual)
    draw = draw_of(p)
    W = draw.initial_weights()
    basis = ours(p, draw, W, (0.0, 0.2, 0.7))
    for level in (0.0, 0.2, 0.7):
        alone = ours(p, draw, W, (level,))
        np.testing.assert_allclose(basis.G[0] + level * basis.G[1], alone.G[0], atol=1e-14)
        np.testing.assert_allclose(basis.beta[0] + level * basis.beta[1], alone.beta[0], atol=1e-14)


@pytest.mark.parametrize("residual", ["labels", "full"])
def test_alignment_is_that_of_theory(residual):
    """|γ| of eq. 2, to the order of its fluctuations 1/√d."""
    p = Problem(
        n=1200, d=600, width=900, ridge=0.1, noise_std=0.1, step_size=1.0,
        residual=residual, readout="rademacher",
    )  # fmt: skip
    found = simulate(p, seeds=4, n_test=10).dataset.cosine
    expected = abs(spiked_weights(p).alignment)
    assert abs(float(found.mean()) - expected) < 2 / np.sqrt(p.d)
    assert expected > 0.5
