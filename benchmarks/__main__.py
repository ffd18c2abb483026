"""Run the benchmarks and write their figures as JSON.

``python -m benchmarks`` runs those about speed and scale, beside other libraries where there are
any; ``python -m benchmarks sampling release`` the named ones; ``--full`` takes the sizes that the
documentation quotes instead of a tenth of them, ``--mechanism NAME`` that mechanism where the
default one is measured. Scripts about accuracy, intervals and faults take minutes to hours, have
options of their own, and are run by themselves: ``python -m benchmarks.coverage --help``.
"""

import argparse
import importlib
import json
import time
from pathlib import Path

import benchmarks

RESULTS = Path("bench-results")


SPEED = (
    "sampling", "isotonic", "tree_consistency", "pgsr", "accounting", "streams", "release", "ingestion", "growth", "country",
    "country_growth", "levels", "exports", "planning",
)  # fmt: skip


def main(wanted: list[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    for name in wanted or SPEED:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        start = time.perf_counter()
        figures = module.main()
        print(f"   ({time.perf_counter() - start:.1f} s)")
        (RESULTS / f"{name}.json").write_text(
            json.dumps(figures, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="the scripts to run; those about speed where none is named"
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--mechanism")
    asked = parser.parse_args()
    benchmarks.FULL, benchmarks.MECHANISM = asked.full, asked.mechanism
    main(asked.names)
