"""The accuracy laboratory: every way to release group sizes, on all data with groups, at several ε, kept and drawn again.

    TALLYTREE_DATA=folder python -m benchmarks.accuracy run [--sets taxi cps] [--methods default kuo2018] [--runs 10] [--jobs 2]
    python -m benchmarks.accuracy tables
    TALLYTREE_DATA=folder python -m benchmarks.accuracy.curve

``run`` goes on where it was stopped; each run is one small Parquet file under bench-results/accuracy. ``tables`` prints
Markdown tables and writes a plot. ``curve`` follows error and time of the default over ε.
Without a data folder, only made-up data are released.
"""
