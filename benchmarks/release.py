"""How long a whole release takes on 117 million households in 3,144 counties, and that groups cost nothing."""

import resource
import time

import benchmarks
from tallytree import ConfidentialCounts, release
from tallytree.reproduce.housing import housing_counts

OPTIONS: dict[str, dict[str, object]] = {
    "matching, cumulative, K = 10,000": {"mechanism": "matching", "view": "cumulative", "max_size": 10_000},
    "matching, hybrid": {"mechanism": "matching", "view": "hybrid"},
}


def seconds(counts: ConfidentialCounts, **options: object) -> float:
    best = float("inf")
    for seed in range(3):
        start = time.perf_counter()
        release(counts, epsilon=1, insecure_seed=seed, **options)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, options in {**OPTIONS, "default": benchmarks.default_options()}.items():
        release(housing_counts(20_000), epsilon=1, insecure_seed=0, **options)  # compiles the kernels
        small, large = (seconds(housing_counts(n), **options) for n in (58_500_000, 117_000_000))
        figures |= {f"{name}: seconds": large, f"{name}: ratio of twice the groups": large / small}
        print(f"   {name}: {large:.2f} s; twice the groups take {large / small:.2f} times as long")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    figures["peak memory in GB"] = memory
    print(f"   peak memory {memory:.2f} GB")
    return figures


if __name__ == "__main__":
    main()
