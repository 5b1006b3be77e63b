"""A CUDA device: its generator against the plain arithmetic, then the table of `featurestep bench`.

`python -m benchmarks.gpu_bench FOLDER` also writes the table there, with the machine's name.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from featurestep.bench import bench, grid_of, proportional
from featurestep.core.results import QUANTITIES
from featurestep.simulation import estimate, make_backend, philox, simulate


def seconds(torch: Any, work: Callable[[], object]) -> float:
    work()
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def generator(torch: Any, show: Callable[[str], None]) -> None:
    """Numbers of the kernel, of plain operations on the GPU and of the CPU are the same."""
    keys = np.array([[12, 34], [5, 2**32 - 1]], dtype=np.uint32)
    found = {}
    for name, device in (("kernel", "cuda"), ("plain", "cuda"), ("cpu", "cpu")):
        out = torch.empty((2, 1000, 777), dtype=torch.float64, device=device)
        law = philox.normals if name == "kernel" else lambda *a: philox.normals(*a)
        philox.fill(torch, keys, 10**6, out, law)
        found[name] = out.cpu()
    for name in ("plain", "cpu"):
        gap = float((found["kernel"] - found[name]).abs().max())
        show(f"normals: kernel against {name}: largest gap {gap:.1e}")
    out = torch.empty((20_000, 8000), dtype=torch.float64, device="cuda")
    for name in ("kernel", "plain"):
        law = philox.normals if name == "kernel" else lambda *a: philox.normals(*a)
        taken = seconds(torch, lambda law=law: philox.fill(torch, keys[0], 0, out, law))
        show(f"normals: {name} {out.numel() / taken / 1e9:.3g}e9 a second")


def factorisations(torch: Any, show: Callable[[str], None]) -> None:
    """What the choices between Cholesky, eigenvectors and batches rest on."""
    for shape in ((750, 750), (64, 750, 750), (4000, 4000), (12_000, 12_000)):
        A = torch.randn(shape, dtype=torch.float64, device="cuda")
        A = A @ A.mT + shape[-1] * torch.eye(shape[-1], dtype=torch.float64, device="cuda")
        taken = seconds(torch, lambda A=A: torch.linalg.cholesky_ex(A))
        line = f"cholesky {shape}: {1e3 * taken:.2f} ms"
        if shape[-1] <= 4000 and len(shape) == 2:
            line += f", eigh {1e3 * seconds(torch, lambda A=A: torch.linalg.eigh(A)):.1f} ms"
        if len(shape) == 3:
            loop = lambda A=A: [torch.linalg.cholesky_ex(a) for a in A]  # noqa: E731
            line += f", one by one {1e3 * seconds(torch, loop):.2f} ms"
        show(line)


def against_numpy(show: Callable[[str], None], n: int = 8000) -> None:
    """The same grid, drawn on the host for both, on the GPU and on this machine's cores."""
    options = {"seeds": 1, "n_test": 16_000}
    first = simulate(grid_of(n), **options, device="cuda")
    gpu = simulate(grid_of(n), **options, device="cuda")
    host = simulate(grid_of(n), **options, device="cuda", drawn="host")
    cpu = simulate(grid_of(n), **options)
    gap = max(float(np.max(np.abs(host.values[q] / cpu.values[q] - 1.0))) for q in QUANTITIES)
    show(
        f"6 × 6 grid, n = {n}: cuda {gpu.wall_time:.2f} s (at first {first.wall_time:.2f}), cpu "
        f"{cpu.wall_time:.2f} s: {cpu.wall_time / gpu.wall_time:.1f}× NumPy; drawn on the host "
        f"{host.wall_time:.2f} s, largest relative gap to the CPU {gap:.1e}"
    )


def memory(torch: Any, show: Callable[[str], None]) -> None:
    """The most memory that a run took, against what was promised."""
    for n in (2000, 8000, 16_000):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        promised = estimate(grid_of(n), seeds=1, n_test=16_000, device="cuda").memory
        simulate(grid_of(n), seeds=1, n_test=16_000, device="cuda")
        taken = torch.cuda.max_memory_allocated() - before
        show(
            f"memory of the 6 × 6 grid, n = {n}: {taken / 1e9:.2f} GB, promised at most "
            f"{promised / 1e9:.2f}"
        )


def lanes(torch: Any, show: Callable[[str], None]) -> None:
    """Factorisations for several ridges, one after the other and side by side."""
    shifts = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for size in (3000, 6000, 12_000, 24_000):
        taken = []
        for count in (0, 2, 3):
            backend: Any = make_backend("cuda", "float64")
            backend._lanes = [torch.cuda.Stream() for _ in range(count)]
            A = torch.randn((size, size), dtype=torch.float64, device="cuda")
            A = A @ A.mT / size + torch.eye(size, dtype=torch.float64, device="cuda")
            rhs = [torch.ones((size, 1), dtype=torch.float64, device="cuda")] * len(shifts)
            taken.append(seconds(torch, lambda b=backend, A=A, r=rhs: b.solve(A, shifts, r, False)))
        one, two, three = (1e3 * t for t in taken)
        show(
            f"six ridges, size {size}: {one:.0f} ms in turn, {two:.0f} on 2 lanes, {three:.0f} on 3"
        )


def over_workers(show: Callable[[str], None]) -> None:
    """Rows of one draw over two Dask workers that compute on the GPU."""
    try:
        import distributed
    except ImportError:
        show("Dask: not installed")
        return
    problem = proportional(40_000, d=1000, width=4000)
    options = {"seeds": 1, "n_test": 8000, "device": "cuda"}
    one = simulate(problem, **options)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        two = simulate(problem, **options, scheduler=client)
    gap = max(float(np.max(np.abs(two.values[q] / one.values[q] - 1.0))) for q in QUANTITIES)
    shared = two.record.get("shared", "nothing")
    show(
        f"two Dask workers on the GPU, n = 40000, width = 4000: {two.wall_time:.2f} s (one process "
        f"{one.wall_time:.2f} s), shared: {shared}; largest relative gap {gap:.1e}"
    )


def main(folder: str | None = None) -> None:
    try:
        import torch
    except ImportError:
        print("GPU: torch is not installed (pip install 'featurestep[gpu]')")
        return
    if not torch.cuda.is_available():
        print("GPU: no CUDA device")
        return
    lines: list[str] = []

    def show(line: str) -> None:
        print(line, flush=True)
        lines.append(line)
        if folder is not None:
            (Path(folder) / "gpu.txt").write_text("\n".join(lines) + "\n")

    generator(torch, show)
    factorisations(torch, show)
    lanes(torch, show)
    bench("cuda", show=show)
    against_numpy(show)
    memory(torch, show)
    over_workers(show)


if __name__ == "__main__":
    main(*sys.argv[1:])
