"""The accuracy laboratory: every way to release group sizes, on all data with groups, at several ε,
kept and drawn again.

    TALLYTREE_DATA=folder python -m benchmarks.accuracy run [--sets taxi cps] [--methods default
    kuo2018] [--runs 10] [--jobs 2] python -m benchmarks.accuracy tables TALLYTREE_DATA=folder
    python -m benchmarks.accuracy.curve TALLYTREE_DATA=folder python -m benchmarks.accuracy.ablation
    TALLYTREE_DATA=folder python -m benchmarks.accuracy.splits TALLYTREE_DATA=folder python -m
    benchmarks.accuracy.bound

``run`` goes on where it was stopped; each run is one small Parquet file under
bench-results/accuracy. ``tables`` prints Markdown tables and writes a plot. ``curve`` follows error
and time of the default over ε, ``ablation`` takes one idea out at a time, ``splits`` chooses splits
with the truth known, and ``bound`` tells how far the default is from what is possible. Without a
data folder, only made-up data are released.
"""
