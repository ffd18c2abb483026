"""Run the benchmarks and write their figures as JSON.

``python -m benchmarks`` runs all of them; ``python -m benchmarks sampling release`` the named ones;
``--full`` takes the sizes that the documentation quotes instead of a tenth of them, ``--mechanism NAME`` that mechanism where
the default one is measured.
"""

import argparse
import importlib
import json
import pkgutil
import time
from pathlib import Path

import benchmarks

RESULTS = Path("bench-results")


def names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("__")]


def main(wanted: list[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    for name in wanted or names():
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "main"):
            continue
        print(f"\n== {name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        start = time.perf_counter()
        figures = module.main()
        print(f"   ({time.perf_counter() - start:.1f} s)")
        (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="the scripts to run; all of them where none is named")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--mechanism")
    asked = parser.parse_args()
    benchmarks.FULL, benchmarks.MECHANISM = asked.full, asked.mechanism
    main(asked.names)
