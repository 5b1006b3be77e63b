"""`python -m benchmarks`: every speed table, one after the other."""

from benchmarks import (
    gpu_bench,
    page_bench,
    predict_bench,
    simulate_bench,
    spectrum_bench,
    sweep_bench,
)

if __name__ == "__main__":
    predict_bench.main()
    print()
    simulate_bench.main()
    print()
    spectrum_bench.main()
    print()
    sweep_bench.main()
    print()
    gpu_bench.main()
    print()
    page_bench.main()
