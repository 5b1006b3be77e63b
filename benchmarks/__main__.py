"""`python -m benchmarks`: every speed table, one after the other."""

from benchmarks import gpu_bench, predict_bench, simulate_bench

if __name__ == "__main__":
    predict_bench.main()
    print()
    simulate_bench.main()
    print()
    gpu_bench.main()
