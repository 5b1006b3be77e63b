"""Which numerics made a result: the answers of a few probe problems, kept beside the results.

A store keeps, for each task, the answers of small fixed problems as they were when its results were
computed. Who opens the store computes them again. Where they agree to 1e-9 the stored results are
what this version computes, whatever was moved or renamed in its code; where they do not, results
are computed again, and the earlier ones stay readable by the tag of their numerics.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache

from .identity import encode
from .tasks import Task

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
