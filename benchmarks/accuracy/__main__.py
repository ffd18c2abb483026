"""Command line of the accuracy laboratory."""

import argparse
from pathlib import Path

from benchmarks.accuracy import __doc__ as description
from benchmarks.accuracy import runs, tables
from benchmarks.accuracy.data import data_sets
from benchmarks.real_data import data_folder


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["run", "tables"])
    parser.add_argument("--sets", nargs="*", metavar="NAME")
    parser.add_argument(
        "--methods",
        nargs="*",
        default=list(runs.METHODS),
        choices=list(runs.METHODS),
        metavar="NAME",
    )
    parser.add_argument("--epsilons", nargs="*", default=list(runs.EPSILONS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plot", type=Path, default=runs.RESULTS / "accuracy.svg")
    given = parser.parse_args()
    if given.what == "run":
        folder = data_folder()
        names = given.sets or list(data_sets(folder))
        runs.run_all(folder, names, given.methods, given.epsilons, given.runs, given.jobs)
    else:
        print(tables.markdown())
        print()
        print(tables.summary())
        print(tables.summary(baselines=tables.TIGHT_BASELINES))
        print(tables.summary("no level behind", tables.TIGHT_BASELINES[:1]))
        tables.plot(given.plot)


if __name__ == "__main__":
    main()
