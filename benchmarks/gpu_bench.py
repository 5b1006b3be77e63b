"""The benchmark grid of `simulate_bench` on a CUDA device, beside the same machine's CPU."""

from __future__ import annotations

import numpy as np

from featurestep.simulation import simulate
from featurestep.simulation.network.result import QUANTITIES

from .simulate_bench import BASE, N_TEST, RIDGES, STEP_SIZES


def main() -> None:
    try:
        import torch
    except ImportError:
        print("GPU: torch is not installed (pip install 'featurestep[gpu]')")
        return
    if not torch.cuda.is_available():
        print("GPU: no CUDA device")
        return
    grid = BASE.vary(step_size=STEP_SIZES, ridge=RIDGES)
    print(f"GPU: {torch.cuda.get_device_name()}; grid 12 × 8 at n = {BASE.n}, n_test = {N_TEST}")
    cpu = simulate(grid, seeds=1, n_test=N_TEST)
    print(f"cpu  float64 {cpu.wall_time:8.2f} s {cpu.rate / 1e9:9.1f} Gflop/s")
    for dtype in ("float64", "float32"):
        simulate(BASE, seeds=1, n_test=N_TEST, device="cuda", dtype=dtype)
        gpu = simulate(grid, seeds=1, n_test=N_TEST, device="cuda", dtype=dtype)
        gap = max(
            float(np.max(np.abs(gpu.values[name] / cpu.values[name] - 1.0))) for name in QUANTITIES
        )
        print(
            f"cuda {dtype} {gpu.wall_time:8.2f} s {gpu.rate / 1e9:9.1f} Gflop/s   "
            f"{cpu.wall_time / gpu.wall_time:5.1f}× the CPU   largest relative gap {gap:.1e}"
        )


if __name__ == "__main__":
    main()
