"""Rare large entries of F: what they do to the bulk, and how far beyond it they reach."""

from functools import cache

import numpy as np
import pytest

from featurestep import Problem, spectrum
from featurestep.theory.spectra.equations import Equations
from featurestep.theory.spectra.model import build_model


def untrained(n, width, activation="H1 + H2 + H3", **changes):
    sizes = {"n": n, "d": 10**8, "width": width, "step_size": 0.0, **changes}
    return Problem(activation=activation, target="H1", ridge=0.1, **sizes)


law_of = cache(spectrum)


@cache
def independent_entries(n, width, draws=6):
    """Eigenvalues of FᵀF/n for independent entries H1 + H2 + H3 of normal variables."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        z = rng.standard_normal((n, width))
        found.append(np.linalg.svd(z**3 + z**2 - 2 * z - 1, compute_uv=False) ** 2 / n)
    return np.array(found)


@pytest.mark.parametrize(("n", "width"), [(1000, 700), (700, 1000)])
def test_the_bulk_of_independent_heavy_entries(n, width):
    seen, law = independent_entries(n, width), law_of(untrained(n, width))
    assert law.mass == pytest.approx(1.0, abs=1e-9)
    assert law.moment(2) == pytest.approx(law.mean_square, rel=1e-9)
    squares = (seen**2).sum(axis=1) / width
    error = squares.std(ddof=1) / len(squares) ** 0.5
    assert abs(squares.mean() - law.mean_square) < 3 * error
    plain = 81 * (1 + width / n)  # of the plain law of Marchenko and Pastur
    assert abs(squares.mean() - plain) > 6 * error
    places = np.sort(seen.ravel())
    below = (law.cumulative(places) - law.atom) / (1 - law.atom)
    assert np.abs(below - (np.arange(places.size) + 0.5) / places.size).max() < 0.007
    low, high = (9 * (1 + sign * (width / n) ** 0.5) ** 2 for sign in (-1, 1))
    assert law.edges[0][0] < low
    assert law.edge > 1.05 * high


@pytest.mark.parametrize(("n", "width"), [(1000, 700), (700, 1000)])
def test_values_beyond_the_edge_stay_within_the_reach_of_single_entries(n, width):
    law = law_of(untrained(n, width))
    top = independent_entries(n, width)[:, 0]
    assert (
        np.sum(top > law.edge) >= 4
    )  # a margin of a few Tracy–Widom scales would call these spikes
    assert np.all(top < law.edge + law.margin)
    assert law.spikes == ()


def test_light_tails_keep_the_equations_as_they_stand():
    for activation in ("relu", "tanh", "H2", "H3"):
        model = build_model(untrained(1000, 700, activation))
        assert not model.varies
        assert model.samples.step.k.shape[1] == 1


def test_the_correction_fades_with_the_size():
    gaps = []
    for n in (1000, 10_000, 100_000):
        edge = spectrum(untrained(n, n // 2, "H1 + 2*H3")).edge
        gaps.append(edge / (25 * (1 + 0.5**0.5) ** 2) - 1.0)
    assert gaps[0] > 0.03
    assert gaps[0] > 4 * gaps[1] > 0.0
    assert gaps[2] == pytest.approx(0.0, abs=1e-5)  # too small for nodes of its own


@pytest.mark.parametrize("law", ["gaussian", "rademacher", "uniform", "constant"])
def test_every_law_is_split_into_pairs(law):
    problem = Problem(
        activation="H1 + H2 + H3",
        target="H1",
        ridge=0.1,
        n=600,
        d=300,
        width=400,
        step_exponent=0.2,
        readout=law,
    )
    model = build_model(problem)
    step, columns, weight = model.samples.step, model.samples.columns, model.samples.weight
    assert model.varies
    assert step.neurons.sum() == pytest.approx(400)
    assert weight.sum() == pytest.approx(1)
    assert np.array_equal(model.samples.kappa[::2], model.samples.kappa[1::2])
    for values in (step.e, step.norm, step.neurons):
        assert np.array_equal(values[:, ::2], values[:, 1::2])
    low, high = columns.spread[:, ::2], columns.spread[:, 1::2]  # ν² in χ varies with the row
    assert np.all(high > low)
    assert columns.spread_in_v2[:, ::2] == pytest.approx(columns.spread_in_v2[:, 1::2])
    equations = Equations(model.samples, varies=True)
    far = equations.at(np.array([1e6 * equations.size + 0j]), equations.far(np.array([1e9 + 0j])))
    assert far.converged[0]


def test_a_heavy_tailed_bulk_is_resolved_and_says_so():
    problem = untrained(
        2000, 1500, d=1000, readout="uniform", step_size=None, step_exponent=0.1, step_scale=0.3
    )
    law = spectrum(problem)
    told = [note for note in law.notes if "heavy-tailed" in note]
    assert len(told) == 1
    assert law.mass == pytest.approx(1.0, abs=1e-6)
    assert build_model(problem).varies
    assert law.entry_reach > 1.0001 * law.edge
