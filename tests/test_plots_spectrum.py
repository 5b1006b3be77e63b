"""Figures of spectra: what is drawn is what the results say."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from featurestep import InvalidProblem, phase_diagram, simulated_spectrum, spectrum
from featurestep.plots import features, figure_of, overlaps, panels, phase, render, tracks, weights
from featurestep.plots.diagrams import MAX_COLOURED_SPIKES
from featurestep.plots.spectra import degree_colour

from .problems import CENTRED_RELU, known_critical_steps

PROBLEM = CENTRED_RELU.replace(step_exponent=0.44, readout="rademacher")
QUICK = PROBLEM.replace(readout="constant")  # a law of one value has a quick spectrum
LAWS = ["constant", "rademacher"]
pytestmark = pytest.mark.usefixtures("solved_once")


@pytest.fixture(scope="module")
def theory(solved_once):
    return spectrum(PROBLEM)


@pytest.fixture(scope="module")
def untrained(solved_once):
    return spectrum(PROBLEM.replace(step_size=0.0))


@pytest.fixture(scope="module")
def simulated():
    return simulated_spectrum(PROBLEM, seeds=3, variants=("trained", "weights"))


@pytest.fixture(scope="module")
def grid(solved_once):
    return spectrum(PROBLEM.vary(step_exponent=np.linspace(0.0, 0.5, 6)))


@pytest.fixture(scope="module")
def diagram(solved_once):
    return phase_diagram(PROBLEM.vary(step_exponent=[0.1, 0.25, 0.3], readout=LAWS), seeds=1)


def bars(ax):
    (stairs,) = [patch for patch in ax.patches if hasattr(patch, "get_data")]
    return stairs.get_data()


def stems(ax):
    """Places of the predicted spikes: arrows at the axis, at no height that could be a density."""
    marks = [line for line in ax.lines if line.get_marker() == "v"]
    assert all(line.get_transform() == ax.get_xaxis_transform() for line in marks)
    return [line.get_xdata()[0] for line in marks]


def test_features_have_their_density_and_spikes(theory, simulated):
    ax = Figure().subplots()
    assert features(theory, simulated, ax) is ax
    curve = next(line for line in ax.lines if line.get_label() == "predicted")
    expected = theory.singular_density(curve.get_xdata())
    drawn = curve.get_ydata() < ax.get_ylim()[1]
    assert np.allclose(curve.get_ydata()[drawn], expected[drawn])
    assert stems(ax) == [spike.singular_value for spike in theory.spikes]
    texts = [text.get_text() for text in ax.texts]
    shares = [spike.power_overlaps[spike.degree - 1] for spike in theory.spikes]
    assert [text.split("\n")[1] for text in texts] == [f"{share:.2f}" for share in shares]
    assert r"F/\sqrt{n}" in ax.get_xlabel()


def test_the_histogram_is_the_simulated_bulk(theory, simulated):
    heights, ends, _ = bars(features(theory, simulated))
    values = np.sqrt(simulated.eigenvalues("trained"))
    counts = np.histogram(values, ends)[0]
    assert np.allclose(heights, counts / (values.size * np.diff(ends)))
    outside = (values > ends[-1]).sum() / values.size
    assert np.sum(heights * np.diff(ends)) == pytest.approx(1.0 - outside)


def test_far_spikes_stay_in_sight_and_a_bulk_alone_needs_no_log(theory, simulated, untrained):
    far = features(theory, simulated)
    assert far.get_xscale() == "symlog"
    assert "log beyond the bulk" in far.get_xlabel()
    assert far.get_xlim()[1] > max(stems(far))
    middle = far.transAxes.inverted().transform(far.transData.transform((theory.edge**0.5, 0)))
    assert 0.5 < middle[0] < 0.7  # the bulk keeps most of the axis
    assert features(untrained).get_xscale() == "linear"


def test_zeros_are_written_not_drawn():
    wide = PROBLEM.replace(n=100, d=100, width=200)
    found = simulated_spectrum(wide, seeds=1, variants=("trained", "weights"))
    ax = features(spectrum(wide), found)
    assert "50% at 0" in " ".join(text.get_text() for text in ax.texts)
    heights, ends, _ = bars(ax)
    assert np.sum(heights * np.diff(ends)) < 0.51


@pytest.mark.parametrize("width", [100, 300])
def test_weights_have_their_law_and_spike(width):
    problem = PROBLEM.replace(width=width, step_exponent=0.3)
    theory = spectrum(problem)
    found = simulated_spectrum(problem, seeds=2, variants=("trained", "weights"))
    ax = weights(theory, found)
    assert stems(ax) == [theory.weights.spike.singular_value]
    heights, ends, _ = bars(ax)
    assert np.sum(heights * np.diff(ends)) == pytest.approx(1.0, abs=0.06)
    assert f"{theory.weights.spike.alignment:.2f}" in ax.texts[0].get_text()


def test_krylov_simulations_are_drawn_as_well(theory):
    found = simulated_spectrum(PROBLEM, seeds=1, method="krylov")
    heights, ends, _ = bars(features(theory, found))
    assert np.sum(heights * np.diff(ends)) == pytest.approx(1.0, abs=0.03)


def test_overlaps_are_those_of_theory_and_simulation(theory, simulated, untrained):
    ax = overlaps(theory, simulated)
    table = ax.images[0].get_array()
    assert table.shape == (2 * len(theory.spikes), 7)
    first = theory.spikes[0]
    assert np.allclose(table[0], [first.constant_overlap, *first.overlaps])
    assert np.allclose(table[1], simulated.hermite_overlaps("trained").mean(axis=0)[0])
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[:2] == ["1, predicted", "1, simulated"]
    assert overlaps(theory).images[0].get_array().shape == (len(theory.spikes), 7)
    few = overlaps(theory, simulated_spectrum(PROBLEM, seeds=1, top=1)).images[0].get_array()
    assert few.mask[3:].all()  # a spike whose simulated vector was not asked for
    with pytest.raises(InvalidProblem, match="must have spikes"):
        overlaps(untrained)


def test_panels_leave_out_overlaps_where_there_are_no_spikes(theory, simulated, untrained):
    assert len(panels(theory, simulated)) == 3
    assert len(panels(untrained)) == 2


def test_tracks_start_where_spikes_leave_the_bulk(grid):
    steps = known_critical_steps(PROBLEM)
    ax = tracks(grid, steps)
    for degree in (1, 2):
        (line,) = [
            line for line in ax.lines
            if line.get_color() == degree_colour(degree) and line.get_linestyle() == "-"
            and len(line.get_xdata()) > 1
        ]  # fmt: skip
        known = np.isfinite(line.get_ydata())
        assert line.get_xdata()[known][0] == pytest.approx(steps[degree].spike_exponent)
        last = grid.location.values[-1, degree - 1]
        assert line.get_ydata()[-1] == pytest.approx(last**0.5)
    assert [text.get_text() for text in ax.texts if text.get_text().startswith("0.")] == [
        f"{steps[degree].spike_exponent:.3f}" for degree in (1, 2)
    ]
    edge = ax.lines[0]
    assert np.allclose(edge.get_ydata(), grid.edge.values**0.5)
    assert ax.get_yscale() == "log"


def test_tracks_show_simulated_values(grid):
    values = [[], [], [1.6], [2.0], [3.0, 1.7], [5.0, 2.5]]
    ax = tracks(grid, simulated=values)
    (dots,) = [line for line in ax.lines if line.get_label() == "simulated"]
    assert dots.get_ydata().tolist() == [1.6, 2.0, 3.0, 1.7, 5.0, 2.5]
    assert np.allclose(dots.get_xdata(), [0.2, 0.3, 0.4, 0.4, 0.5, 0.5])


def test_tracks_over_other_fields():
    none = tracks(spectrum(QUICK.vary(step_size=[0.0, 0.1])))
    assert none.get_legend() is None
    wide = tracks(spectrum(QUICK.vary(width=[50, 2000])))
    assert wide.get_xscale() == "log"
    named = tracks(spectrum(QUICK.vary(activation=["relu", "gelu"])))
    assert [tick.get_text() for tick in named.get_xticklabels()] == ["relu", "gelu"]
    assert all(line.get_linestyle() == "None" for line in named.lines)


def test_phase_panels_have_the_counts_of_the_dataset(diagram):
    axes = phase(diagram.dataset)
    kinds = ("published", "predicted", "simulated")
    for ax, kind in zip(axes, kinds, strict=True):
        counts = diagram.dataset[f"{kind}_count"].transpose("readout", "step_exponent").values
        drawn = ax.collections[0].get_array()
        assert np.allclose(np.ma.filled(drawn, -1.0), np.nan_to_num(counts, nan=-1.0))
        assert [tick.get_text() for tick in ax.get_yticklabels()] == LAWS
    assert axes[0].collections[0].get_array().mask[:, 1].all()  # the end of an interval
    assert axes[-1].get_xlabel() == r"step exponent $\alpha$"


def test_phase_without_a_field_shows_the_degrees():
    found = phase_diagram(PROBLEM.vary(step_exponent=[0.1, 0.3]))
    published, predicted = phase(found.dataset)
    assert published.collections[0].get_array()[:2].tolist() == [[1, 1], [0, 1]]
    assert len(predicted.get_yticklabels()) == 6


def test_figures_are_reproducible_and_leave_no_state(theory, simulated, grid):
    before = dict(matplotlib.rcParams)
    for draw in (lambda: panels(theory, simulated)[0], lambda: tracks(grid)):
        assert render(figure_of(draw()), "svg") == render(figure_of(draw()), "svg")
    assert dict(matplotlib.rcParams) == before


def test_nothing_is_clipped_at_column_width(theory, simulated):
    axes = panels(theory, simulated)
    figure = figure_of(axes[0])
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for ax in axes:
        box = ax.get_tightbbox()
        assert min(box.x0, box.y0) >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def test_the_colour_bar_of_counts_has_one_colour_for_each(diagram):
    (ax, *_) = phase(diagram.dataset)
    (mesh,) = ax.collections
    assert mesh.get_cmap().N == MAX_COLOURED_SPIKES + 1
    assert mesh.get_clim() == (-0.5, MAX_COLOURED_SPIKES + 0.5)
