"""What a result depends on, in a form that can be hashed: the same content, the same key.

Which numerics made it: a store keeps, for each task, the answers of small fixed problems as they
were when its results were computed. Who opens the store computes them again. Where they agree to
1e-9 the stored results are what this version computes, whatever was moved or renamed in its code;
where they do not, results are computed again, and the earlier ones stay readable by the tag of
their numerics.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from ..core.covariance import Matrix
from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..functions.activations import NAMED, HermiteSum, resolve
from ..functions.nonlinearity import Nonlinearity
from ..functions.readout import Law
from ..functions.targets import Teacher, resolve_target, target_formula
from .tasks import Task

Numerics = str | int  # a tag; the first stores had a number in its place


def describe(problem: Problem, task: str, options: Mapping[str, Any], numerics: Numerics) -> str:
    """Everything that one result depends on, as canonical JSON: the numerics stand first."""
    content = {
        "numerics": numerics,
        "task": task,
        "options": options,
        "problem": problem_content(problem),
    }
    return encode(content)


encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def under(description: str, numerics: Numerics) -> str:
    """The same description with other numerics."""
    _, _, rest = description.partition(",")
    return f'{{"numerics":{encode(numerics)},{rest}'


def key_of(description: str) -> bytes:
    """The key of a result in the store."""
    return hashlib.sha256(description.encode()).digest()


def problem_content(problem: Problem) -> dict[str, Any]:
    """A problem's fields with every spelling resolved: 'H2 + H1' is 'H1 + H2', 1 is 1.0."""
    step: dict[str, Any]
    if problem.given["step_sizes"]:
        step = {"sizes": problem.step_sizes}
    elif problem.given["step_size"] is None:
        step = {"exponent": problem.step_exponent, "scale": problem.step_scale}
    else:
        step = {"size": problem.step_size}
    return {
        "activation": _content(problem.activation, "activation"),
        "target": _content(problem.target, "target"),
        "n": problem.n,
        "d": problem.d,
        "width": problem.width,
        "n_step": problem.n_step,
        "step": step,
        "ridge": problem.ridge,
        "noise_std": problem.noise_std,
        "readout": _law_content(problem.law),
        "residual": problem.residual,
        "centre": bool(problem.centre),
        **_later_content(problem),
    }


def _later_content(problem: Problem) -> dict[str, Any]:
    """Fields younger than the first stores: told only when not default, so that old keys hold."""
    told = {
        "initial": problem.initial,
        "loss": problem.loss,
        "intercept": bool(problem.intercept),
        "flip": problem.flip,
        "rows": problem.rows,
        "steps": problem.given["steps"],
        "batches": problem.batches,
        "covariance": _covariance_content(problem.covariance),
        "target_exponent": problem.target_exponent,
        "target_mass": problem.target_mass,
        "target_direction": problem.target_direction,
    }
    return {name: value for name, value in told.items() if value != _LATER[name]}


_LATER = {  # defaults
    "initial": "sphere",
    "loss": "square",
    "intercept": False,
    "flip": 0.0,
    "rows": "fresh",
    "steps": 1,
    "batches": "fresh",
    "covariance": None,
    "target_exponent": 0.0,
    "target_mass": None,
    "target_direction": None,
}


def _covariance_content(covariance: Any) -> Any:
    """As it was given; of a matrix its digest."""
    if not isinstance(covariance, Matrix):
        return covariance
    return {"matrix": hashlib.sha256(covariance.values.tobytes()).hexdigest()}


def portable(problem: Problem) -> Problem:
    """The same problem, its functions by name, so that other processes can have it."""
    given = {name: getattr(problem, name) for name in ("activation", "target")}
    names = {name: _text(s, name) for name, s in given.items() if not isinstance(s, str)}
    return problem.replace(**names) if names else problem


@lru_cache(maxsize=256)
def _content(spec: Any, parameter: str) -> str | tuple[float, ...] | dict[str, str | None]:
    """A function's name, the coefficients of a Hermite sum, or a formula in its one spelling."""
    text = _text(spec, parameter).strip()
    if text in NAMED:
        return text
    found = resolve_target(text)
    if isinstance(found, HermiteSum):
        return tuple(float(c) for c in found.coefficients)
    return {"formula": target_formula(text)}


def _text(spec: Any, parameter: str) -> str:
    """How a function is written; what its name does not tell is refused."""
    if isinstance(spec, str):
        return spec
    if isinstance(spec, Nonlinearity) and _is_told(spec, parameter):
        return spec.name
    rule = (
        "must be a name or a Hermite sum in a sweep: a Python function cannot be identified in the "
        "store"
    )
    if isinstance(spec, Teacher):
        rule = "must be a formula in a sweep: a Teacher cannot be identified in the store"
    raise InvalidProblem(parameter, rule, spec)


def _is_told(function: Nonlinearity, parameter: str) -> bool:
    """Whether a function is what its own name says."""
    try:
        again = resolve(function.name, parameter)
    except InvalidProblem:
        return False
    if isinstance(function, HermiteSum) and isinstance(again, HermiteSum):
        return tuple(again.coefficients) == tuple(function.coefficients)
    return again is function


def _law_content(law: Law) -> str | list[tuple[float, float]]:
    """Finite laws by their pairs, in order: the order decides what a seed draws."""
    if not law.is_finite:
        return law.name
    return list(zip(law.values, law.probabilities, strict=True))


TOLERANCE = 1e-9  # relative difference up to which answers are the same
MIN_SCALE = 1e-3  # numbers below are compared as if they had this size
UNSTORED = "unstored"  # numerics of results that are kept in memory only
_NOISE = {"margin": 100.0}  # a numerical derivative: so much less of its difference counts
_ROUNDING = ("solver_residual", "self_check")  # quantities that consist of rounding errors
_TAG_DIGITS = 16  # hexadecimal digits of a tag

Answers = Mapping[str, Mapping[str, float]]  # by probe and quantity


@cache
def answers_of(task: Task) -> Answers:
    """The numbers that a task's probe problems have here and now.

    A probe without an answer has the number `refused`.
    """
    return {
        probe: {"refused": 1.0} if isinstance(found, Exception) else _numbers(found)
        for probe, found in task.answer_probes().items()
    }


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    """What is a finite number; text (notes, methods) may be worded anew."""
    numbers = {
        name: float(value)
        for name, value in values.items()
        if name not in _ROUNDING and hasattr(value, "__float__")
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def difference(answers: Answers, others: Answers) -> float:
    """The largest relative difference of two sets of answers, over the probes that both have.

    Infinite if a quantity is in one of them only, or if they have no probe in common.
    """
    shared = answers.keys() & others.keys()
    if not shared or any(answers[probe].keys() != others[probe].keys() for probe in shared):
        return math.inf
    gaps = [0.0]
    for probe in shared:
        for name, a in answers[probe].items():
            b = others[probe][name]
            gaps.append(abs(a - b) / max(abs(a), abs(b), MIN_SCALE) / _NOISE.get(name, 1.0))
    return max(gaps)


def tag_of(answers: Answers) -> str:
    """The name of numerics, from the answers with which a store meets them first."""
    return hashlib.sha256(encode(answers).encode()).hexdigest()[:_TAG_DIGITS]
