"""Section 5 against closed forms, its own exact moments and the equations as they stand."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from featurestep import InvalidProblem, NotConverged, Problem, predict, spectrum
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import normalised_hermite
from featurestep.functions.quadrature import gauss_hermite, largest_expected, truncated_normal
from featurestep.theory.exact.fixed_point import evaluate, solve
from featurestep.theory.spectra import carried_degrees, solve_spectrum
from featurestep.theory.spectra.edges import is_filled, right_edge
from featurestep.theory.spectra.equations import FULL, Equations
from featurestep.theory.spectra.model import build_model, is_norm_spread_visible
from featurestep.theory.spectra.newton import newton_and_ridge
from featurestep.theory.spectra.spikes import strengths
from featurestep.theory.spectra.weights import weight_spectrum
from featurestep.theory.validity import close_spikes_notes

RELU = {"activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)", "ridge": 0.1}
SIZES = {"n": 2000, "d": 1000, "width": 1500}


def problem(**changes):
    """With a law of few values, whose spectrum is quick; a continuous one where it matters."""
    step = {} if "step_size" in changes else {"step_exponent": 0.38}
    return Problem(**{**RELU, **SIZES, "readout": "rademacher", **step, **changes})


solved = cache(spectrum)  # of problems that several tests ask about


def weights_law(p):
    """The spectrum of the weights, without that of the features."""
    return weight_spectrum(build_model(p).samples.step)


def untrained(activation, n, d, width):
    return Problem(
        activation=activation, target="H1", n=n, d=d, width=width, step_size=0.0, ridge=0.1
    )


def marchenko_pastur(x, ratio, variance):
    """Density of the eigenvalues of ZᵀZ/n, Z of n × ratio·n entries; the atom left out."""
    low, high = (variance * (1 + sign * ratio**0.5) ** 2 for sign in (-1, 1))
    inside = np.sqrt(np.maximum((high - x) * (x - low), 0.0))
    return inside / (2 * np.pi * ratio * variance * x)


@pytest.mark.parametrize(("n", "width"), [(1000, 500), (500, 1000), (20000, 1000), (1000, 20000)])
def test_without_a_linear_part_it_is_marchenko_pastur(n, width):
    found = spectrum(untrained("H2", n, 10**8, width))
    ratio = width / n
    low, high = (2 * (1 + sign * ratio**0.5) ** 2 for sign in (-1, 1))
    assert found.edges[0] == pytest.approx((low, high), rel=1e-7)
    x = np.linspace(low, high, 203)[1:-1]
    assert found.density(x) == pytest.approx(marchenko_pastur(x, ratio, 2.0), abs=1e-6)
    assert found.atom == pytest.approx(max(0.0, 1 - n / width))
    assert found.spikes == ()


def test_as_many_features_as_samples_reach_down_to_zero():
    found = spectrum(untrained("H2", 1000, 10**8, 1000))
    assert found.edges[0][0] == 0.0
    x = np.geomspace(1e-4, 7.99, 60)
    assert found.density(x) == pytest.approx(marchenko_pastur(x, 1.0, 2.0), rel=1e-6)
    assert found.cumulative([0.0, 8.0]) == pytest.approx([0.0, 1.0], abs=1e-9)


def product_density(x, n, d, width):
    """Eigenvalues of W XᵀX Wᵀ/n by multiplying S-transforms: one cubic at each place."""
    phi, wide = d / n, width / d
    out = []
    for place in x:
        roots = np.roots([phi, 1 + phi + phi * wide, 1 + wide + phi * wide - place, wide])
        m = -(1 + roots) / place  # of the d × d matrix
        out.append(max(m.imag) / np.pi * d / width)
    return np.array(out)


@pytest.mark.parametrize(
    ("n", "d", "width"), [(1000, 500, 400), (1000, 500, 700), (400, 500, 1000), (300, 900, 450)]
)
def test_linear_features_are_a_product_of_gaussian_matrices(n, d, width):
    found = spectrum(untrained("identity", n, d, width))
    assert found.atom == pytest.approx(1 - min(n, d, width) / width)
    low, high = found.edges[0]
    x = np.linspace(low, high, 101)[1:-1]
    expected = product_density(x, n, d, width)
    assert found.density(x) == pytest.approx(expected, abs=1e-6 * expected.max())
    outside = np.array([0.98 * low, 1.001 * high])
    assert product_density(outside, n, d, width) == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"readout": "gaussian"},
        {"step_size": 0.0},
        {"readout": "constant", "step_exponent": 0.45},
        {"readout": "rademacher", "activation": "tanh", "residual": "full"},
        pytest.param(
            {"readout": "uniform", "activation": "H1 + H2/4", "centre": False},
            marks=pytest.mark.slow,
        ),
        {"readout": ((2.0, 0.2), (-0.5, 0.8)), "activation": "gelu"},
        {"n": 600, "width": 1500},
        pytest.param({"n": 1500, "width": 1500}, marks=pytest.mark.slow),
        pytest.param(
            {"n": 20000, "d": 1000, "width": 20000, "activation": "tanh"}, marks=pytest.mark.slow
        ),
        {"n": 500, "d": 10000, "width": 500, "activation": "erf", "centre": False},
        pytest.param(
            {"n": 500, "d": 10000, "width": 500, "activation": "erf", "readout": "gaussian"},
            marks=pytest.mark.slow,
        ),
        {"n": 20000, "d": 1000, "width": 50, "step_exponent": 0.2},
        {"n": 50, "d": 1000, "width": 20000},
    ],
)
def test_mass_and_moments_are_exact(changes):
    found = solved(problem(**changes))
    assert found.mass == pytest.approx(1.0, abs=1e-6)
    assert found.moment(1) == pytest.approx(found.mean, rel=1e-5)
    assert found.moment(2) == pytest.approx(found.mean_square, rel=1e-5)
    assert found.cumulative(found.edge) == pytest.approx(1.0, abs=1e-6)
    s, density = found.curve(800)
    assert np.trapezoid(density, s) + found.atom == pytest.approx(1.0, abs=2e-3)
    x = 0.5 * sum(found.edges[-1])
    step = 1e-4 * x
    slope = np.diff(found.cumulative([x - step, x + step]))[0] / (2 * step)
    assert slope == pytest.approx(found.density(x), rel=1e-4)


@pytest.mark.parametrize("changes", [{}, {"activation": "tanh", "step_exponent": 0.42}])
def test_moments_are_traces_under_the_full_laws(changes):
    # (1/N) tr of FᵀF/n and of its square, means taken off, by a plain sum over 120 × 120 nodes
    p = problem(readout="gaussian", **changes)
    weights = spiked_weights(p)
    g, share = gauss_hermite(120)
    kappa, w = gauss_hermite(120)
    rho = weights.norm(g)
    _, slope, spread = p.sigma.moments(rho, weights.shift(g) * kappa[:, None])
    linear = rho * slope
    power = linear**2 + spread
    first = w @ power @ share
    overlap = (linear.T * w) @ linear
    columns = (share @ overlap**2 @ share) * p.width / p.d
    rows = w @ (power @ share) ** 2 * p.width / p.n
    second = (w @ power) ** 2 @ share + rows + columns
    model = build_model(p)
    many = model.spike_groups.samples
    step = replace(
        many.step, initial_factor=many.step.norm, k=0.0 * many.step.k, delta=0.0 * many.step.k
    )
    found = replace(model, samples=replace(many, step=step)).moments()
    assert found == pytest.approx((first, second), rel=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"readout": "constant"},
        {"readout": "rademacher", "step_exponent": 0.45, "centre": False},
        {"readout": ((2.0, 0.2), (-0.5, 0.8)), "activation": "tanh", "residual": "full"},
    ],
)
def test_exact_weights_at_negative_z_are_those_of_predictions(changes):
    """Two ways to solve (7), (8), (22), (23), one of them with Ξ among Newton's unknowns."""
    samples = build_model(problem(**changes)).samples
    equations = Equations(samples)
    found = equations.far(np.array([-4.0 + 0j]))
    for z in (-4.0, -1.0, -0.4, -0.1):
        found = equations.at(np.array([z + 0j]), found)
    expected = solve(replace(samples, step=replace(samples.step, ridge=np.array([0.1]))))
    assert expected.residual[0] < 1e-11
    assert found.v2[0] == pytest.approx(expected.at.state.v2[0], rel=1e-8)
    assert found.chi[0] == pytest.approx(expected.at.state.chi[0], rel=1e-8)


@pytest.mark.parametrize(
    "changes",
    [{}, {"readout": "uniform"}, {"activation": "tanh", "residual": "full"}, {"width": 4000}],
)
def test_the_literal_equations_hold_off_the_axis_and_on_it(changes):
    """Isotropic weights as a step without samples: (9), (10) in place of (22), (23)."""
    samples = build_model(problem(**{"readout": "gaussian", **changes})).samples
    step, columns, weight = samples.step, samples.columns, samples.weight
    nothing = np.zeros_like(step.k)
    step = replace(step, initial_factor=step.norm, k=nothing, delta=nothing)
    equations = Equations(replace(samples, step=step))
    n, d, rho, N = step.n[0], step.d[0], step.norm[0], step.neurons[0]
    mu, nu2 = columns.slope[0], columns.spread[0]
    for place in (0.4 + 0.5j, 1.3 + 0.02j, 1.1 + 0j):
        above = place + 4j
        start = equations.at(np.array([above]), equations.far(np.array([above])))
        for height in np.linspace(4.0, 0.0, 40):
            start = equations.at(np.array([place + 1j * height]), start)
        v2, chi = start.v2[0], start.chi[0]
        eye = np.eye(v2.size)
        mass = n * weight / (1 + chi)
        V1_hat, V2_hat = (mu.T * mass) @ mu, mass @ nu2  # (8)
        D = np.diag(rho**2 * v2 / d)
        V1 = d * D @ np.linalg.inv(eye + V1_hat @ D)  # (9)
        Lam = np.linalg.solve(eye + V1_hat @ D, V1_hat)
        t = -place * n + V2_hat
        assert v2 == pytest.approx(N / (t + rho**2 * np.diagonal(Lam)), rel=1e-8)  # (10)
        expected = np.einsum("qg,qh,gh->q", mu, mu, V1) + nu2 @ v2  # (7)
        assert chi == pytest.approx(expected, rel=1e-8)
        assert np.all(v2.imag > 0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "tanh"},
        {"width": 500, "n": 4000},
        pytest.param({"readout": "gaussian"}, marks=pytest.mark.slow),
        pytest.param({"readout": "uniform"}, marks=pytest.mark.slow),
    ],
)
def test_edges_and_spikes_do_not_depend_on_the_cutting(changes):
    coarse, fine = (solve_spectrum(problem(**changes), refinement=f)[1] for f in (1.0, 2.0))
    assert np.array(coarse.edges) == pytest.approx(np.array(fine.edges), rel=1e-4)
    assert len(coarse.spikes) == len(fine.spikes)
    for one, other in zip(coarse.spikes, fine.spikes, strict=True):
        assert one.location == pytest.approx(other.location, rel=1e-4)
        assert one.overlaps == pytest.approx(other.overlaps, abs=1e-3)


def test_the_density_vanishes_like_a_root_at_its_edges():
    found = solved(problem())
    low, high = found.edges[0]
    for edge, inward in ((low, 1), (high, -1)):
        near = found.density(edge * (1 + inward * np.array([1e-6, 4e-6])))
        assert near[1] / near[0] == pytest.approx(2.0, rel=1e-3)
        assert found.density(edge * (1 - inward * 1e-6)) == 0.0


def test_the_edge_scale_is_that_of_the_density():
    found = solved(problem())
    below = found.edge * 1e-6
    root = np.pi * found.density(found.edge - below) / below**0.5
    assert found.edge_scale == pytest.approx((root * found.problem.width) ** (-2 / 3), rel=1e-2)


def test_the_edge_passes_no_part_of_the_bulk_that_a_few_samples_make():
    """The tail of r has few nodes: parts of the bulk between which z turns very little."""
    p = Problem(
        activation="erf", target="H1 + 0.6*H2 + 0.66*H3", n=5656, d=22658, width=14759,
        step_exponent=0.3865, step_scale=0.765, ridge=0.1, noise_std=0.3, readout="constant",
    )  # fmt: skip
    edges = []
    for nodes in (14, 20, 40, 80):
        accuracy = replace(FULL, r_nodes=nodes)
        edges.append(right_edge(build_model(p, accuracy).equations(accuracy)).location)
    assert edges == sorted(edges)  # towards the end of the law
    assert edges[0] == pytest.approx(edges[-1], rel=0.04)


def test_solutions_in_a_gap_are_found_where_some_groups_have_negative_traces():
    """Rounding makes the imaginary part of a negative V2 −0, on the other side of a cut."""
    p = Problem(
        activation="softplus", target="H1 + 0.77*H2 - 0.8*H3", n=5298, d=894, width=175,
        step_exponent=0.3647, step_scale=0.966, ridge=0.1, noise_std=0.905, centre=True,
    )  # fmt: skip
    equations = build_model(p).equations(FULL)
    found = equations.on_real_axis(np.linspace(0.85, 0.99, 25))
    assert np.all(found.converged)
    assert not np.any(is_filled(equations, found))
    assert np.all(np.any(found.v2.real < 0.0, axis=1) & np.any(found.v2.real > 0.0, axis=1))


def test_real_numbers_give_the_steps_that_complex_ones_give():
    equations = build_model(problem(readout="gaussian")).equations(FULL)
    place = np.array([1.3 * right_edge(equations).location + 0j])
    near = equations.at(1.01 * place, equations.far(1.01 * place))
    guess = replace(near.real(), z=place)
    real = equations.evaluated(guess)
    assert not np.iscomplexobj(real.state.v2)
    whole = evaluate(equations.samples, guess.state, -place)
    for own, other in zip(newton_and_ridge(real), newton_and_ridge(whole), strict=True):
        for name in ("v2", "chi", "xi"):
            expected = getattr(other, name)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(getattr(own, name), expected, atol=1e-11 * scale)


@pytest.mark.parametrize("changes", [{"n": 581, "d": 686, "width": 222}, {"n": 560, "d": 662}])
def test_an_upper_edge_is_where_the_solution_turns(changes):
    """Not where the way down to it changes over to another solution, beyond the bulk."""
    large = {"target": "H1 + .3627*H2 + .6196*H3", "noise_std": 0.9, "width": 214, "d": 662}
    steps = {"step_exponent": 0.4491, "step_scale": 1.3768}
    first = build_model(problem(**{**large, **steps, **changes}))
    equations = Equations(first.samples)
    edge = right_edge(equations)
    assert abs(edge.turn.slope) < 1e-6 * edge.points[-1].slope
    inside = equations.on_real_axis(np.array([0.999 * edge.location]))
    assert is_filled(equations, inside)[0]
    assert not spectrum(first.problem).is_smoothed


def test_an_edge_is_found_above_a_narrow_part_of_the_bulk():
    """Neighbours have neighbouring edges, those of six to eight groups of neurons to 1e-4."""
    fields = {"activation": "erf", "target": "H1 + .5985*H2 + .6621*H3", "noise_std": 0.3133}
    fields |= {"ridge": 0.1, "step_exponent": 0.3865, "step_scale": 0.7653}
    sizes = ((5656, 22658, 14759), (6346, 25422, 16560))
    edges = []
    for n, d, width in sizes:
        model = build_model(Problem(n=n, d=d, width=width, **fields))
        edges.append(right_edge(Equations(model.samples)).location)
    assert edges == pytest.approx([7.810, 8.031], rel=1e-3)


def test_two_bulks_are_found():
    found = spectrum(untrained("tanh", 20000, 1000, 20000))
    assert len(found.edges) == 2
    # the linear part has d of the N eigenvalues
    assert found.intervals[1].mass == pytest.approx(1000 / 20000, abs=1e-9)
    gap = np.linspace(found.edges[0][1], found.edges[1][0], 9)[1:-1]
    assert np.all(found.density(gap) == 0.0)


def test_a_constant_is_a_spike_of_benaych_georges_and_nadakuditi():
    # |z| has no linear part: F is its mean plus noise, and the spike has a closed form
    p = untrained("abs", 1500, 10**8, 900)
    found = spectrum(p)
    mean, ratio = (2 / np.pi) ** 0.5, p.width / p.n
    noise = 1 - mean**2
    t = mean**2 * p.width / noise
    (spike,) = found.spikes
    assert spike.degree == 0
    assert spike.location == pytest.approx(noise * (1 + t) * (ratio + t) / t, rel=1e-6)
    assert spike.constant_overlap == pytest.approx(1 - (ratio + t) / (t * (t + 1)), abs=1e-6)
    assert max(spike.overlaps) < 1e-4


def test_weights_are_spiked_like_signal_plus_noise():
    p = problem(readout="constant", n_step=10**9, activation="tanh", step_exponent=0.2)
    weights = weights_law(p)
    ratio = p.width / p.d
    assert weights.edges == pytest.approx((ratio**0.5 - 1, ratio**0.5 + 1), rel=1e-4)
    theta = p.width * spiked_weights(p).unit_shift ** 2
    spike = weights.spike
    assert spike.singular_value**2 == pytest.approx((1 + theta) * (ratio + theta) / theta, rel=1e-4)
    # the rows' side has ratio N/d: overlaps as in signal plus noise of variance 1/d
    assert spike.alignment == pytest.approx(1 - (ratio + theta) / (theta * (theta + 1)), abs=1e-4)
    assert spike.readout_alignment == pytest.approx(
        1 - ratio * (1 + theta) / (theta * (theta + ratio)), abs=1e-4
    )
    s = np.linspace(*weights.edges, 4001)
    assert np.trapezoid(weights.density(s), s) == pytest.approx(1.0, abs=1e-3)
    assert solved(problem(step_size=0.0)).weights.spike is None
    whole, alone = solved(problem()).weights, weights_law(problem())
    assert (whole.edges, whole.spike) == (alone.edges, alone.spike)


@pytest.mark.parametrize("width", [500, 1000, 3000])
def test_weights_have_a_bulk_of_mass_one(width):
    weights = weights_law(problem(width=width, step_exponent=0.45))
    low, high = weights.edges
    s = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.linspace(0, np.pi, 2001))
    assert np.trapezoid(weights.density(s), s) == pytest.approx(1.0, abs=1e-4)


def test_spikes_carry_what_the_first_paper_says():
    assert spectrum(problem(step_exponent=0.15)).degrees == (1,)
    gaussian = problem(step_exponent=0.38, readout="gaussian")
    found = solved(gaussian)
    assert found.degrees == (1, 2)
    first, second = found.spikes
    assert first.overlaps[0] > 0.95
    assert second.power_overlaps[1] > 0.8
    assert first.singular_value == pytest.approx(first.location**0.5)
    weight = build_model(gaussian).samples.weight
    for spike in found.spikes:
        total = spike.constant_overlap + sum(spike.overlaps)
        assert 0 < total <= 1.0 + 1e-6
        assert spike.distance == pytest.approx(spike.location / found.edge - 1)
        # the left vector's mean given κ has the same overlaps
        inner = weight @ (spike.function * spike.kappa)
        assert inner**2 == pytest.approx(spike.overlaps[0], abs=1e-4)


@pytest.mark.parametrize("readout", ["constant", "rademacher"])
@pytest.mark.parametrize("activation", ["relu", "tanh", "H1 - H2 + H3"])
def test_a_spikes_function_goes_along_with_what_it_has_most_of(activation, readout):
    asked = problem(step_exponent=0.42, readout=readout, activation=activation)
    weight = build_model(asked).samples.weight
    spikes = spectrum(asked).spikes
    assert spikes
    for spike in spikes:
        along = normalised_hermite(6, spike.kappa) @ (weight * spike.function)
        assert along[np.argmax((spike.constant_overlap, *spike.overlaps))] > 0.3


def test_an_odd_activation_has_no_even_spike():
    found = spectrum(problem(activation="tanh", step_exponent=0.45))
    assert all(spike.degree % 2 == 1 for spike in found.spikes)


def test_an_uncentred_activation_has_a_constant_spike_from_the_start():
    assert solved(problem(centre=False, step_size=0.0)).degrees == (0,)
    large = problem(centre=False, n_step=16000, step_exponent=0.45, readout="gaussian")
    assert spectrum(large).degrees == (0, 1, 2)


def test_degrees_are_read_from_overlaps():
    shifted_square = np.array([0.6, 0.0, 0.38, 0.0, 0.0, 0.0, 0.0])
    line = np.array([0.0, 0.9, 0.0, 0.05, 0.0, 0.0, 0.0])
    constant = np.array([0.95, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert carried_degrees([line, shifted_square], centred=True) == [1, 2]
    assert carried_degrees([constant, line], centred=False) == [0, 1]
    assert carried_degrees([], centred=False) == []
    faint = np.array([0.0, 0.0, 0.02, 0.0, 0.01, 0.0, 0.0])
    assert carried_degrees([line, shifted_square, faint], centred=True) == [1, 2, 4]


def test_a_spike_at_the_edge_is_not_resolved():
    steps = np.linspace(0.05, 0.15, 5)
    seen = spectrum(problem().vary(step_exponent=steps))
    outside = np.isfinite(seen.location.values[:, 0])
    resolved = seen.resolved.values[:, 0]
    assert np.any(outside & ~resolved)
    first = int(np.argmax(outside))
    found = spectrum(problem(step_exponent=float(steps[first])))
    assert found.count == 0
    assert len(found.spikes) == 1
    assert any(note.kind == "unresolved spikes" for note in found.notes)


def test_a_grid_is_followed_and_its_progress_told():
    told = []
    grid = problem().vary(step_exponent=[0.0, 0.2, 0.38], width=[750, 1500])
    seen = spectrum(grid, progress=lambda *done: told.append(done))
    assert told == [(k, 6) for k in range(1, 7)]
    assert seen["count"].values.tolist() == [[0, 0], [1, 1], [2, 2]]
    one = solved(problem())
    assert seen.edge.values[2, 1] == pytest.approx(one.edge, rel=1e-9)
    assert seen.location.values[2, 1] == pytest.approx([s.location for s in one.spikes])
    assert seen.degree.values[2, 1].tolist() == [1, 2]
    assert seen.overlap.dims == ("step_exponent", "width", "spike", "hermite_degree")
    assert set(seen.status.values.ravel()) == {"ok"}


def test_strengths_pass_one_where_spikes_appear():
    assert np.sum(strengths(build_model(problem()), 5) > 1) == 2


@pytest.mark.parametrize("count", [60, 2000, 10**6])
def test_typical_rules_end_early_and_keep_moments(count):
    end = largest_expected(count)
    kappa, weight = truncated_normal(end, 0.25, 1.0, 0.42)
    assert np.abs(kappa).max() < end
    assert np.all(weight > 0)
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    assert weight @ kappa**2 == pytest.approx(1.0, abs=1e-6)
    assert np.array_equal(kappa, -kappa[::-1])
    if count >= 2000:
        assert weight @ kappa**6 == pytest.approx(15.0, rel=5e-3)
        assert weight @ np.tanh(kappa) ** 2 == pytest.approx(
            gauss_hermite(150)[1] @ np.tanh(gauss_hermite(150)[0]) ** 2, abs=1e-5
        )


def test_fluctuating_norms_lift_a_spike_of_steep_activations():
    # Σ_j c_2 H_2(w_j·x) ≈ N c_2(‖x‖²/d − 1): a spike of strength 2c_2²N/d at every n
    wide = untrained("H1 + 2*H2", 4000, 400, 8000)
    assert is_norm_spread_visible(wide)
    assert not is_norm_spread_visible(untrained("tanh", 4000, 400, 8000))
    assert len(spectrum(wide).spikes) == 1


def test_heavy_rows_are_noted():
    heavy = problem(
        activation="H1 + H2/4 + H3/12", n_step=20000, step_exponent=0.42, readout="constant"
    )
    assert "heavy rows" in [note.kind for note in spectrum(heavy).notes]


def test_what_is_learned_and_what_leaves_the_bulk_agree():
    # with a resolved degree-2 spike the network uses it, without one it cannot
    before, after = problem(step_exponent=0.2), problem(step_exponent=0.42)
    assert solved(before).degrees == (1,)
    assert solved(after).degrees == (1, 2)
    assert predict(after).test_error < predict(before).test_error


def test_bad_input_is_refused():
    with pytest.raises(InvalidProblem, match="problem must be a Problem or a Grid"):
        spectrum("relu")


def test_an_oscillation_that_cannot_be_cut_is_refused():
    p = problem(activation="sin", centre=False, n=10**9, d=10**3, width=10**3, step_size=1e6)
    with pytest.raises(NotConverged, match="oscillates"):
        spectrum(p)


def test_spikes_that_are_too_near_to_each_other_are_told():
    near, far = (
        close_spikes_notes(problem(), [103.0, 100.0, 5.0]),
        close_spikes_notes(problem(), [200.0, 100.0, 5.0]),
    )
    assert "two spikes predicted at a relative distance of 0.03" in near[0]
    assert far == close_spikes_notes(problem(), [3.0]) == close_spikes_notes(problem(), []) == ()
