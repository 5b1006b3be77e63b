"""What a result says of its numbers: curves, spikes, datasets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from featurestep import Border, InvalidProblem, Problem, find_spikes, simulated_spectrum, spectrum
from featurestep.functions.nonlinearity import coefficients

pytestmark = pytest.mark.usefixtures("one_blas_thread")
VARIANTS = ("trained", "initial", "weights", "initial_weights")
BASE = Problem(
    n=300, d=150, width=220, ridge=0.01, step_exponent=0.4, target="H1 + H2/sqrt(2)", noise_std=0.1,
    readout="rademacher",
)  # fmt: skip


def bulk_edge(p):
    """Right edge of the untrained network's bulk (theory, section 3, at λ = −z).

    The scalar equation gives z as a function of δ; the edge is its first minimum beyond −0.
    """
    c = coefficients(p.sigma, 1)
    c1, rest = c[1] ** 2, p.sigma.second_moment - c[0] ** 2 - c[1] ** 2
    ratio, phi = p.width / p.n, p.phi

    def z(delta):
        B = ratio * c1 / ((1 + delta) * phi)
        middle = c1 + rest - delta * B
        t1 = (-middle + np.sqrt(middle**2 + 4 * rest * B * delta)) / (2 * rest * B)
        return -(1 - ratio * delta / (1 + delta)) / t1

    grid = -np.geomspace(1e-6, 0.9999, 4000)
    with np.errstate(invalid="ignore"):
        values = np.array([z(delta) for delta in grid])
    k = int(np.argmax(~(np.diff(values) < 0)))
    ends = (grid[k + 1], grid[k - 1])
    return minimize_scalar(z, bounds=ends, method="bounded", options={"xatol": 1e-12}).fun


@pytest.fixture(scope="module")
def law():
    return spectrum(BASE)


@pytest.fixture(scope="module")
def untrained():
    return spectrum(BASE.replace(step_size=0.0, step_exponent=None))


@pytest.fixture(scope="module")
def found(law, untrained):
    borders = {"trained": law.border, "initial": untrained.border}
    return simulated_spectrum(BASE, seeds=3, variants=VARIANTS, border=borders)


def test_cumulative_is_the_share_up_to_x(found):
    values = found.eigenvalues("trained")
    x = np.array([-1.0, 0.0, 0.1, 1.0, 5.0, 1e6])
    shares = np.array([[np.mean(row <= at) for at in x] for row in values])
    curve = found.cumulative(x, "trained")
    np.testing.assert_allclose(curve.mean, shares.mean(axis=0), atol=1e-12)
    error = shares.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(curve.standard_error, error, atol=1e-12)
    np.testing.assert_array_equal(curve.resolution, 0.0)


def test_zeros_are_counted():
    wide = simulated_spectrum(BASE.replace(width=400), seeds=1)
    assert wide.zeros() == 100
    assert wide.eigenvalues().shape == (1, 300)
    below = wide.eigenvalues().min() / 2
    np.testing.assert_allclose(wide.cumulative([-1e-9, 0.0, below]).mean, [0.0, 0.25, 0.25])
    assert np.all(np.isnan(wide.cumulative([1.0]).standard_error))  # one draw has no error bar


def test_density_is_a_sum_of_gaussians(found):
    values = found.eigenvalues("initial")
    x, width = np.array([0.2, 0.7, 1.5]), 0.1
    kernel = np.exp(-0.5 * ((x[:, None] - values[:, None, :]) / width) ** 2)
    expected = kernel.mean(axis=2) / (width * np.sqrt(2 * np.pi))
    curve = found.density(x, "initial", width=width)
    np.testing.assert_allclose(curve.mean, expected.mean(axis=0), rtol=1e-12)
    own = found.density(x, "initial")
    point = 0.02 * np.quantile(values, 0.99)
    near = found.density(x, "initial", width=point)
    np.testing.assert_allclose(own.mean, near.mean, rtol=0.02)


def test_few_neurons_have_a_density_too() -> None:
    """The largest of 50 eigenvalues is more than the last per cent, which gives the width."""
    sizes = {"n": 80, "d": 40, "width": 50, "ridge": 0.1, "step_exponent": 0.3}
    problem = Problem(activation="relu", target="H1", readout="constant", **sizes)
    for seed in range(6):
        found = simulated_spectrum(problem, seeds=[seed])
        assert np.all(found.density([0.1, 0.5, 1.0]).mean > 0.0)


def test_spikes_of_trained_and_untrained_networks(found):
    trained, initial = found.spikes("trained"), found.spikes("initial")
    for seed, spikes in enumerate(trained):
        beyond = found.eigenvalues("trained")[seed] > spikes.border.place
        assert spikes.count == np.count_nonzero(beyond) >= 1
        np.testing.assert_array_equal(spikes.locations, found.eigenvalues("trained")[seed][beyond])
        np.testing.assert_allclose(spikes.singular_values**2, spikes.locations)
        assert spikes.overlaps.shape == (spikes.count, 13)
        assert spikes.overlaps[0, 1] > 0.8  # the first spike carries H_1
        assert spikes.complete
    assert [spikes.count for spikes in initial] == [0, 0, 0]
    with pytest.raises(InvalidProblem, match="border must be given for the spikes of weights"):
        found.spikes("weights")


def test_spikes_of_weights_and_of_few_values(law, untrained):
    edge = (1.0 + np.sqrt(BASE.width / BASE.d)) ** 2
    weights = untrained.weights
    assert weights.border.edge == pytest.approx(edge)
    # the step's remainder widens W's bulk
    borders = {
        "weights": Border(1.5 * edge, weights.border.margin),
        "initial_weights": weights.border,
    }
    result = simulated_spectrum(BASE, seeds=2, variants=VARIANTS, border=borders)
    for seed, spikes in enumerate(result.spikes("weights")):
        assert spikes.count == 1
        assert result.direction_overlaps()["beta"][seed, 0] > 0.8
    assert [spikes.count for spikes in result.spikes("initial_weights")] == [0, 0]
    one = simulated_spectrum(BASE, seeds=1, border=law.border, method="krylov", top=1)
    assert one.spikes()[0].count == 1
    assert not one.spikes()[0].complete


def test_find_spikes():
    border = Border(4.0, 0.5)
    spikes = find_spikes([1.0, 4.0, 4.45, 4.55, 9.0], border)
    np.testing.assert_allclose(spikes.locations, [9.0, 4.55])
    assert spikes.border == border
    assert find_spikes([], border).count == 0
    with pytest.raises(InvalidProblem, match="values must be a list of finite numbers"):
        find_spikes([[1.0]], border)
    with pytest.raises(InvalidProblem, match="border must be a Border"):
        find_spikes([1.0], 4.0)
    with pytest.raises(InvalidProblem, match="edge must be > 0"):
        Border(0.0, 1.0)
    with pytest.raises(InvalidProblem, match="margin must be >= 0"):
        Border(1.0, float("nan"))
    with pytest.raises(InvalidProblem, match="border must be a Border"):
        simulated_spectrum(BASE, seeds=1, border=4.0)
    with pytest.raises(InvalidProblem, match="border must name some of trained"):
        simulated_spectrum(BASE, seeds=1, border={"initial": border})


def test_a_predicted_and_a_simulated_spike_are_the_same_thing(found, law):
    """One place: what theory calls resolved lies beyond the border at which draws are counted."""
    assert found.borders["trained"] == law.border
    assert law.border.place == law.edge + law.margin
    assert [s.resolved for s in law.spikes] == [s.location > law.border.place for s in law.spikes]
    beyond = (found.eigenvalues("trained") > law.edge + law.margin).sum(axis=1)
    assert [spikes.count for spikes in found.spikes("trained")] == beyond.tolist()
    lower = Border(0.5 * law.edge, 0.0)
    counts = [spikes.count for spikes in found.spikes("trained", lower)]
    assert counts == (found.eigenvalues("trained") > lower.place).sum(axis=1).tolist()


def test_draws_have_no_margin_of_their_own():
    """With 6 units of independent entries as the margin the same draws had one spike each."""
    p = Problem(
        activation="relu", centre=True, target="H1 + H2/sqrt(2)", readout="rademacher", n=300,
        d=900, width=60, n_step=1200, step_exponent=0.25, noise_std=0.1, ridge=0.01,
    )  # fmt: skip
    law = spectrum(p)
    drawn = simulated_spectrum(p, seeds=4, border=law.border)
    beyond = (drawn.eigenvalues() > law.edge + law.margin).sum(axis=1).tolist()
    assert [spikes.count for spikes in drawn.spikes()] == beyond == [2, 2, 1, 1]


def test_the_margin_of_weights_is_the_scale_of_independent_entries():
    """Johnstone's centring and scaling: σ_np = (√n + √N)(1/√n + 1/√N)^(1/3), over n."""
    p = BASE.replace(step_size=0.0, step_exponent=None, d=700, width=300)
    scale = (700**0.5 + 300**0.5) * (700**-0.5 + 300**-0.5) ** (1 / 3) / 700
    assert spectrum(p).weights.border.margin == pytest.approx(3 * scale, rel=1e-6)


def test_dataset(found):
    data = found.dataset
    assert data.singular_value.dims == ("variant", "seed", "rank")
    assert list(data.variant.values) == ["trained", "initial"]
    assert list(data.weight_variant.values) == ["weights", "initial_weights"]
    expected = found.hermite_overlaps("initial")
    np.testing.assert_array_equal(data.hermite_overlap.sel(variant="initial"), expected)
    top = data.singular_value.sel(variant="trained") ** 2
    np.testing.assert_allclose(top, data.eigenvalue.sel(variant="trained")[:, :10])
    assert data.power_overlap.sel(power=3).shape == (2, 3, 10)
    beta = found.direction_overlaps("weights")["beta"]
    np.testing.assert_array_equal(data.weight_beta_overlap.sel(weight_variant="weights"), beta)
    assert "trained: dense" in data.attrs["method"]
    assert data.attrs["notes"] == "none"
    spread = data.singular_value.std("seed", ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(found.standard_error.singular_value, spread)
    np.testing.assert_allclose(found.mean.singular_value, data.singular_value.mean("seed"))
    assert "trained (dense)" in str(found)


def test_dataset_of_the_krylov_route():
    result = simulated_spectrum(BASE, seeds=1, method="krylov")
    assert "eigenvalue" not in result.dataset
    assert result.dataset.singular_value.shape == (1, 1, 10)
    with pytest.raises(InvalidProblem, match="method must be dense for all eigenvalues"):
        result.eigenvalues()
    with pytest.raises(InvalidProblem, match="seeds must be >= 2"):
        _ = result.standard_error


def test_wrong_questions(found):
    for ask in (found.eigenvalues, found.singular_values, found.spikes, found.hermite_overlaps):
        with pytest.raises(InvalidProblem, match="variant must be one of trained, initial"):
            ask("srf")
    with pytest.raises(InvalidProblem, match="variant must be a variant of the features here"):
        found.hermite_overlaps("weights")
    with pytest.raises(InvalidProblem, match="variant must be weights or initial_weights here"):
        found.direction_overlaps("trained")
    with pytest.raises(InvalidProblem, match="x must be finite numbers"):
        found.cumulative([np.nan])
    with pytest.raises(InvalidProblem, match="width must be > 0"):
        found.density([1.0], width=0.0)


@pytest.mark.slow
def test_an_untrained_network_seldom_passes_the_margin():
    """Fewer than 1 % of draws, over activations with and without c_2 and three aspect ratios."""
    passed, draws = 0, 0
    for activation, width in (("tanh", 150), ("tanh", 400), ("relu", 150), ("relu", 40)):
        p = Problem(
            n=200, d=100, width=width, ridge=0.1, step_size=0.0, activation=activation, centre=True
        )
        border = spectrum(p).border
        assert border.edge == pytest.approx(bulk_edge(p), rel=0.02)
        found = simulated_spectrum(p, seeds=300, variants=("initial",), border=border, top=1)
        counts = [spikes.count for spikes in found.spikes()]
        passed, draws = passed + np.count_nonzero(counts), draws + len(counts)
    assert passed < 0.01 * draws
