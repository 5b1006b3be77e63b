"""Predicted spectra against those of real networks (n = 2000, several draws; 1000 in every run)."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from benchmarks.large_spectra import kolmogorov, network
from featurestep import Problem, function, simulated_spectrum, spectrum
from featurestep.functions.nonlinearity import normalised_hermite

from .device import DEVICE

SEEDS = tuple(range(8))
FEW = tuple(range(5))
NEAR = 0.05  # spikes closer to the edge than this may or may not be seen, by themselves or at all
ACTIVATIONS = {
    "relu": {"activation": "relu", "centre": True},
    "tanh(z + 1/2)": {
        "activation": function(
            lambda z: np.tanh(z + 0.5),
            derivative=lambda z: 1 / np.cosh(z + 0.5) ** 2,
            name="tanh(z + 1/2)",
        ),
        "centre": True,
    },
    # E σ‴ = 6: each neuron's norm changes with its own overlap with the target's direction. Only
    # the spikes know (section 5); a larger d and a smaller step let it fade in the bulk
    "cubic": {
        "activation": "H1 + H2 + H3",
        "d": 4000,
        "n_step": 32000,
        "step_scale": 0.38,
        "readout": "rademacher",
    },
}
BASE = {"target": "H1 + H2/sqrt(2)", "n": 2000, "d": 1000, "width": 1500, "ridge": 0.1}


def overlaps_in_a_sample(spike, n):
    """Squared overlaps with H_0 … H_6 as n samples show them: there H_j and H_k are not orthogonal.

    The left vector is the predicted function of κ and a rest that is spread over all samples.
    """
    kappa, place = np.unique(spike.kappa, return_inverse=True)
    function = CubicSpline(kappa, np.bincount(place, spike.function) / np.bincount(place))
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(200):
        drawn = rng.standard_normal(n)
        inside = np.clip(drawn, kappa[0], kappa[-1])
        basis = normalised_hermite(6, drawn)
        inner = basis @ function(inside)
        rest = max(0.0, 1.0 - np.mean(function(inside) ** 2))
        seen.append(inner**2 / (n * (basis**2).sum(axis=1)) + rest / n)
    return np.mean(seen, axis=0)


def check(problem, seeds=SEEDS):
    predicted = spectrum(problem)
    simulated = simulated_spectrum(problem, seeds=seeds, **DEVICE)
    eigenvalues = simulated.eigenvalues()  # (seeds, min(n, N)), descending
    overlaps = simulated.hermite_overlaps()
    spikes = predicted.spikes
    assert kolmogorov(predicted, eigenvalues[:, len(spikes) :]) <= 0.01
    for rank, spike in enumerate(spikes):
        if spike.location < (1 + NEAR) * predicted.entry_reach:
            continue  # near the edge, or where single large entries have eigenvalues too
        seen = eigenvalues[:, rank]
        error = seen.std(ddof=1) / len(seeds) ** 0.5
        gap = abs(seen.mean() - spike.location)
        assert gap < max(0.03 * spike.location, 4 * error), (rank, seen, spike.location)
        mean = overlaps[:, rank].mean(axis=0)
        expected = overlaps_in_a_sample(spike, problem.n)
        plain = np.array([spike.constant_overlap, *spike.overlaps])
        assert np.abs(expected - plain)[:4].max() < 0.02  # what the sample adds is small
        assert np.abs(mean - expected).max() < 0.05, (rank, spike.distance, mean, expected)
    counts = (eigenvalues > predicted.edge + predicted.margin).sum(axis=1)
    certain = sum(spike.location >= (1 + NEAR) * predicted.entry_reach for spike in spikes)
    assert certain <= np.median(counts) <= len(spikes), counts


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.0, 0.15, 0.29, 0.38, 0.42, 0.45])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_step_on_many_samples(name, exponent):
    # n_step = 8d: what the step adds beside β is small, as equation (4) needs at large steps
    sizes = {**BASE, "n_step": 8000, **ACTIVATIONS[name]}
    check(Problem(**sizes, step_exponent=exponent), SEEDS if sizes["d"] == BASE["d"] else FEW)


HALF = {"n": 1000, "d": 500, "width": 750}  # an eighth of the work, within the same bounds
FAST = (
    {**HALF, "step_exponent": 0.35, "readout": "constant", "n_step": 2000},
    {**HALF, "step_exponent": 0.35, "readout": "rademacher", "activation": "tanh"},
)


@pytest.mark.parametrize("changes", FAST)
def test_networks_for_every_run(changes):
    check(Problem(**{**BASE, **ACTIVATIONS["relu"], **changes}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"step_exponent": 0.15},
        {"step_exponent": 0.29},
        {"step_exponent": 0.38, "activation": "tanh", "centre": False},
        {"step_exponent": 0.3, "residual": "full"},
        {"step_exponent": 0.3, "centre": False},
        {"step_exponent": 0.3, "readout": "uniform", "width": 3000},
        {"step_size": 0.0, "width": 500},
        {"step_exponent": 0.3, "d": 4000, "n_step": 8000},
        {"step_exponent": 0.29, "n_step": 8000, "activation": "H1 + H2/2 + H3/6"},
        {"step_exponent": 0.42, "n_step": 8000, "activation": "H1 + H2/2 + H3/6"},
    ],
)
def test_other_networks(changes):
    check(Problem(**{**BASE, **ACTIVATIONS["relu"], **changes}))


@pytest.mark.slow
def test_weights_after_the_step():
    problem = Problem(**BASE, **ACTIVATIONS["relu"], n_step=8000, step_exponent=0.25)
    law = spectrum(problem).weights
    variants = ("weights", "initial_weights")
    simulated = simulated_spectrum(problem, seeds=SEEDS, variants=variants, **DEVICE)
    seen = simulated.singular_values("weights")
    error = seen[:, 0].std(ddof=1) / len(SEEDS) ** 0.5
    gap = abs(seen[:, 0].mean() - law.spike.singular_value)
    assert gap < max(0.03 * law.spike.singular_value, 4 * error)
    directions = simulated.direction_overlaps("weights")
    assert directions["beta"][:, 0].mean() == pytest.approx(law.spike.alignment, abs=0.05)
    assert directions["target"][:, 0].mean() == pytest.approx(law.spike.target_alignment, abs=0.05)
    assert directions["readout"][:, 0].mean() == pytest.approx(
        law.spike.readout_alignment, abs=0.05
    )
    assert seen[:, 1].mean() == pytest.approx(law.edges[1], rel=0.03)
    untrained = simulated.singular_values("initial_weights")[:, 0].mean()
    assert untrained == pytest.approx(1 + (problem.width / problem.d) ** 0.5, rel=0.03)


STEPS = (0.25, 0.5, 1.0, 2.0)
LARGE = [
    *((law, step) for law in ("constant", "gaussian") for step in STEPS),
    ("rademacher", 0.5),
    ("uniform", 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "step"), LARGE)
@pytest.mark.parametrize("samples", [2, 8])
@pytest.mark.parametrize("name", ["relu", "sin(z+.6)"])
def test_large_steps(name, samples, law, step):
    """Steps of order √N on few samples, where the weights are far from isotropic (n = 4000).

    The bulk of a continuous law is solved with few groups of neurons, its spikes with many. A spike
    so near the border that draws fall on both sides of it takes more of them to be counted.
    """
    problem = network(name, law, samples, step)
    predicted = spectrum(problem)
    border = predicted.edge + predicted.margin
    near = any(abs(spike.location / border - 1.0) < 0.05 for spike in predicted.spikes)
    seeds = range(25 if near else 4)
    simulated = simulated_spectrum(problem, seeds=seeds, **DEVICE)
    eigenvalues, overlaps = simulated.eigenvalues(), simulated.hermite_overlaps()
    assert kolmogorov(predicted, eigenvalues[:, len(predicted.spikes) :]) <= 0.005
    assert law != "constant" or predicted.count == 1
    for rank, spike in enumerate(predicted.spikes):
        if not spike.resolved:
            continue
        seen = eigenvalues[:, rank]
        error = seen.std(ddof=1) / len(seeds) ** 0.5
        assert abs(seen.mean() - spike.location) < max(0.02 * spike.location, 3.0 * error), rank
        expected = np.array([spike.constant_overlap, *spike.overlaps[:3]])
        shown = overlaps[:, rank, :4]
        spread = shown.std(axis=0, ddof=1) / len(seeds) ** 0.5
        allowed = np.maximum(0.02, 0.0 if law == "constant" else 3.0 * spread)
        assert np.all(np.abs(shown.mean(axis=0) - expected) < allowed), (rank, shown, expected)
    counts = [spikes.count for spikes in simulated.spikes("trained", predicted.border)]
    assert np.median(counts) == predicted.count, counts


def test_the_norms_of_inputs_count_once():
    """‖x‖ makes a spike of features with c_2 ≠ 0: by nodes of ‖x‖ or by s_gh, not by both."""
    norms = Problem(
        activation="H1 + 2*H2",
        centre=True,
        target="H1",
        n=1200,
        d=200,
        width=1800,
        step_size=0.01,
        ridge=0.1,
        readout="rademacher",
    )
    (spike,) = spectrum(norms).spikes
    largest = simulated_spectrum(norms, seeds=6).eigenvalues()[:, 0]
    error = largest.std(ddof=1) / np.sqrt(largest.size)
    assert error < 0.02 * largest.mean()
    assert abs(spike.location - largest.mean()) < 4 * error


SMALL_D = {**BASE, **ACTIVATIONS["relu"], "n": 1200, "d": 40, "width": 800, "step_size": 0.0}


def check_at_small_d(problem, seeds):
    """The bulk where n and N are of the order of d², and the eigenvalues of each of its parts.

    Terms of order 1/d are left out of spectra. A few eigenvalues lie between parts: functions of
    the norm ‖x‖ alone, or of κ, and single neurons with a large |g|.
    """
    predicted = spectrum(problem)
    values = simulated_spectrum(problem, seeds=seeds, **DEVICE).eigenvalues()
    values = values[:, len(predicted.spikes) :]
    assert kolmogorov(predicted, values) <= 1.2 / problem.d
    for part in predicted.intervals:
        inside = (values > (0.96 * part.low) ** 2) & (values < (1.04 * part.high) ** 2)
        count = inside.sum(axis=1).mean()
        assert count == pytest.approx(part.mass * problem.width, abs=0.01 * problem.width)


@pytest.mark.parametrize("changes", [{}, {"n": 3000, "d": 30, "width": 2000}])
def test_quadratic_functions_have_a_part_of_the_bulk(changes):
    check_at_small_d(Problem(**{**SMALL_D, **changes}), (0,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"n": 3000, "d": 30, "width": 3000},
        {"n": 3000, "d": 30, "width": 2000, "initial": "gaussian"},
        {"n": 1500, "d": 50, "width": 1200, "activation": "gelu"},
        {"n": 1800, "d": 60, "width": 900, "activation": "softplus", "step_size": 10.0},
        {"width": 1200, "step_size": 10.0, "readout": "rademacher"},
        {"width": 700, "step_size": 10.0, "initial": "gaussian"},
        {"activation": "sin(z + 0.6)", "width": 1500, "step_size": 19.0, "readout": "constant"},
        {"n": 3500, "d": 30, "width": 1500, "activation": "tanh"},
    ],
)
def test_spectra_at_small_d(changes):
    check_at_small_d(Problem(**{**SMALL_D, "n_step": 320, **changes}), range(3))
