"""Scalar, grid, sweep and critical steps give the same spectrum."""

from __future__ import annotations

import random
from importlib import import_module

import numpy as np
import pytest

from featurestep import (
    FeaturestepError,
    NotConverged,
    Problem,
    Spectrum,
    critical_steps,
    spectrum,
    sweep,
)
from featurestep.functions.quadrature import gauss_hermite
from featurestep.theory.spectra import DRAFT, solve_spectrum
from featurestep.theory.spectra.model import build_model

SOLVE = import_module("featurestep.theory.spectra.solve")
CUBIC = {"activation": "H1 + H2 + H3", "target": "H1", "n": 2000, "d": 1000, "width": 1500}
SIDES = (0.995, 1.005)
LAWS = ("constant", "rademacher") * 3 + ("uniform", "gaussian")  # continuous ones take longest


def random_problem(rng: random.Random, laws: tuple[str, ...]) -> Problem:
    n = round(10 ** rng.uniform(2.5, 4.0))
    full = rng.random() < 0.15  # which needs a centred activation where the law has a mean
    return Problem(
        activation=rng.choice(("relu", "tanh", "erf", "H1 + H2/4", "softplus")),
        centre=full or rng.random() < 0.6,
        target=rng.choice(("H1", "H1 + H2/sqrt(2)", "tanh")),
        readout=rng.choice(laws),
        residual="full" if full else "labels",
        n=n,
        d=round(n * 10 ** rng.uniform(-0.7, 0.5)),
        width=round(n * 10 ** rng.uniform(-0.7, 0.5)),
        n_step=round(n * 10 ** rng.uniform(-0.3, 1.0)),
        step_exponent=rng.uniform(0.0, 0.45),
        noise_std=rng.choice((0.0, 0.3)),
        ridge=0.1,
    )


def tried(problem: Problem) -> Spectrum | None:
    try:
        return spectrum(problem)
    except FeaturestepError:
        return None


def check_grid(problem: Problem, steps: tuple[float, ...]) -> None:
    """A grid's numbers are those of each problem by itself, to the last bit."""
    grid = problem.vary(step_exponent=steps)
    seen = spectrum(grid)
    for row, each in enumerate(grid):
        alone, here = tried(each), seen.isel(step_exponent=row)
        if alone is None:
            assert here.status.item() != "ok"
            assert np.isnan(here.edge)
            continue
        assert here.status.item() == "ok"
        assert here.edge.item() == alone.edge
        assert here.margin.item() == alone.margin
        assert here["count"].item() == alone.count
        assert here.notes.item() == "\n".join(alone.notes)
        many = len(alone.spikes)
        assert np.isnan(here.location.values[many:]).all()
        assert here.location.values[:many].tolist() == [s.location for s in alone.spikes]
        assert here.degree.values[:many].tolist() == [s.degree for s in alone.spikes]
        assert here.resolved.values[:many].tolist() == [s.resolved for s in alone.spikes]
        assert here.overlap.values[:many].tolist() == [list(s.overlaps) for s in alone.spikes]


def check_critical(problem: Problem, degrees: int = 3) -> int:
    """Just below a critical step there is one spike less than just above; how many there are."""
    steps = [step.spike_step for step in critical_steps(problem, degrees=degrees)]
    known = sorted(step for step in steps if step is not None)
    for step in known:
        below, above = (tried(problem.replace(step_size=side * step)) for side in SIDES)
        if below is not None and above is not None:
            assert len(above.spikes) == len(below.spikes) + 1
    return len(known)


def test_a_grid_has_the_numbers_of_each_problem() -> None:
    rng = random.Random(5)
    for law in ("constant", "rademacher"):
        check_grid(random_problem(rng, (law,)), (0.0, 0.35))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_two_hundred_points_of_grids_have_the_numbers_of_each_problem(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        problem = random_problem(rng, LAWS)
        check_grid(problem, tuple(rng.uniform(0.0, 0.45) for _ in range(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("law", "exponent"), [("uniform", 0.42), ("gaussian", 0.45)])
def test_a_heavy_tailed_bulk_is_the_same_in_a_grid(law: str, exponent: float) -> None:
    problem = Problem(**CUBIC, readout=law, step_exponent=exponent, ridge=0.1)
    check_grid(problem, (exponent,))


def test_a_critical_step_has_the_corrections_of_the_spectrum() -> None:
    problem = Problem(
        activation="0.2*H1 + 0.4*H3", target="H1", readout="constant", n=4000, d=400, width=3000,
        n_step=40000, step_size=1.0, ridge=0.1,
    )  # fmt: skip
    assert check_critical(problem, degrees=1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_critical_steps_are_where_spectra_gain_a_spike(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check_critical(random_problem(rng, LAWS)) for _ in range(2)) >= 2


@pytest.mark.parametrize("critical", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_everything_takes_the_smoothed_bulk_where_it_is_not_resolved(
    critical: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(
        activation="relu", target="H1 + H2/sqrt(2)", readout="rademacher", n=800, d=400,
        width=600, n_step=800, step_exponent=0.42, noise_std=0.5, ridge=0.1, centre=True,
    )  # fmt: skip
    usual = spectrum(problem)

    def fail(*_: object) -> None:
        raise NotConverged("a part was lost")

    monkeypatch.setattr(SOLVE, "bulk", fail)
    other = spectrum(problem)
    assert usual.entry_reach > usual.edge
    assert (other.edge, other.entry_reach) == (usual.edge, usual.entry_reach)
    assert other.is_smoothed
    assert not usual.is_smoothed
    seen = spectrum(problem.vary(step_exponent=[0.42]))
    swept = sweep(problem, tasks=["spectrum"], engine="serial")
    assert seen.edge.item() == swept.spectrum_edge.item() == other.edge
    assert seen["count"].item() == swept.spectrum_count.item() == other.count
    if critical:
        assert check_critical(problem, degrees=1) == 1


def test_a_step_onto_a_singular_matrix_is_one_too_far() -> None:
    """On its way to the edge Newton's method met a matrix without an inverse."""
    problem = Problem(
        n=701, d=2209, width=902, n_step=606, step_exponent=0.4079671424539024, ridge=0.1,
        noise_std=0.3, readout="rademacher", centre=True,
    )  # fmt: skip
    found = spectrum(problem)
    assert found.count == 1
    assert found.edge == pytest.approx(2.141389, rel=1e-6)


def test_a_model_is_frozen() -> None:
    model = build_model(Problem(**CUBIC, readout="constant", step_exponent=0.2, ridge=0.1))
    with pytest.raises(AttributeError):
        model.varies = False  # type: ignore[misc]


def test_a_law_of_many_values_is_close_to_the_law_they_stand_for() -> None:
    """Eleven values of a Gauss rule: few groups for the bulk and all of them for the spikes."""
    g, share = gauss_hermite(11)
    usual = {
        "activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)", "ridge": 0.1,
        "n": 800, "d": 400, "width": 600, "n_step": 1600, "step_exponent": 0.3,
    }  # fmt: skip
    law = tuple(zip(map(float, g), map(float, share), strict=True))
    many, continuous = (spectrum(Problem(**usual, readout=r)) for r in (law, "gaussian"))
    assert many.edge == pytest.approx(continuous.edge, rel=1e-3)
    assert many.location == pytest.approx(continuous.location, rel=1e-2)


def test_a_draft_is_close_to_the_full_spectrum() -> None:
    problem = Problem(
        activation="relu", centre=True, target="H1 + H2/sqrt(2)", readout="rademacher",
        n=800, d=400, width=600, step_exponent=0.3, ridge=0.1,
    )  # fmt: skip
    draft, full = solve_spectrum(problem, DRAFT)[1], spectrum(problem)
    assert [spike.resolved for spike in draft.spikes] == [s.resolved for s in full.spikes]
    assert draft.edge == pytest.approx(full.edge, rel=1e-3)
    assert {note.kind for note in draft.notes} - {"rough density"} <= {n.kind for n in full.notes}
