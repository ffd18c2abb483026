"""How long a whole release takes on 117 million households in 3,144 counties, and that groups cost
nothing.
"""

from functools import partial

import benchmarks
from tallytree import release
from tallytree.papers.housing import housing_counts

OPTIONS: dict[str, dict[str, object]] = {
    "matching, cumulative, K = 10,000": {
        "mechanism": "matching",
        "view": "cumulative",
        "max_size": 10_000,
    },
    "matching, hybrid": {"mechanism": "matching", "view": "hybrid"},
}


def main() -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, options in {**OPTIONS, "default": benchmarks.default_options()}.items():
        release(
            housing_counts(20_000), epsilon=1, insecure_seed=0, **options
        )  # compiles the kernels
        small, large = (
            benchmarks.least_seconds(
                partial(release, housing_counts(n), epsilon=1, insecure_seed=0, **options), 3
            )
            for n in (58_500_000, 117_000_000)
        )
        time_ratio, work_ratio = large[0] / small[0], large[1] / small[1]
        figures |= {
            f"{name}: seconds": large[0],
            f"{name}: ratio of twice the groups": time_ratio,
            f"{name}: ratio of twice the groups in CPU seconds": work_ratio,
        }
        print(
            f"   {name}: {large[0]:.2f} s; twice the groups: {time_ratio:.2f} × the time, "
            f"{work_ratio:.2f} × the CPU"
        )
    memory = benchmarks.peak_memory()
    figures["peak memory in GB"] = memory
    print(f"   peak memory {memory:.2f} GB")
    return figures


if __name__ == "__main__":
    main()
