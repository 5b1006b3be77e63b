"""Random numbers by counter, computed where the arrays live: Philox4x32-10 (Salmon et al., 2011).

A number depends on its stream's key, its row and its column alone. So it is the same on every
device, in whatever blocks the rows come and however many machines share them. In plain tensor
operations below, every elementary step runs over a piece of memory; on a GPU with Triton one
kernel does the same arithmetic in registers (`philox_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

Array = Any
Pair = tuple[Array, Array]  # of a law that takes one number of a pair, the other is None
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
LOW = 0xFFFFFFFF
PIECE = {"cpu": 1 << 15, "cuda": 1 << 22}  # pairs at a time: in cache, or long enough for a launch
TAU = 2.0 * np.pi


def words(counter: Pair, key: Pair) -> tuple[Array, Array, Array, Array]:
    """Four words of 32 bits, each in an int64, for a counter (column, row, 0, 0)."""
    c: tuple[Array, Array, Array, Array] = (*counter, 0, 0)
    k = key
    for _ in range(ROUNDS):
        first, second = c[0] * MULTIPLIERS[0], c[2] * MULTIPLIERS[1]  # wrap: 64 bits, as they are
        c = (
            _high(second) ^ c[1] ^ k[0],
            second & LOW,
            _high(first) ^ c[3] ^ k[1],
            first & LOW,
        )
        k = ((k[0] + WEYL[0]) & LOW, (k[1] + WEYL[1]) & LOW)
    return c


def _high(product: Array) -> Array:
    return (product >> 32) & LOW  # the shift keeps the sign


def uniforms(torch: Any, counter: Pair, key: Pair) -> Pair:
    """Two float64 numbers of 53 bits, in (0, 1] and in [0, 1)."""
    a, b, c, d = words(counter, key)
    return _fraction(torch, a, b) + 2.0**-53, _fraction(torch, c, d)


def _fraction(torch: Any, high: Array, low: Array) -> Array:
    """27 bits of one word and 26 of the other: every step is exact in float64."""
    return ((high >> 5) * (1 << 26) + (low >> 6)).to(torch.float64) * 2.0**-53


def normals(torch: Any, u: Array, v: Array) -> Pair:
    """Box and Muller: two independent standard normals."""
    radius, angle = torch.sqrt(-2.0 * torch.log(u)), TAU * v
    return radius * torch.cos(angle), radius * torch.sin(angle)


Transform = Callable[[Any, Array, Array], Pair]


def fill(
    torch: Any,
    keys: np.ndarray[Any, Any],
    start: int,
    out: Array,
    law: Transform,
    *,
    paired: bool = True,
) -> None:
    """Rows start … of a stream into out (…, rows, columns); keys (…, 2) of 32 bits.

    The first half of the columns takes the first number of each pair, the second half the other;
    a law that is not `paired` gives one number for a pair.
    """
    if law is normals and out.is_cuda and out.stride(-1) == 1 and _kernel() is not None:
        _kernel().fill_normals(torch, keys, start, out)
        return
    rows, columns = out.shape[-2:]
    half = (columns + 1) // 2 if paired else columns
    device, where = out.device, {"dtype": torch.int64, "device": out.device}
    pair = torch.from_numpy(keys.astype(np.int64)).to(device)
    key = (pair[..., 0, None, None], pair[..., 1, None, None])
    column = torch.arange(half, **where)
    copies = max(1, out.numel() // max(1, rows * columns))
    step = max(1, PIECE[device.type] // max(1, half * copies))
    for low in range(0, rows, step):
        high = min(rows, low + step)
        row = torch.arange(start + low, start + high, **where)[:, None]
        left, right = law(torch, *uniforms(torch, (column, row), key))
        out[..., low:high, :half] = left
        if half < columns:
            out[..., low:high, half:] = right[..., : columns - half]


@cache
def _kernel() -> Any:
    """The fused kernel's module, or None where Triton is not installed."""
    try:
        import_module("triton")
    except ImportError:
        return None
    return import_module(f"{__package__}.philox_kernel")
