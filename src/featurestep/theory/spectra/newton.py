"""Newton's steps for (7)–(10) at complex λ, and what tells a step that went astray."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ...types import FloatArray
from ..batch import SHARED, Batch
from ..response import Point, respond
from .branch import Branch, ComplexArray


def repeated(batch: Batch, count: int) -> dict[str, Any]:
    """The batch's arrays as those of so many problems."""
    values: dict[str, Any] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if field.name not in SHARED and value is not None:
            value = np.broadcast_to(value, (count, *value.shape[1:]))
        values[field.name] = value
    return values


def real(values: ComplexArray) -> ComplexArray:
    """Without the imaginary part, as complex numbers."""
    return np.asarray(values.real.astype(np.complex128))


def newton_step(point: Point) -> tuple[ComplexArray, ComplexArray]:
    """Newton's step for (7)–(10) at fixed z."""
    right = point.demand * (1.0 - point.demand / point.batch.neurons)
    return answer(point, right, change=point.mapped_chi - point.chi, newton=True)


def answer(
    point: Point, right: ComplexArray, *, newton: bool, change: ComplexArray | None = None
) -> tuple[ComplexArray, ComplexArray]:
    """The linear response; not finite where it is singular."""
    source = np.zeros_like(point.chi) if change is None else change
    with np.errstate(all="ignore"):
        try:
            x, p = respond(point, source, right, newton=newton)
        except np.linalg.LinAlgError:
            return np.full_like(point.chi, np.nan), np.full_like(point.v2, np.nan)
    return np.asarray(x), np.asarray(p)


def damping(p: ComplexArray) -> FloatArray:
    """No V2 changes by more than half of itself in one step, (B, 1)."""
    largest = np.abs(p).max(axis=1, keepdims=True)
    return np.asarray(np.minimum(1.0, 0.5 / np.maximum(largest, 1e-300)))


def halfway(high: FloatArray, low: FloatArray) -> FloatArray:
    """A height between two, by their ratio where neither is 0."""
    return np.where(low > 0.0, np.sqrt(np.maximum(high * low, 0.0)), 0.1 * high)


def jumped(start: Branch, found: Branch) -> npt.NDArray[np.bool_]:
    """Whether the imaginary part vanished at once: another, real solution was met."""
    before, after = (np.abs(branch.v2.sum(axis=1).imag) for branch in (start, found))
    gone = after < 1e-3 * before
    return np.asarray(gone & (before > 1e-4 * np.abs(start.v2.sum(axis=1))))


def is_physical(branch: Branch) -> npt.NDArray[np.bool_]:
    """Im V2 ≥ 0 up to rounding."""
    floor = -1e-9 * np.abs(branch.v2)
    return np.asarray(np.all(branch.v2.imag >= floor, axis=1))
