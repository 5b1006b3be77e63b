"""The view taken elsewhere: lines of Python and of the shell, and its numbers as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from ..core.problem import Problem
from ..core.results import departing
from .axes import FIELDS, axis_text, base, errors, here
from .figures import AXES
from .state import PageState


def python_lines(state: PageState) -> str:
    """A script that prints the numbers of the current point and those along the axis."""
    name, _, spaced = axis_text(state).partition("=")
    curve_base = "problem"
    lines = ["import numpy as np", "from featurestep import Problem, limit, predict", ""]
    lines.append(f"problem = {_spelled(state.problem)}")
    ours, theirs = state.problem.given, base(state).given
    changes = {k: v for k, v in theirs.items() if v != ours[k] and k != name and v is not None}
    if changes:
        given = ", ".join(f"{key}={value!r}" for key, value in changes.items())
        lines.append(f"base = problem.replace({given})")
        curve_base = "base"
    lines += [
        "result = predict(problem)",
        "print(result.test_error, result.train_loss)",
        f"curve = predict({curve_base}.vary({name}={_values(spaced)}))",
        "print(curve.test_error.values)",
    ]
    if state.over == "exponent" and not departing(state.problem):
        steps = "limit(problem, degree, norm_growth=growth).test_error"
        lines.append("for growth in (False, True):")
        lines.append(f"    print([{steps} for degree in (1, 2, 3)])")
    return "\n".join(lines) + "\n"


def shell_lines(state: PageState) -> str:
    """Commands that print the same numbers as JSON."""
    point, curve = _command(state.problem), _command(base(state), without=FIELDS[state.over])
    lines = [f"{point} --json", f"{curve} --over {axis_text(state)} --json"]
    return "\n".join(lines) + "\n"


def _values(spaced: str) -> str:
    """The axis's values as Python has them."""
    if ":" not in spaced:
        return f"[{spaced.replace(',', ', ')}]"
    *kind, low, high, count = spaced.split(":")
    return f"np.{'geomspace' if kind else 'linspace'}({low}, {high}, {count})"


def _spelled(problem: Problem) -> str:
    """The constructor's call, one field a line; what has its default is left out."""
    defaults = {field.name: field.default for field in fields(Problem)}
    given = {key: value for key, value in problem.given.items() if value != defaults[key]}
    lines = "".join(f"    {key}={value!r},\n" for key, value in given.items())
    return f"Problem(\n{lines})"


def _command(problem: Problem, *, without: str = "") -> str:
    given = problem.given
    words = ["featurestep", "predict"]
    for name, value in given.items():
        unset = value is None or value == () or (name == "step_scale" and value == 1.0)
        if unset or name == without:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name.replace('_', '-')}", _option_text(value)]
    return shlex.join(words)


def _option_text(value: Any) -> str:
    """A value as its option takes it: a list of (eigenvalue, share) as eigenvalue:share,…"""
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, pair)) for pair in value)
    return str(value)


def csv_text(state: PageState, answers: Mapping[str, Any]) -> str:
    """Everything in the errors' panel, one row a point."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    x = AXES[state.over].split(",")[-1].strip()
    names = errors(state)
    writer.writerow(["series", x, *names, *(f"{name}_standard_error" for name in names)])
    point, curve = answers.get("point"), answers.get("curve")
    if isinstance(point, Mapping):
        writer.writerow(["here", here(state), *(point[name] for name in names), "", ""])
    if isinstance(curve, Mapping):
        for row in zip(curve["x"], *(curve[name] for name in names), strict=True):
            writer.writerow(["finite n", *row, "", ""])
    stairs = answers.get("stairs")
    for series, prefix in (("limit with norm growth", ""), ("published limit", "published_")):
        for step in stairs if isinstance(stairs, list) else ():
            for edge in (step["low"], step["high"]):
                values = (step[prefix + name] for name in names)
                writer.writerow([series, edge, *values, "", ""])
    simulated = answers.get("simulated")
    if isinstance(simulated, Mapping):
        columns: Sequence[str] = (*names, *(f"{name}_error" for name in names))
        series = f"simulated n={simulated['n']}"
        for row in zip(simulated["x"], *(simulated[name] for name in columns), strict=True):
            writer.writerow([series, *row])
    return out.getvalue()


def json_text(state: PageState, answers: Mapping[str, Any]) -> str:
    """Every number of the page, with the state and the problem behind it."""
    data = {
        name: {"error": str(answer)} if isinstance(answer, Exception) else answer
        for name, answer in answers.items()
    }
    record = {"state": asdict(state), "problem": dict(state.problem.given), **data}
    return json.dumps(record, allow_nan=False, indent=1, ensure_ascii=False)
