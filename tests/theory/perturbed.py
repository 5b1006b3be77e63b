"""Terms of the exact theory, multiplied: what a test must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from featurestep.theory.exact import (
    columns,
    degrees,
    dyson,
    errors,
    fixed_point,
    regression,
    solve,
    step,
)

Patch = Callable[[pytest.MonkeyPatch, float], None]


def _step(*names: str) -> Patch:
    """Constants of the step."""

    def patch(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        build = solve.build_step

        def changed(*args: Any, **kwargs: Any) -> Any:
            found = build(*args, **kwargs)
            return replace(found, **{name: factor * getattr(found, name) for name in names})

        monkeypatch.setattr(solve, "build_step", changed)

    return patch


def _scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *args, **options: factor * function(*args, **options)


def _result(module: Any, *names: str) -> Patch:
    """What functions of a module return."""

    def patch(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        for name in names:
            function = getattr(module, name)
            monkeypatch.setattr(module, name, _scaled(function, factor))

    return patch


def _demand(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    demand = fixed_point.Evaluation.demand

    def found(self: Any) -> Any:
        changed = demand.func(self) + (factor - 1.0) * self.degrees
        return self.state.v2 * self.samples.step.neurons / changed

    monkeypatch.setattr(fixed_point.Evaluation, "mapped_v2", property(found))


def _own(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    special = dyson.directions_response
    monkeypatch.setattr(
        dyson, "directions_response", lambda g, second, xi: special(g, factor * second, xi)
    )


def _row_norms(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Deviations of the norms of Gaussian rows from 1."""
    split = step._split_by_norm

    def changed(*args: Any) -> Any:
        groups, norms = split(*args)
        return groups, 1.0 + factor * (norms - 1.0)

    monkeypatch.setattr(step, "_split_by_norm", changed)


def _columns(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    find = columns.anisotropy

    def changed(step: Any) -> columns.Anisotropy:
        return columns.Anisotropy(*(factor * part for part in find(step)))

    monkeypatch.setattr(columns, "anisotropy", changed)


def first_guess(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Where the search for V2 starts."""
    _result(fixed_point, "noise_only")(monkeypatch, factor)


TERMS: dict[str, Patch] = {
    "shift (3)": _step("shift"),
    "norm (4)": _step("norm"),
    "turn by S (19)": _step("k"),
    "noise (21)": _step("delta"),
    "t_matrix (22)": _result(fixed_point, "t_matrix"),
    "degrees (23)": _demand,
    "own overlap (24)": _own,
    "norms along weights (26a)": _step("norm_on_weights"),
    "norms along noise (26b)": _step("norm_on_noise"),
    "norms by chance (27)": _step("norm_variance"),
    "covariance (28)": _result(regression, "field_covariance"),
    "Gram (29)": _result(regression, "gram", "radial_gram"),
    "sample norms (29)": _step("sample_norm"),
    "finite d (37)": _columns,
    "initial norms (38)": _step("norm_slope", "shift_slope"),
}


def _property(name: str) -> Patch:
    """A property of the evaluation of the fixed point."""

    def patch(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        find = getattr(fixed_point.Evaluation, name).func
        changed = property(lambda self: factor * find(self))
        monkeypatch.setattr(fixed_point.Evaluation, name, changed)

    return patch


def _field(module: Any, function: str, name: str) -> Patch:
    """A field of what a function returns."""

    def patch(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        find = getattr(module, function)

        def changed(*args: Any, **kwargs: Any) -> Any:
            found = find(*args, **kwargs)
            return replace(found, **{name: factor * getattr(found, name)})

        monkeypatch.setattr(module, function, changed)

    return patch


def _information(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    evaluate = fixed_point.evaluate

    def changed(samples: Any, state: Any, ridge: Any = None) -> Any:
        found = evaluate(samples, state, ridge)
        information = factor * found.information
        blocks = fixed_point.bulk_blocks(samples.step, state.xi, information)
        return replace(found, information=information, blocks=blocks)

    monkeypatch.setattr(fixed_point, "evaluate", changed)


def _parts(name: str) -> Patch:
    """Columns of fields."""

    def patch(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        find = getattr(degrees.FieldColumns, name)

        def changed(self: Any) -> Any:
            return [degrees.Parts(*(factor * part for part in field)) for field in find(self)]

        monkeypatch.setattr(degrees.FieldColumns, name, changed)

    return patch


def _norms(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    find = degrees.NormsInBlock.covariance.func
    monkeypatch.setattr(
        degrees.NormsInBlock, "covariance", property(lambda self: factor * find(self))
    )


def _own_shift(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    find = columns.own_shift

    def changed(*args: Any) -> Any:
        found = find(*args)
        return found._replace(plain=factor * found.plain, rest=factor * found.rest)

    monkeypatch.setattr(columns, "own_shift", changed)


HIGHER_TERMS: dict[str, Patch] = {
    "initial norms (143)": _row_norms,
    "dimension (134)": _result(degrees, "dimension"),
    "radial factor (135)": _result(degrees.Tables, "_radial"),
    "μ (136)": _result(degrees.Tables, "slope"),
    "tables of blocks (136)": _result(degrees.Tables, "of_degree"),
    "noise (137)": _result(degrees.Tables, "spread"),
    "coordinates along κ (138)": _result(degrees.Tables, "along_kappa"),
    "fields of degree 2 (140)": _parts("square"),
    "fields of degree 3 (142)": _parts("cube"),
    "norms in the block (149)": _norms,
    "own shift (151)": _own_shift,
}

SECTION_3: dict[str, Patch] = {
    "(7) χ": _property("mapped_chi"),
    "(8) V̂1": _information,
    "(8) V̂2": _field(solve, "build_columns", "spread_in_v2"),
    "(9) V1": _field(fixed_point, "bulk_blocks", "phi_phi"),
    "(10) V2": _property("demand"),
    "(11) learned function": _result(regression, "solved"),
    "(12) E0": _result(regression, "misfit"),
    "(13) v": _result(errors, "fluctuations"),
    "(14) errors": _field(solve, "solve_errors", "train_by_kappa"),
    "(15) P": _field(solve, "solve_errors", "readout_squares"),
}
