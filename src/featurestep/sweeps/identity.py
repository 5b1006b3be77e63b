"""What a result depends on, in a form that can be hashed: the same content, the same key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..errors import InvalidProblem
from ..functions.activations import NAMED, resolve
from ..functions.nonlinearity import HermiteSum, Nonlinearity
from ..functions.readout import Law
from ..functions.targets import resolve_target, target_formula
from ..functions.teacher import Teacher
from ..problem import Problem

Numerics = str | int  # a fingerprint; the first stores had a number in its place


def describe(problem: Problem, task: str, options: Mapping[str, Any], numerics: Numerics) -> str:
    """Everything that one result depends on, as canonical JSON: the numerics stand first."""
    content = {
        "numerics": numerics,
        "task": task,
        "options": options,
        "problem": problem_content(problem),
    }
    return _encode(content)


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def under(description: str, numerics: Numerics) -> str:
    """The same description with other numerics."""
    _, _, rest = description.partition(",")
    return f'{{"numerics":{_encode(numerics)},{rest}'


def key_of(description: str) -> bytes:
    """The key of a result in the store."""
    return hashlib.sha256(description.encode()).digest()


def problem_content(problem: Problem) -> dict[str, Any]:
    """A problem's fields with every spelling resolved: 'H2 + H1' is 'H1 + H2', 1 is 1.0."""
    if problem.given["step_size"] is None:
        step = {"exponent": problem.step_exponent, "scale": problem.step_scale}
    else:
        step = {"size": problem.step_size}
    return {
        "activation": function_content(problem.activation, "activation"),
        "target": _target_content(problem.target),
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
    return {} if problem.initial == "sphere" else {"initial": problem.initial}


def portable(problem: Problem) -> Problem:
    """The same problem, its functions by name, so that other processes can have it."""
    changes = {}
    for name in ("activation", "target"):
        spec = getattr(problem, name)
        if not isinstance(spec, str):
            _target_content(spec) if name == "target" else function_content(spec, name)
            changes[name] = resolve(spec, name).name
    return problem.replace(**changes) if changes else problem


@lru_cache(maxsize=256)
def function_content(spec: Any, parameter: str) -> str | tuple[float, ...]:
    """A function's name, or the coefficients of a Hermite sum; anything else is refused."""
    if isinstance(spec, (str, Nonlinearity)):
        found = resolve(spec, parameter)
        if NAMED.get(found.name) is found:
            return found.name
        if isinstance(found, HermiteSum) and _same(found, found.name, parameter):
            return tuple(float(c) for c in found.coefficients)
    raise InvalidProblem(
        parameter,
        "must be a name or a Hermite sum in a sweep: a function has no content to tell it by",
        spec,
    )


@lru_cache(maxsize=256)
def _target_content(spec: Any) -> str | tuple[float, ...] | dict[str, str]:
    """The same for a target, which may be a formula in its directions."""
    text = target_formula(spec)
    if text is None:
        if isinstance(spec, Teacher):
            rule = "must be a formula in a sweep: a Teacher has no content to tell it by"
            raise InvalidProblem("target", rule, spec)
        return function_content(spec, "target")
    found = resolve_target(spec)
    if isinstance(found, HermiteSum):
        return tuple(float(c) for c in found.coefficients)
    return {"formula": text}


def _same(found: HermiteSum, text: str, parameter: str) -> bool:
    """Whether a sum is what its own text says."""
    try:
        again = resolve(text, parameter)
    except InvalidProblem:
        return False
    return isinstance(again, HermiteSum) and tuple(again.coefficients) == tuple(found.coefficients)


def _law_content(law: Law) -> str | list[tuple[float, float]]:
    """Finite laws by their pairs, in order: the order decides what a seed draws."""
    if not law.is_finite:
        return law.name
    return list(zip(law.values, law.probabilities, strict=True))
