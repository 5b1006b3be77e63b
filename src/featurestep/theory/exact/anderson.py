"""Anderson's acceleration of fixed points, for many problems at once, each with its own history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray

Map = Callable[[FloatArray, IntArray], FloatArray]  # states of some rows ↦ their images
Sweeping = Callable[[int, FloatArray, IntArray], FloatArray]  # the same, by inner sweeps
SWEEPS = 3  # of what is cheap for each of what is dear
_REGULAR = 1e-13
_PATIENCE = 30  # steps without progress


class Fixed(NamedTuple):
    """Where each row stopped, and the change that the undamped map makes there."""

    state: FloatArray  # (B, n)
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def fixed_point(
    image: Map,
    start: FloatArray,
    *,
    scale: FloatArray,
    tolerance: float,
    reach: float = np.inf,
    most: int = 300,
    depth: int = 8,
) -> Fixed:
    """Iterate x = image(x) until the largest change of any component is below the tolerance.

    Components are measured in units of `scale` (B, n). None moves by more than `reach` in one step.
    Rows that have converged are left out.
    """
    rows, weight = len(start), 1.0 / scale
    x = start.copy()
    best = Fixed(start.copy(), np.full(rows, np.inf), np.zeros(rows, dtype=np.intp))
    idle = np.zeros(rows, dtype=np.intp)
    active = np.arange(rows)
    steps: list[FloatArray] = []  # differences of states, and of their changes, newest last
    changes: list[FloatArray] = []
    before: tuple[FloatArray, FloatArray] | None = None
    for iteration in range(most):
        here = x[active]
        f = image(here, active) - here
        worst = np.abs(f * weight[active]).max(axis=1)
        lost = ~np.isfinite(worst)
        worst[lost] = np.inf
        too_far = here[lost]
        if before is not None:
            here[lost], f[lost] = before[0][lost], before[1][lost]
        better = worst < best.residual[active]
        best.state[active[better]] = here[better]
        best.residual[active[better]] = worst[better]
        best.iterations[active] = iteration + 1
        idle[active] = np.where(better, 0, idle[active] + 1)
        if before is not None:
            steps.append(here - before[0])
            changes.append(f - before[1])
            del steps[:-depth], changes[:-depth]
        going = (worst > tolerance) & (idle[active] < _PATIENCE)
        if not going.any():
            break
        move = _move(f, steps, changes, weight[active])
        move[lost] = 0.5 * (too_far - here[lost])
        longest = np.abs(move * weight[active]).max(axis=1, keepdims=True)
        x[active] = here + move * np.minimum(1.0, reach / np.maximum(longest, 1e-300))
        if not going.all():
            active = active[going]
            steps, changes = [s[going] for s in steps], [c[going] for c in changes]
            here, f = here[going], f[going]
        before = here, f
    return best


def robust_fixed_point(
    image: Sweeping,
    start: FloatArray,
    *,
    scale: FloatArray,
    tolerance: float,
    accepted: float,
    reach: float = np.inf,
) -> Fixed:
    """The same for a map that comes with a number of inner sweeps: few of them where many fail."""
    swept = partial(image, SWEEPS)
    found = fixed_point(swept, start, scale=scale, tolerance=tolerance, reach=reach)
    lost = np.flatnonzero(~(found.residual <= accepted))
    if lost.size:
        again = fixed_point(
            lambda states, rows: image(1, states, lost[rows]),
            start[lost],
            scale=scale[lost],
            tolerance=tolerance,
            reach=0.25 * reach,
            most=1500,
            depth=3,
        )
        better = again.residual < found.residual[lost]
        for whole, part in zip(found, again, strict=True):
            whole[lost[better]] = part[better]
    return found


def _move(
    f: FloatArray,
    steps: list[FloatArray],
    changes: list[FloatArray],
    weight: FloatArray,
) -> FloatArray:
    """The way to the state whose change, extrapolated from the history, is the smallest."""
    if not steps:
        return f
    ds, df = np.stack(steps, axis=1), np.stack(changes, axis=1)  # (rows, history, n)
    seen = df * weight[:, None, :]
    size = np.sqrt(np.einsum("bhn,bhn->bh", seen, seen)) + 1e-300
    seen /= size[:, :, None]
    gram = np.matmul(seen, seen.transpose(0, 2, 1))
    index = np.arange(gram.shape[1])
    gram[:, index, index] += _REGULAR
    mix: Any = np.linalg.solve(gram, np.matmul(seen, (f * weight)[:, :, None]))
    return np.asarray(f - np.matmul((mix[:, :, 0] / size)[:, None, :], ds + df)[:, 0])
