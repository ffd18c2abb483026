"""Releases that protect whole groups: what they promise, what they refuse, and their errors beside
a plain histogram.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.group_unit import naive
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.errors import InputError, RequestError
from tallytree.group_sizes.accuracy import data_like, protecting_groups
from tallytree.group_sizes.intervals.intervals import with_intervals
from tallytree.kinds.verbs import verify_privacy
from tallytree.ledger.accounts import create_account
from tallytree.model.confidential import AssumedCounts, ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit
from tallytree.privacy.budget import Budget


def households(n_groups: int = 40_000, seed: int = 0) -> AssumedCounts:
    """Two states, six counties each of their own size, households of 1 to about 14 people."""
    rng = np.random.default_rng(seed)
    tree = hierarchy_from_leaves(
        ["state", "county"],
        [(state, f"{state} {n}") for state in ("GA", "NY") for n in range(6)],
        root="US",
    )
    leaf = rng.choice(12, n_groups, p=(weights := rng.lognormal(0, 0.7, 12)) / weights.sum())
    counts = counts_from_runs(
        leaf, rng.geometric(0.45, n_groups), np.ones(n_groups, dtype=np.int64), 12
    )
    return AssumedCounts(
        PublicFacts(tree, unit=Unit("person"), group="household"), counts, counts.n_groups()
    )


def people() -> pa.Table:
    rows = [("h1", "GA"), ("h1", "GA"), ("h2", "GA"), ("h3", "NY"), ("h3", "NY"), ("h3", "NY")]
    return pa.table({"household": [row[0] for row in rows], "state": [row[1] for row in rows]})


def test_a_release_of_whole_groups_says_what_it_protects(tmp_path: Path) -> None:
    counts = tt.read(people(), group="household", levels=["state"], unit="group", public="regions")
    assert counts.public.unit.group == "household"
    assert not counts.public.groups_public
    made = tt.release(counts, epsilon=1)
    privacy = made.manifest["privacy"]
    assert made.manifest["mechanism"]["name"] == "size-bins"
    assert (
        privacy["unit"]["words"]
        == "one household with all its entities, of any size, in any region"
    )
    assert (privacy["unit"]["name"], privacy["fixed"]) == ("group", ["which regions there are"])
    assert privacy["statement"].startswith(
        "Adding or removing any one household with all its entities, of any size"
    )
    assert made.manifest["public"]["least_size"] == 1
    assert "not public" in made.manifest["public"]["group_totals"]
    assert privacy["side_queries"][0]["query"] == "first look"
    made.verify().raise_if_failed()
    made.save(tmp_path / "out")
    loaded = tt.load(tmp_path / "out")
    loaded.verify().raise_if_failed()
    verify_privacy(tmp_path / "out").raise_if_failed()
    assert loaded.table().equals(made.table())


@pytest.mark.parametrize("options", [{"epsilon": "0.5"}, {"rho": "0.1", "definition": "zcdp"}])
@pytest.mark.parametrize("max_size", [None, 7, 40, 200])
def test_every_setting_holds_what_it_promises(
    options: dict[str, Any], max_size: int | None, tmp_path: Path
) -> None:
    counts = protecting_groups(households(2_000), least_size=1)
    made = tt.release(counts, max_size=max_size, insecure_seed=3, **options)
    made.verify().raise_if_failed()
    if max_size is not None:
        assert made.counts.size.max() <= max_size
    made.save(tmp_path / "out")
    checks = {check.name: check.passed for check in verify_privacy(tmp_path / "out").checks}
    assert [name for name, passed in checks.items() if not passed] == [
        "the noise came from secure randomness"
    ]


def test_other_shapes_of_rows_are_groups_too() -> None:
    rows = pa.table({"size": [0, 3, 3], "state": ["GA", "GA", "NY"], "n": [2, 5, 1]})
    by_group = tt.read(
        rows.select(["size", "state"]),
        size="size",
        levels=["state"],
        unit="group",
        public="regions",
    )
    by_count = tt.read(
        rows, size="size", count="n", levels=["state"], unit="group", public="regions"
    )
    assert (by_group.public.least_size, by_count.public.least_size) == (0, 0)
    assert by_count.public.unit.group == "group"
    tt.release(by_count, epsilon=1).verify().raise_if_failed()


def test_a_column_named_group_is_a_unit_column() -> None:
    rows = people().append_column("group", pa.array(list("abcabc")))
    counts = tt.read(
        rows,
        group="household",
        levels=["state"],
        unit="column:group",
        contributions=2,
        public="regions",
    )
    assert counts.public.unit == Unit("row", "group", 2)


def test_what_would_tell_of_the_group_is_refused() -> None:
    given = {"group": "household", "levels": ["state"], "unit": "group"}
    with pytest.raises(RequestError, match="would tell of the group"):
        tt.read(people(), groups=people(), **given)
    with pytest.raises(RequestError, match="column:group"):
        tt.read(people(), contributions=2, public="regions", **given)
    counts = tt.read(people(), public="regions", **given)
    for options in ({"mechanism": "adaptive"}, {"mechanism": "matching"}):
        with pytest.raises(RequestError, match="protects single entities"):
            tt.release(counts, epsilon=1, **options)
    with pytest.raises(RequestError, match="leave view out"):
        tt.release(counts, epsilon=1, view="cumulative")
    with pytest.raises(InputError, match="no public place"):
        ConfidentialCounts(
            PublicFacts(counts.hierarchy, unit=counts.public.unit),
            counts.leaf_counts,
            counts.n_groups,
        )


def test_a_release_can_be_released_again() -> None:
    """Intervals and plans run the mechanism on released tables."""
    made = tt.release(
        protecting_groups(households(3_000), least_size=1), epsilon=1, insecure_seed=1
    )
    again = data_like(made)
    facts = again.public
    assert (facts.unit, facts.least_size, facts.groups_public) == (
        Unit("person", group="household"),
        1,
        False,
    )
    ends = with_intervals(made, copies=10).intervals
    assert ends is not None
    assert np.all(ends.low <= ends.high)
    assert np.all(ends.std_error[made.counts.count > 20] > 0)
    assert tt.plan(made, epsilon=1, runs=2).levels[0].emd > 0


def test_single_counts_lie_in_their_intervals() -> None:
    truth = protecting_groups(households(20_000), least_size=1)
    held = total = 0
    for seed in range(6):
        made = with_intervals(tt.release(truth, epsilon=1, insecure_seed=seed), copies=30)
        ends = made.intervals
        assert ends is not None
        exact = truth.counts_on_levels.dense(60)[
            made.counts.region_of_run(), np.minimum(made.counts.size, 60)
        ]
        held += int(((ends.low <= exact) & (exact <= ends.high)).sum())
        total += len(exact)
    assert held / total > 0.9


@pytest.mark.parametrize("epsilon", ["1", "0.1"])
def test_errors_stay_below_those_of_a_histogram_of_all_sizes(epsilon: str) -> None:
    """At most as large with a tight bound on sizes, at most half with a loose one, on every level;
    figures in the docs.
    """
    counts = households()
    truth = protecting_groups(counts)
    tight = int(counts.leaf_counts.size.max())
    for bound, most in ((tight, 1.0), (2_000, 0.5)):
        ours = [
            tt.evaluate(
                tt.release(truth, epsilon=epsilon, max_size=bound, insecure_seed=seed), truth
            )
            for seed in range(12)
        ]
        found = np.mean([[level.emd for level in one.levels] for one in ours], axis=0)
        plain = np.mean([naive(counts, epsilon, bound, seed) for seed in range(12)], axis=0)
        assert np.all(found <= most * plain)


def test_the_program_protects_whole_groups(tmp_path: Path) -> None:
    source, out = tmp_path / "people.parquet", tmp_path / "out"
    pq.write_table(people(), source)
    words = [
        "release",
        str(source),
        "--group",
        "household",
        "--levels",
        "state",
        "--unit",
        "group",
        "--epsilon",
        "1",
    ]
    words += ["--public", "regions"]
    ran = CliRunner().invoke(app, [*words, "--out", str(out), "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["mechanism"] == "size-bins"
    planned = CliRunner().invoke(
        app, ["plan", "--like", str(out), "--epsilon", "1", "--runs", "1", "--json"]
    )
    assert [one["name"] for one in json.loads(planned.stdout)["predictions"]] == ["default"]
    words = [
        "plan",
        "--groups",
        str(source),
        "--group",
        "household",
        "--levels",
        "state",
        "--epsilon",
        "1",
        "--runs",
        "1",
    ]
    assert CliRunner().invoke(app, [*words, "--unit", "group", "--json"]).exit_code == 0
    refused = CliRunner().invoke(app, [*words, "--unit", "village"])
    assert refused.exit_code != 0


def test_an_account_for_whole_groups_pays_only_for_them(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    create_account(ledger, "homes", Budget("pure", Fraction(2)), unit="group")
    given = {"group": "household", "levels": ["state"]}
    made = tt.release(
        tt.read(people(), unit="group", public="regions", **given),
        epsilon=1,
        ledger=ledger,
        dataset="homes",
    )
    assert made.manifest["privacy"]["ledger"]["dataset"] == "homes"
    rows = people().append_column("group", pa.array(list("abcabc")))
    column = {"unit": "column:group", "contributions": 2, "public": "regions"}
    for other in ({"public": "groups"}, column):
        with pytest.raises(RequestError, match="do not add up"):
            tt.release(
                tt.read(rows, **given, **other),
                epsilon="0.1",
                ledger=ledger,
                dataset="homes",
            )


@pytest.mark.parametrize("loss", ["1e-9", "1e-4", "40", "1000", "1e6"])
@pytest.mark.parametrize("how", [{"epsilon": 0}, {"rho": 0, "definition": "zcdp"}])
@pytest.mark.parametrize("max_size", [None, 7])
def test_no_budget_is_too_small_or_too_large(
    loss: str, how: dict[str, Any], max_size: int | None
) -> None:
    """Without noise to speak of the tables are those of the data."""
    counts = tt.read(people(), group="household", levels=["state"], unit="group", public="regions")
    options = {name: loss if value == 0 else value for name, value in how.items()}
    made = tt.release(counts, max_size=max_size, **options)
    made.verify().raise_if_failed()
    if loss == "1e6" and max_size:
        assert made.region("total/GA").counts().tolist() == [0, 1, 1]
        assert made.region("total/NY").n_groups == 1


def test_a_target_is_looked_for_from_a_budget_without_noise(tmp_path: Path) -> None:
    file = tmp_path / "households.csv"
    rows = [
        f"{number},{state}" for number in range(200) for state in ("GA", "NY")[number % 2 :][:1]
    ]
    file.write_text("\n".join(["household,state", *rows]))
    place = ["--groups", str(file), "--group", "household", "--levels", "state"]
    found = CliRunner().invoke(
        app, ["plan", *place, "--unit", "group", "--target", "state: emd<=20"]
    )
    assert found.exit_code == 0, found.output
