"""Normals by counter in one GPU kernel: the arithmetic of `philox`, without its traffic."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton  # type: ignore[import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, unused-ignore]

BLOCK = 512


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _normals(out, keys, start, rows, columns, half, stride, apart, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    which = tl.program_id(1).to(tl.int64)
    row, column = at // half, at % half
    inside = row < rows
    seed = tl.load(keys + which)
    zero = tl.zeros((BLOCK,), tl.uint32)
    a, b, c, d = tl.philox(
        seed, column.to(tl.uint32), (row + start).to(tl.uint32), zero, zero, n_rounds=10
    )
    a, b, c, d = a.to(tl.uint64), b.to(tl.uint64), c.to(tl.uint64), d.to(tl.uint64)
    unit = 1.1102230246251565e-16  # 2⁻⁵³
    u = ((a >> 5) * 67108864 + (b >> 6)).to(tl.float64) * unit + unit
    v = ((c >> 5) * 67108864 + (d >> 6)).to(tl.float64) * unit
    radius, angle = tl.sqrt(-2.0 * tl.log(u)), 6.283185307179586 * v
    place = out + which * apart + row * stride + column
    kind = out.dtype.element_ty
    tl.store(place, (radius * tl.cos(angle)).to(kind), mask=inside)
    tl.store(
        place + half, (radius * tl.sin(angle)).to(kind), mask=inside & (column + half < columns)
    )


def fill_normals(torch: Any, keys: np.ndarray[Any, Any], start: int, out: Any) -> None:
    """Rows start … of a stream into out (…, rows, columns), on a GPU."""
    rows, columns = out.shape[-2:]
    half = (columns + 1) // 2
    batches = out.numel() // max(1, rows * columns)
    if batches > 1 and out.dim() != 3:
        raise ValueError("one leading axis at most")
    packed = keys.reshape(-1, 2).astype(np.uint64)
    seeds = (packed[:, 0] | (packed[:, 1] << np.uint64(32))).view(np.int64)
    apart = out.stride(0) if out.dim() == 3 else 0
    grid = (triton.cdiv(rows * half, BLOCK), batches)
    on_device = torch.from_numpy(seeds).to(out.device)
    _normals[grid](out, on_device, start, rows, columns, half, out.stride(-2), apart, BLOCK=BLOCK)
