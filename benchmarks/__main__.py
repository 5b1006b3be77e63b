"""`python -m benchmarks`: every speed table, one after the other."""

from benchmarks import predict_bench, simulate_bench

predict_bench.main()
print()
simulate_bench.main()
