"""A problem, or what a grid's points share, in words and as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grid import Grid
from ..problem import Problem
from .notes import where
from .tables import cell


def describe(problem: Problem | Grid, without: Sequence[str] = ()) -> list[str]:
    """A problem, or what a grid's points share, in a few lines of words and symbols."""
    varied = {*without, *(problem.varied if isinstance(problem, Grid) else ())}
    base = problem.base if isinstance(problem, Grid) else problem
    given = {name: value for name, value in base.given.items() if name not in varied}
    words = [
        f"{name} {given[name]}" for name in ("activation", "target", "readout") if name in given
    ]
    words += [f"residual {given['residual']}"] if "residual" in given else []
    initial = given.get("initial", "sphere")
    words += [f"initial weights {initial}"] if initial != "sphere" else []
    words += ["centred"] if given.get("centre") else []
    sizes = [
        f"{name} = {cell(getattr(base, name))}"
        for name in ("n", "d", "width", "n_step", "ridge", "noise_std")
        if name in given and not (name == "n_step" and "n" in varied)
    ]
    lines = [", ".join(words), ", ".join(sizes)]
    if not {"n", "d", "width"} & varied:
        lines[1] += f" (φ = {base.phi:.4g}, ψ = {base.psi:.4g})"
    if not {"n", "step_size", "step_exponent", "step_scale"} & varied:
        lines.append(f"step size η = {base.step_size:.5g}; {base.regime}")
    if isinstance(problem, Grid) and problem.fixed:
        lines.append(f"{where(problem.fixed)} at every point")
    return [line for line in lines if line]


def shared_fields(problem: Problem | Grid, without: Sequence[str] = ()) -> dict[str, Any]:
    """The same as values: a problem's fields, or those that a grid's points share."""
    if isinstance(problem, Problem):
        varied, base, fixed = {*without}, problem, dict[str, Any]()
    else:
        varied, base, fixed = {*without, *problem.varied}, problem.base, dict(problem.fixed)
    return {**{n: v for n, v in base.given.items() if n not in varied}, **fixed}
