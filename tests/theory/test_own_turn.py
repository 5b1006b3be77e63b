"""Spikes of networks whose neurons turn in proportion to their own overlap with β⋆."""

import numpy as np
import pytest

from featurestep import Problem
from featurestep.theory.spectrum.outliers import above
from featurestep.theory.spectrum.own_turn import own_turn
from featurestep.theory.spectrum.solve import outlook
from featurestep.theory.spectrum.typical import typical_batch


def problem(**changes):
    sizes = {"n": 1000, "d": 500, "width": 750, "n_step": 50_000, "ridge": 0.1}
    base = {"activation": "H1 + H2 + H3", "target": "H1", "readout": "rademacher"}
    return Problem(**{**base, **sizes, "step_exponent": 0.4, "step_scale": 0.5, **changes})


def mean_step(p, seed):
    """Spikes of features whose weights took the mean of the step, n_step → ∞, term by term."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((p.width, p.d))
    weights /= np.linalg.norm(weights, axis=1)[:, None]
    a = rng.choice([-1.0, 1.0], p.width) / p.width**0.5
    own = weights[:, 0]  # β⋆ is the first axis
    moved = weights + p.eta * (6.0 * a * own)[:, None] * weights
    moved[:, 0] += p.eta * a
    inputs = rng.standard_normal((p.n, p.d))
    found = []
    for w in (moved, weights + p.eta * np.outer(a, np.eye(p.d)[0])):
        z = inputs @ w.T
        values = np.linalg.svd(z**3 + z**2 - 2 * z - 1, compute_uv=False)
        found.append(values[:2] ** 2 / p.n)
    return np.array(found)


def test_the_turn_adds_to_the_spikes_as_in_a_network():
    p = problem(d=4000, n_step=10**9, step_scale=0.5, step_exponent=0.4)  # no noise in the step
    turned, plain = np.mean([mean_step(p, seed) for seed in range(8)], axis=0)[:, 0]
    assert turned > 1.03 * plain  # the same draws: the turn is all that differs
    view = outlook(p)
    predicted = view.spikes[0].location
    view.equations.own_turn = None
    without = above(view.equations, view.edge)[0].location
    assert without == pytest.approx(plain, rel=0.03)
    assert predicted == pytest.approx(turned, rel=0.04)
    assert abs(predicted - turned) < 0.75 * abs(without - turned)


def test_where_it_is_small_or_not_known_the_columns_stay():
    for changes in (
        {"activation": "relu", "centre": True},  # c_3 = 0
        {"activation": "tanh"},
        {"step_exponent": 0.1},
        {"residual": "full"},
        {"target": "H2"},
    ):
        p = problem(**changes)
        assert own_turn(p, typical_batch(p)) is None


def test_it_is_the_derivative_of_the_mean_feature():
    p = problem(target="H1 + H2/sqrt(2)", d=10**7, n_step=10**7)  # ‖x‖ does not vary
    batch = typical_batch(p)
    found = own_turn(p, batch)
    step = p.eta / p.width**0.5
    t, rho, kappa = batch.shift * batch.kappa[:, None], batch.norm, batch.kappa[:, None]
    # m = E[σ(ρz + t)] = t³ + 3tρ² + t² + ρ² − 2t − 1 for H1 + H2 + H3
    by_norm = 6 * t * rho**2 + 2 * rho**2
    slope = 3 * t**2 + 3 * rho**2 + 2 * t - 2
    gamma = float(batch.alignment[0])
    expected = batch.g * step * (6 * by_norm + 4 / 2**0.5 * gamma * kappa * slope)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)
