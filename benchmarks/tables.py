"""Tables beside their rivals: mean absolute error per level and margin.

    python -m benchmarks.tables us|cps|country [--epsilon 1] [--runs 3] [--blocks 2000]

Rivals spend the same ε: (a) noise on the finest cells of the leaves alone, everything else added up;
(b) equal shares for every level and margin, each table as it was measured; (c) TopDown as in
fioretto2021 §10: equal shares for the finest cells of every level, fitted level after level.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import duckdb
import numpy as np

from tallytree.kernels.tables.simplex import project_to_whole_simplex
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential_table import ConfidentialTable, PublicTable
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_columns
from tallytree.model.values import Values
from tallytree.options.tables import TableOptions
from tallytree.privacy.randomness import KeyStream
from tallytree.tables.estimate import Estimates
from tallytree.tables.measure import measure_table
from tallytree.tables.plan import axes_of, plan_table
from tallytree.tables.reconcile import whole_table

Margins = dict[TableKey, FloatArray]


def data_folder() -> Path:
    """Where real data are."""
    return Path(os.environ["TALLYTREE_DATA"])


def of_dense(tree: Hierarchy, values: Values, cells: IntArray) -> ConfidentialTable:
    """A table from counts of all leaves, ``(n_leaves, n_cells)``."""
    cell = np.flatnonzero(cells)
    return ConfidentialTable(PublicTable(tree, values), cell, cells.ravel()[cell].astype(np.int64))


def us_counties() -> ConfidentialTable:
    """302 million people by county, sex and 23 classes of age."""
    file = data_folder() / "us2010_age_sex_county" / "us2010_age_sex_county.csv.gz"
    rows = duckdb.sql(
        f"SELECT * FROM read_csv('{file}', types={{'fips': 'VARCHAR'}}) ORDER BY state, fips"
    ).to_arrow_table()
    labels = [np.array(rows[name].to_pylist(), dtype=object) for name in ("state", "fips")]
    tree = hierarchy_from_columns(["state", "county"], labels, root="US")
    names = [name for name in rows.column_names if name not in ("fips", "state", "county")]
    ages = tuple(dict.fromkeys(name[2:] for name in names))
    cells = np.stack(
        [rows[f"{sex}_{age}"].to_numpy().astype(np.int64) for sex in "mf" for age in ages], axis=1
    )
    return of_dense(tree, Values(("sex", "age"), (("m", "f"), ages)), cells)


def cps_members() -> ConfidentialTable:
    """Members of surveyed households by age, age of the head, couple and assistance."""
    file = data_folder() / "cps_household_members" / "cps_household_members.csv.gz"
    ages = ("under18", "age18_20", "age21plus")
    parts = " UNION ALL ".join(
        f"SELECT region, division, fips, head, couple, assistance, '{age}' AS age, {age} AS n "
        f"FROM people"
        for age in ages
    )
    duckdb.sql(
        f"CREATE OR REPLACE TEMP VIEW people AS SELECT * FROM read_csv('{file}', "
        "types={'fips': 'VARCHAR', 'couple': 'VARCHAR'})"
    )
    rows = duckdb.sql(
        "SELECT region, division, fips, head, couple, assistance, age, sum(n)::BIGINT AS n "
        f"FROM ({parts}) GROUP BY ALL HAVING sum(n) > 0"
    ).to_arrow_table()
    columns = {name: np.array(rows[name].to_pylist(), dtype=object) for name in rows.column_names}
    of_rows = zip(*(columns[name] for name in ("region", "division", "fips")))
    places = sorted({tuple(map(str, row)) for row in of_rows})
    levels = [np.array(each, dtype=object) for each in zip(*places)]
    tree = hierarchy_from_columns(["region", "division", "state"], levels, root="US")
    names = ("age", "head", "couple", "assistance")
    values = Values(names, tuple(tuple(sorted(set(map(str, columns[name])))) for name in names))
    leaf = {place: number for number, place in enumerate(places)}
    cells = np.zeros((len(places), values.n_cells), dtype=np.int64)
    for row in zip(*(columns[name] for name in ("region", "division", "fips", *names, "n"))):
        place, labels = tuple(map(str, row[:3])), tuple(map(str, row[3:7]))
        cells[leaf[place], values.cell_of(labels)] += int(row[7])
    return of_dense(tree, values, cells)


def country(n_blocks: int, seed: int = 0) -> ConfidentialTable:
    """A made-up country of blocks by the 2020 redistricting schema: 8 kinds of quarters, voting
    age, 63 races, ethnicity; most cells are empty.
    """
    rng, shape = np.random.default_rng(seed), (8, 2, 63, 2)
    block = np.arange(n_blocks)
    tract = np.minimum(block // 20, max(1, n_blocks // 20) - 1)
    county = np.minimum(tract // 10, max(1, n_blocks // 200) - 1)
    state = np.minimum(county // 10, max(1, n_blocks // 2000) - 1)
    labels = [
        np.array([f"{number:06d}" for number in each], dtype=object)
        for each in (state, county, tract, block)
    ]
    tree = hierarchy_from_columns(["state", "county", "tract", "block"], labels, root="US")
    tail = 1 / np.arange(1, 58) ** 2
    races = np.concatenate([[0.62, 0.13, 0.01, 0.06, 0.002, 0.08], 0.1 * tail / tail.sum()])
    mixes = np.cumsum(rng.dirichlet(races / races.sum() * 6, size=tract.max() + 1), axis=1)
    people = np.where(rng.random(n_blocks) < 0.25, 0, rng.gamma(1.2, 35, n_blocks)).astype(int)
    leaf = np.repeat(block, people)
    race = np.concatenate(
        [
            (rng.random(len(part))[:, None] > mixes[tract[part]]).sum(axis=1)
            for part in np.array_split(leaf, max(1, len(leaf) // 500_000))
        ]
    )

    def drawn(shares: list[float]) -> IntArray:
        return np.searchsorted(np.cumsum(shares), rng.random(len(leaf)) * 0.999999)

    quarters, adult = drawn([0.97] + [0.03 / 7] * 7), drawn([0.24, 0.76])
    cell = ((quarters * 2 + adult) * 63 + np.minimum(race, 62)) * 2 + drawn([0.83, 0.17])
    cells, n = np.unique(leaf * int(np.prod(shape)) + cell, return_counts=True)
    names = ("quarters", "voting_age", "race", "hispanic")
    values = Values(names, tuple(tuple(map(str, range(size))) for size in shape))
    return ConfidentialTable(PublicTable(tree, values), cells, n.astype(np.int64))


def margins_of(axes: Axes, tree: Hierarchy, leaves: FloatArray) -> Margins:
    """Every table of every level, from the finest cells of all leaves."""
    found: Margins = {}
    for level in range(tree.n_levels):
        here = tree.level_slice(level)
        cells = np.add.reduceat(leaves, tree.leaf_starts[here], axis=0)
        for parts in plain_parts(axes):
            table = cells.reshape(len(cells), *axes.shape)
            dropped = tuple(1 + place for place, part in enumerate(parts) if not part)
            found[TableKey(level, parts)] = table.sum(axis=dropped).reshape(len(cells), -1)
    return found


def plain_parts(axes: Axes) -> list[tuple[int, ...]]:
    """Subsets of the attributes."""
    finest = axes.finest
    return [
        parts
        for parts in axes.partitions
        if all(part in (0, most) for part, most in zip(parts, finest))
    ]


def top_down(tree: Hierarchy, noisy: list[IntArray]) -> IntArray:
    """TopDown without public totals: level after level, each cell divided among the children."""
    table = np.maximum(noisy[0], 0)
    for level in range(1, tree.n_levels):
        here, above = tree.level_slice(level), tree.level_slice(level - 1)
        n_here, n_cells = noisy[level].shape
        starts = tree.child_starts[above] - here.start
        offsets = (np.arange(n_cells)[:, None] * n_here + starts).ravel()
        fit = project_to_whole_simplex(
            noisy[level].T.ravel(), np.append(offsets, n_cells * n_here), table.T.ravel()
        )
        table = fit.reshape(n_cells, n_here).T
    return table


def rivals(
    axes: Axes, tree: Hierarchy, exact: Margins, epsilon: float, seed: int
) -> dict[str, Margins]:
    """Errors of the rivals' answers, drawn with ordinary generators."""
    rng = np.random.default_rng(seed)

    def noise(scale: float, shape: tuple[int, ...]) -> IntArray:
        odds = 1 - np.exp(-1 / scale)
        return rng.geometric(odds, shape) - rng.geometric(odds, shape)

    last = tree.n_levels - 1
    finest = exact[TableKey(last, axes.finest)]
    flat = margins_of(axes, tree, noise(1 / epsilon, finest.shape))
    # Of one region a draw says little: what equal shares are expected to be off by.
    odds = np.exp(-epsilon / len(exact))
    equal = {key: np.full(one.shape, 2 * odds / (1 - odds**2)) for key, one in exact.items()}
    levels = [exact[TableKey(level, axes.finest)] for level in range(tree.n_levels)]
    noisy = [level + noise(len(levels) / epsilon, level.shape) for level in levels]
    down = margins_of(axes, tree, top_down(tree, noisy))
    return {
        "flat": flat,
        "equal": equal,
        "topdown": {key: down[key] - exact[key] for key in exact},
    }


def ours(counts: ConfidentialTable, options: TableOptions, seed: int) -> IntArray:
    """Released finest cells of all leaves."""
    plan = plan_table(options, counts.public)
    noisy = measure_table(counts, plan, KeyStream.from_insecure_seed(seed))
    cell, n = whole_table(plan, Estimates(plan, noisy))
    leaves = np.zeros(counts.public.hierarchy.n_leaves * plan.axes.n_cells, dtype=np.int64)
    leaves[cell] = n
    return leaves.reshape(counts.public.hierarchy.n_leaves, -1)


def compare(counts: ConfidentialTable, epsilon: float, runs: int) -> None:
    """Print mean absolute errors of every table, and their geometric means."""
    tree, values = counts.public.hierarchy, counts.public.values
    axes = axes_of(values)
    leaves = np.zeros(tree.n_leaves * values.n_cells, dtype=np.int64)
    leaves[counts.cell] = counts.n
    leaves = leaves.reshape(tree.n_leaves, -1)
    exact = margins_of(axes, tree, leaves)
    errors = {name: dict.fromkeys(exact, 0.0) for name in ("ours", "flat", "equal", "topdown")}
    for seed in range(runs):
        made = margins_of(axes, tree, ours(counts, TableOptions(epsilon=epsilon), seed) - leaves)
        for name, found in {"ours": made, **rivals(axes, tree, exact, epsilon, seed)}.items():
            for key, one in found.items():
                errors[name][key] += float(np.abs(one).mean()) / runs
    print(f"| level | by | {' | '.join(errors)} |\n|" + " --- |" * (2 + len(errors)))
    for key in exact:
        by = ", ".join(name for name, part in zip(values.names, key.parts) if part) or "–"
        cells = " | ".join(f"{errors[name][key]:.3g}" for name in errors)
        print(f"| {tree.level_names[key.level]} | {by} | {cells} |")
    means = {name: np.exp(np.mean(np.log(list(one.values())))) for name, one in errors.items()}
    print("| geometric mean | | " + " | ".join(f"{mean:.3g}" for mean in means.values()) + " |")
    best = min(means[name] for name in means if name != "ours")
    worst = max(errors["ours"][key] / errors["equal"][key] for key in exact)
    print(
        f"ratio to the best rival: {means['ours'] / best:.3f}; worst table beside equal shares: {worst:.3f}"
    )


def cost(counts: ConfidentialTable, epsilon: float) -> None:
    """Print time and memory of one release in memory."""
    start = time.process_time()
    plan = plan_table(TableOptions(epsilon=epsilon), counts.public)
    noisy = measure_table(counts, plan, KeyStream.from_insecure_seed(1))
    measured = time.process_time()
    cell, _ = whole_table(plan, Estimates(plan, noisy))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{counts.public.hierarchy.n_leaves:,} leaves, {plan.axes.n_cells:,} cells: measured in "
        f"{measured - start:.0f} s, made whole in {time.process_time() - measured:.0f} s of CPU "
        f"time; {peak:.1f} GB; {len(cell):,} counts"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=("us", "cps", "country", "cost"))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=2000)
    asked = parser.parse_args()
    if asked.data == "cost":
        cost(country(asked.blocks), asked.epsilon)
        return
    makers = {"us": us_counties, "cps": cps_members, "country": lambda: country(asked.blocks)}
    compare(makers[asked.data](), asked.epsilon, asked.runs)


if __name__ == "__main__":
    main()
