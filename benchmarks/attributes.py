"""Households with attributes, and the people in them: errors beside nestings, releases without
attributes, and histograms.

200,576 households of the Current Population Survey by couple and assistance, both declared fixed,
with members by age. Run as ``python -m benchmarks.attributes
sizes|groups|wants|people|ages|means|scale``; the data folder is named by TALLYTREE_DATA.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import peak_memory
from benchmarks.real_data import data_folder
from tallytree import ConfidentialCounts, evaluate, read, release
from tallytree.group_sizes.intervals.answers import answer
from tallytree.group_sizes.intervals.copies import copy_release
from tallytree.group_sizes.kernels.distance import earth_movers_distance
from tallytree.group_sizes.manifest import facts_of
from tallytree.group_sizes.mechanisms.mechanism import Measured, Settled
from tallytree.group_sizes.mechanisms.table import mechanism_named
from tallytree.group_sizes.plan.plan import plan_release, with_shares
from tallytree.group_sizes.publish import groups_known
from tallytree.group_sizes.reconcile.people import counted_people, whole_people
from tallytree.group_sizes.release.questions import MEAN
from tallytree.group_sizes.release.release import Release
from tallytree.lattice.least_squares import least_squares_cells
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs, sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Family
from tallytree.model.people import People, classes_of_entities
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.budget import written_fraction
from tallytree.releases.progress import silent

LEVELS = ("region", "division", "fips")
BY = ("couple", "assistance")
AGES = {"under18": "child", "age18_20": "youth", "age21plus": "adult"}
EQUAL = {"budget": "equal"}


def households() -> pa.Table:
    """One row per household, with its size."""
    folder = data_folder()
    if folder is None:
        sys.exit("Set TALLYTREE_DATA to the folder of real data.")
    file = folder / "cps_household_members" / "cps_household_members.csv.gz"
    return duckdb.sql(f"SELECT *, {' + '.join(AGES)} AS size FROM '{file}'").to_arrow_table()


def members() -> pa.Table:
    """One row per person."""
    table = households()
    numbers = np.stack([table[column].to_numpy() for column in AGES], axis=1)
    house = np.repeat(np.arange(len(table)), numbers.sum(axis=1))
    age = np.repeat(np.tile(list(AGES.values()), len(table)), numbers.ravel())
    columns = {name: table[name].take(pa.array(house)) for name in (*LEVELS, *BY)}
    return pa.table({"household": house, **columns, "age": age})


def by_cells(table: pa.Table) -> ConfidentialCounts:
    """The households by couple and assistance."""
    return read(table, levels=LEVELS, size="size", root="US", by=BY, public="cells")


def errors(counts: ConfidentialCounts, cells: CountsBySize) -> FloatArray:
    """Mean earth mover's distance of a row per level: cells, then all values together."""
    lattice, found = counts.lattice, []
    assert counts.cell_counts is not None
    for margin in (lattice.finest.margin, ()):
        for level in range(lattice.hierarchy.n_levels):
            made, exact = (
                lattice.counts(Family(level, margin), table)
                for table in (cells, counts.cell_counts)
            )
            kept = (made.n_groups() > 0) | (exact.n_groups() > 0)
            found.append(earth_movers_distance(made, exact)[kept].mean())
    return np.array(found)


def lattice_errors(
    counts: ConfidentialCounts, epsilon: str, seed: int, **options: object
) -> FloatArray:
    """Of one release by attributes."""
    made = release(counts, epsilon=epsilon, insecure_seed=seed, **options)  # type: ignore[arg-type]
    assert made.margins is not None
    return errors(counts, made.margins.at(made.lattice.rows_in_margins(made.lattice.finest)))


def nested_errors(
    counts: ConfidentialCounts,
    nested: ConfidentialCounts,
    order: Sequence[str],
    epsilon: str,
    seed: int,
    **options: object,
) -> FloatArray:
    """Of a release where the attributes are levels."""
    tree, lattice = nested.hierarchy, counts.lattice
    made = release(nested, epsilon=epsilon, insecure_seed=seed, **options)  # type: ignore[arg-type]
    here = tree.level_slice(tree.n_levels - 1)
    states = [
        path.rsplit("/", 1)[1] for path in lattice.hierarchy.paths[lattice.hierarchy.level_slice(3)]
    ]
    place = []
    for path in tree.paths[here]:
        labels = dict(zip(order, path.split("/")[1:]))
        cell = lattice.attributes.cell_of([labels[name] for name in BY])
        place.append(states.index(labels["fips"]) * lattice.attributes.n_cells + cell)
    return errors(
        counts,
        sum_over_regions(
            made.counts.regions(here), np.array(place), lattice.n_rows(lattice.finest)
        ),
    )


def show(name: str, found: Sequence[FloatArray]) -> None:
    """One row of a table: cells, all values together, geometric mean."""
    mean = np.mean(found, axis=0)
    texts = [" / ".join(f"{value:,.1f}" for value in part) for part in (mean[:4], mean[4:])]
    print(f"| {name} | {texts[0]} | {texts[1]} | {np.exp(np.log(mean).mean()):.1f} |", flush=True)


def sizes(epsilons: Sequence[str], runs: int) -> None:
    """One release by attributes beside nestings, where they are levels above or below the regions."""
    table = households()
    counts = by_cells(table)
    orders = {"top": (*BY, *LEVELS), "bottom": (*LEVELS, *BY)}
    nested = {
        name: read(table, levels=order, size="size", root="US", public="groups")
        for name, order in orders.items()
    }
    print("| | cells | all values together | geometric mean |\n| --- | --- | --- | --- |")
    for epsilon in epsilons:
        show(
            f"ε = {epsilon}, by attributes",
            [lattice_errors(counts, epsilon, seed) for seed in range(runs)],
        )
        for name, order in orders.items():
            for how, options in (("planned", {}), ("equal", EQUAL)):
                found = [
                    nested_errors(counts, nested[name], order, epsilon, seed, **options)
                    for seed in range(runs)
                ]
                show(f"ε = {epsilon}, attributes at the {name}, {how}", found)


def groups_protected(epsilons: Sequence[str], runs: int) -> None:
    """The same where whole households are protected, sizes up to 20."""
    table = households()
    values = {name: sorted({str(value) for value in table[name].to_pylist()}) for name in BY}
    how = {"size": "size", "root": "US", "unit": "group", "public": "regions"}
    counts = read(table, levels=LEVELS, by=values, **how)
    print("| | cells | all values together | geometric mean |\n| --- | --- | --- | --- |")
    for epsilon in epsilons:
        made = [lattice_errors(counts, epsilon, seed, max_size=20) for seed in range(runs)]
        show(f"ε = {epsilon}, by attributes", made)
        for name, order in {"top": (*BY, *LEVELS), "bottom": (*LEVELS, *BY)}.items():
            nested = read(table, levels=order, **how)
            found = [
                nested_errors(counts, nested, order, epsilon, seed, max_size=20)
                for seed in range(runs)
            ]
            show(f"ε = {epsilon}, attributes at the {name}", found)


def wants(epsilons: Sequence[str], runs: int) -> None:
    """Three workloads, and a release without attributes."""
    table = households()
    counts = by_cells(table)
    bare = read(table, levels=LEVELS, size="size", root="US", public="groups")
    names = counts.hierarchy.level_names
    workloads: dict[str, list[str]] = {
        "default": [],
        "regions": list(names),
        "cells": [f"{name}:{','.join(BY)}" for name in names],
    }
    print("| | cells | all values together | geometric mean |\n| --- | --- | --- | --- |")
    for epsilon in epsilons:
        for name, want in workloads.items():
            show(
                f"ε = {epsilon}, wanted: {name}",
                [lattice_errors(counts, epsilon, seed, want=want) for seed in range(runs)],
            )
        made = [
            evaluate(release(bare, epsilon=epsilon, insecure_seed=seed), bare).levels
            for seed in range(runs)
        ]
        alone = np.mean([[level.emd for level in levels] for levels in made], axis=0)
        print(
            f"| ε = {epsilon}, without attributes | | "
            f"{' / '.join(f'{value:,.1f}' for value in alone)} | |",
            flush=True,
        )


def people(epsilons: Sequence[str], runs: int) -> None:
    """People by class beside a histogram of its own, and people per region from sizes, from classes
    and from both.
    """
    table = members()
    how = {
        "group": "household",
        "levels": LEVELS,
        "root": "US",
        "by": ("couple",),
        "public": "cells",
    }
    _compare_people(
        read(table, people={"age": list(AGES.values())}, people_by=["couple"], **how),
        epsilons,
        runs,
    )


def ages(epsilons: Sequence[str], runs: int) -> None:
    """The same of the county table of age by sex, 46 classes of 302 million people in households
    whose sizes are made up.
    """
    _compare_people(county_people(), epsilons, runs)


def county_people() -> ConfidentialCounts:
    """Real people by sex and age per county; households of two and more are drawn, and whoever is
    left lives alone.
    """
    folder = data_folder()
    if folder is None:
        sys.exit("Set TALLYTREE_DATA to the folder of real data.")
    file = folder / "us2010_age_sex_county" / "us2010_age_sex_county.csv.gz"
    table = duckdb.sql(
        f"SELECT * FROM read_csv('{file}', types={{'fips': 'VARCHAR'}}) ORDER BY state, fips"
    ).to_arrow_table()
    names = [name for name in table.column_names if name not in ("fips", "state", "county")]
    leaves = list(zip(table["state"].to_pylist(), table["fips"].to_pylist()))
    tree = hierarchy_from_leaves(["state", "county"], leaves, root="US")
    classes = classes_of_entities(
        [
            ("sex", ("m", "f")),
            ("age", tuple(dict.fromkeys(name[2:] for name in names))),
        ]
    )
    counted = np.zeros((len(leaves), classes.n_cells), dtype=np.int64)
    for name in names:
        counted[:, classes.cell_of([name[0], name[2:]])] = table[name].to_numpy()
    rng = np.random.default_rng(0)
    everyone = counted.sum(axis=1)
    shares = np.array([0.47, 0.21, 0.18, 0.08, 0.04, 0.02])  # of households of 2 … 7
    drawn = np.stack([rng.multinomial(n, shares) for n in (everyone * 0.27).astype(np.int64)])
    alone = everyone - drawn @ np.arange(2, 8)
    sizes = np.concatenate([alone[:, None], drawn], axis=1)
    county, size = np.nonzero(sizes)
    counts = counts_from_runs(county, size + 1, sizes[county, size], len(leaves))
    return ConfidentialCounts(
        PublicFacts(tree, people=People(classes)), counts, counts.n_groups(), entity_counts=counted
    )


def _sizes_alone(made: Release) -> CountsBySize:
    """The finest cells from the sizes alone that a release measured, as if nobody had counted
    people.
    """
    assert made.noisy is not None
    facts = facts_of(made.manifest, made.hierarchy)
    shares = [written_fraction(level["share"]) for level in made.manifest["privacy"]["levels"]]
    plan = with_shares(
        plan_release(ReleaseOptions.told(made.manifest["request"]), facts), facts, shares
    )
    measured = Measured(Settled(plan), made.noisy)
    return mechanism_named("adaptive").estimate(measured, facts, silent).leaves


def _compare_people(both: ConfidentialCounts, epsilons: Sequence[str], runs: int) -> None:
    lattice, tree = both.lattice, both.hierarchy
    groups = both.public.people.groups(lattice)
    own_family = both.public.people.family(lattice)
    exact = both.people_cells()

    def off(cells: IntArray | FloatArray, truth: IntArray) -> FloatArray:
        return np.array(
            [
                np.square(groups.sums(Family(level, ()), cells - truth)).mean()
                for level in range(tree.n_levels)
            ]
        )

    print(
        "| ε | level | one class: ours | own histogram | ratio | entities: sizes | classes | both "
        "| predicted | ratio |"
    )
    print("|" + " --- |" * 10)
    for epsilon in epsilons:
        squares: dict[str, list[FloatArray]] = {
            "ours": [],
            "own": [],
            "sizes": [],
            "classes": [],
            "both": [],
        }
        for seed in range(runs):
            made = release(both, epsilon=epsilon, insecure_seed=seed)
            assert made.people is not None
            assert made.noisy is not None
            known = groups_known(lattice, made.noisy, both.public.people)
            told = counted_people(groups, made.noisy.people, known)
            estimate = least_squares_cells(groups, told)
            totals = np.maximum(np.rint(estimate.sum(axis=1)), 0).astype(np.int64)
            own = whole_people(groups, told, totals)
            alone = lattice.sums(own_family, _sizes_alone(made).n_entities())
            squares["ours"].append(off(made.people.cells, exact))
            squares["own"].append(off(own, exact))
            squares["sizes"].append(off(alone, exact.sum(axis=1)))
            squares["classes"].append(off(estimate.sum(axis=1), exact.sum(axis=1)))
            squares["both"].append(off(made.people.cells.sum(axis=1), exact.sum(axis=1)))
        mean = {name: np.mean(found, axis=0) for name, found in squares.items()}
        predicted = 1 / (1 / mean["sizes"] + 1 / mean["classes"])
        for level, name in enumerate(tree.level_names):
            rms = {key: float(np.sqrt(values[level])) for key, values in mean.items()}
            best = float(np.sqrt(predicted[level]))
            print(
                f"| {epsilon} | {name} | {rms['ours']:.1f} | {rms['own']:.1f} | "
                f"{rms['ours'] / rms['own']:.2f} "
                f"| {rms['sizes']:.1f} | {rms['classes']:.1f} | {rms['both']:.1f} | {best:.1f} | "
                f"{rms['both'] / best:.2f} |",
                flush=True,
            )


def means(epsilons: Sequence[str], runs: int) -> None:
    """How often intervals of mean household size by attribute hold, at 95 %."""
    table = members()
    how = {"group": "household", "levels": LEVELS, "root": "US", "by": BY, "public": "cells"}
    counts = read(table, people={"age": list(AGES.values())}, **how)
    assert counts.cell_counts is not None
    lattice, tree = counts.lattice, counts.hierarchy
    for epsilon in epsilons:
        held = asked = 0
        for seed in range(runs):
            made = release(counts, epsilon=epsilon, insecure_seed=seed)
            copies = copy_release(made, copies=40, seed=seed * 1000)
            for place, name in enumerate(BY):
                for level in (0, 1, 3):
                    family = Family(level, (place,))
                    exact = lattice.counts(family, counts.cell_counts)
                    values = counts.public.attributes.values[place]
                    for row in np.flatnonzero(exact.n_groups() > 0).tolist():
                        region, value = divmod(row, len(values))
                        path = str(tree.paths[tree.level_slice(level)][region])
                        found = answer(copies, path, MEAN, where=[f"{name}={values[value]}"])
                        true = exact.n_entities()[row] / exact.n_groups()[row]
                        held += found.low <= true <= found.high
                        asked += 1
        print(
            f"ε = {epsilon}: {held:,} of {asked:,} intervals of mean sizes hold, {held / asked:.1%}",
            flush=True,
        )


def scale(cells: Sequence[int]) -> None:
    """Made-up counties: 117 million households in 3,144 of them, by two attributes."""
    n_counties = 3144
    leaves = sorted((f"s{i * 51 // n_counties:02d}", f"c{i:04d}") for i in range(n_counties))
    tree = hierarchy_from_leaves(["state", "county"], leaves, root="US")
    shares = np.array([0.28, 0.34, 0.15, 0.13, 0.06, 0.025, 0.01, 0.004, 0.0007, 0.0003])
    for n_cells in cells:
        rng = np.random.default_rng(0)
        heads = (*(f"h{i}" for i in range(n_cells // 3 - 1)), "other")
        attributes = Attributes(("tenure", "head"), (("own", "rent", "other"), heads))
        of_county, of_cell = (
            rng.dirichlet(np.full(n_counties, 0.3)),
            rng.dirichlet(np.full(n_cells, 2.0)),
        )
        groups = rng.poisson(117e6 * of_county[:, None] * of_cell).ravel()
        table = np.stack([rng.multinomial(n, shares) for n in groups])
        row, size = np.nonzero(table)
        counts = counts_from_runs(row, size + 1, table[row, size], len(groups))
        of_leaves = sum_over_regions(counts, np.arange(len(groups)) // n_cells, n_counties)
        confidential = ConfidentialCounts(
            PublicFacts(tree, attributes=attributes),
            of_leaves,
            of_leaves.n_groups(),
            cell_counts=counts,
        )
        started, cpu = time.perf_counter(), time.process_time()
        release(confidential, epsilon=1, insecure_seed=1)
        peak = peak_memory()
        seconds = time.perf_counter() - started
        print(
            f"{n_cells} cells: {time.process_time() - cpu:.1f} s of CPU time, {seconds:.1f} s, "
            f"{peak:.2f} GB",
            flush=True,
        )


def main() -> None:
    """Print the tables that were asked for."""
    tables: dict[str, Callable[[Sequence[str], int], None]] = {
        "sizes": sizes,
        "groups": groups_protected,
        "wants": wants,
        "people": people,
        "ages": ages,
        "means": means,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*tables, "scale"], default=list(tables))
    parser.add_argument("--epsilon", nargs="*", default=["1", "0.1"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--cells", type=int, nargs="*", default=[12, 24])
    given = parser.parse_args()
    for name in given.tables:
        if name == "scale":
            scale(given.cells)
        else:
            tables[name](given.epsilon, given.runs)


if __name__ == "__main__":
    main()
