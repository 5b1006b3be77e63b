"""The spectrum's axes: they stay while the step grows, and hold what is drawn on them."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep.page import figures, panels
from featurestep.page.state import PageState, spectrum_axes
from featurestep.page.words import PRESETS

STATES = {
    "default": PageState(),
    "wide": PageState(phi=0.1, psi=0.05),
    "narrow": PageState(phi=2.0, psi=6.0),
    "tanh": PRESETS["cui"].state,
    "uncentred": PageState(activation="softplus", centre=False),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_axes_do_not_depend_on_the_exponent(state: PageState) -> None:
    moved = [state.replace(step_exponent=a) for a in np.linspace(0.0, 0.5, 11)]
    assert len({spectrum_axes(each) for each in moved}) == 1


def test_in_a_move_of_the_exponent_no_axis_jumps_and_the_second_spike_leaves() -> None:
    """From 0 to 1/2 in drafts, as the page plays it."""
    state, seen, axes = PageState(readout="rademacher", n=2000), [], []
    for exponent in np.linspace(0.0, 0.5, 7):
        at = state.replace(step_exponent=float(exponent))
        data = panels.spectrum(at, draft=True)
        layout = figures.spectrum_figure(at, data)["layout"]
        axes.append((layout["xaxis"]["range"], layout["xaxis"]["ticktext"], layout["meta"],
                     layout["yaxis"]["range"]))  # fmt: skip
        stems = [spike["singular_value"] for spike in data["spikes"]]
        assert all(0.0 < x < 1.0 for x in spectrum_axes(at).place(stems))
        seen.append([spike["degree"] for spike in data["spikes"] if spike["resolved"]])
    assert all(each == axes[0] for each in axes)
    assert seen[0] == []
    assert seen[3] == [1]
    assert seen[-1][:2] == [1, 2]
    firsts = [next(i for i, found in enumerate(seen) if k in found) for k in (1, 2)]
    assert 0 < firsts[0] < firsts[1]
    assert all(1 in found for found in seen[firsts[0] :])


def test_the_axis_is_linear_over_the_bulk_and_logarithmic_beyond() -> None:
    axes = spectrum_axes(PageState())
    bend, right = axes.bend, axes.right
    at = axes.place([0.0, bend / 2, bend, (bend * right) ** 0.5, right])
    assert at[0] == 0.0
    assert at[1] == pytest.approx(at[2] / 2)
    assert at[3] == pytest.approx((at[2] + 1.0) / 2)
    assert at[4] == pytest.approx(1.0)
    assert at[2] > 0.6  # the bulk at full width
    ticks = axes.ticks()
    assert ticks == sorted(set(ticks))
    assert 5 <= len(ticks) <= 11
    far = axes.reaching([3.0 * right], [1.0])
    assert far.right > 3.0 * right
    assert axes.reaching([], [1.5 * axes.top, 0.1]).top > 1.5 * axes.top  # a peak is shown whole
    assert axes.reaching([], [50.0 * axes.top, 0.1]).top == axes.top  # a pole is not
    assert not spectrum_axes(PageState(step="size", step_size=0.0)).is_bent


def test_names_of_near_spikes_stand_one_above_the_other() -> None:
    """The rightmost is the highest: a name that reaches to the left covers no other mark."""
    places = [0.95, 0.85, 0.3]  # from the largest spike to the smallest
    high, middle, alone = figures._name_heights(places)
    assert high > middle == alone
    assert figures._name_heights([]) == []
