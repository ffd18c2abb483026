"""A saved release estimated again from its raw measurements is the same release; other choices give
other estimates.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError

STATES = np.repeat(["GA", "NY", "OH"], 40)


def people() -> Any:
    sizes = np.random.default_rng(5).integers(1, 9, 120)
    household = np.repeat(np.arange(120), sizes)
    return pa.table(
        {"household": household, "state": STATES[household], "county": (household % 6).astype(str)}
    )


def counts(**options: Any) -> Any:
    return tt.read(
        people(),
        group="household",
        **({"levels": ["state", "county"], "public": "groups"} | options),
    )


MAKERS: dict[str, Any] = {
    "adaptive": lambda: tt.release(counts(), epsilon=1, insecure_seed=1),
    "adaptive, shares": lambda: tt.release(
        counts(), epsilon=1, budget=["0.2", "0.3", "0.5"], insecure_seed=1
    ),
    "adaptive, private": lambda: tt.release(counts(public="regions"), epsilon=1, insecure_seed=1),
    "adaptive, zcdp": lambda: tt.release(counts(), rho=1, definition="zcdp", insecure_seed=1),
    "hybrid": lambda: tt.release(counts(), epsilon=1, view="hybrid", insecure_seed=1),
    "cumulative": lambda: tt.release(counts(), epsilon=1, view="cumulative", insecure_seed=1),
    "sizes and naive": lambda: tt.release(
        counts(), epsilon=1, view=["sizes", "naive", "cumulative"], max_size=12, insecure_seed=1
    ),
    "bottom-up": lambda: tt.release(counts(), epsilon=1, mechanism="bottom-up", insecure_seed=1),
    "tree-dp": lambda: tt.release(
        counts(), epsilon=1, mechanism="tree-dp", max_size=12, insecure_seed=1
    ),
    "chain": lambda: tt.release(
        counts(), epsilon=1, mechanism="chain", max_size=12, insecure_seed=1
    ),
    "cumulative-relaxed": lambda: tt.release(
        counts(), epsilon=1, mechanism="cumulative-relaxed", max_size=12, insecure_seed=1
    ),
    "topdown": lambda: tt.release(
        counts(), epsilon=1, mechanism="topdown", max_size=12, insecure_seed=1
    ),
    "size-bins": lambda: tt.release(
        counts(unit="group", public="regions"), epsilon=1, max_size=12, insecure_seed=1
    ),
    "size-bins, after a look": lambda: tt.release(
        counts(unit="group", public="regions"),
        rho=1,
        definition="zcdp",
        max_size=500,
        insecure_seed=1,
    ),
    "size-bins by attributes": lambda: tt.release(
        counts(by={"county": list("012345")}, levels=["state"], unit="group", public="regions"),
        epsilon=1,
        max_size=99,
        insecure_seed=1,
    ),
    "adaptive by attributes": lambda: tt.release(
        counts(by=["county"], levels=["state"], public="cells"), epsilon=1, insecure_seed=1
    ),
    "histogram": lambda: tt.histogram(np.arange(16), epsilon=1, insecure_seed=1),
    "boxes": lambda: tt.histogram(np.arange(40), mechanism="adaptive", epsilon=1, insecure_seed=1),
    "categories": lambda: tt.histogram(
        list("abca"), categories=["a", "b", "c"], epsilon=1, insecure_seed=1
    ),
    "matrix": lambda: tt.histogram(np.arange(8), mechanism="optimised", epsilon=1, insecure_seed=1),
    "grid": lambda: tt.spatial(
        counts=np.arange(16).reshape(4, 4), edges=[[0, 1, 2, 4, 8]] * 2, epsilon=1, insecure_seed=1
    ),
    "degrees": lambda: tt.degrees([3, 1, 4, 1, 5, 9], epsilon=1, graphical=True, insecure_seed=1),
    "stream": lambda: tt.stream(counts=np.arange(70), horizon=100, epsilon=1, insecure_seed=1),
    "stream, zcdp": lambda: tt.stream(
        counts=np.arange(70), rho=1, definition="zcdp", insecure_seed=1
    ),
    "map": lambda: tt.spatial(counts=np.arange(4096).reshape(64, 64), epsilon=1, insecure_seed=1),
    "pruned map": lambda: tt.spatial(
        counts=np.arange(4096).reshape(64, 64),
        mechanism="quadtree",
        prune=9,
        epsilon=1,
        insecure_seed=1,
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_settings_give_the_same_table(name: str, tmp_path: Path) -> None:
    made = MAKERS[name]()
    made.save(tmp_path / "out")
    again = tt.re_estimate(tmp_path / "out")
    again.save(tmp_path / "again")
    assert tt.verify(tmp_path / "again")
    assert (tmp_path / "again" / "counts.parquet").read_bytes() == (
        tmp_path / "out" / "counts.parquet"
    ).read_bytes()
    assert len(again.manifest["estimated_from"]["manifest_sha256"]) == 64
    assert again.manifest["privacy"] == made.manifest["privacy"]


def test_answers_that_tell_more_sizes_apart_than_would_be_asked_for_now_are_estimated_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = np.random.default_rng(5).integers(1, 500, 3_000)
    table = pa.table({"size": sizes, "state": np.resize(["GA", "NY"], 3_000)})
    data = tt.read(table, size="size", levels=["state"], public="groups")
    made = tt.release(data, epsilon=1, insecure_seed=1)
    made.save(tmp_path / "out")
    # A version that measures the last hundred groups one by one, wherever they lie.
    monkeypatch.setattr("tallytree.group_sizes.plan.first_look.OUTLYING", 0)
    now = tt.release(data, epsilon=1, insecure_seed=1)
    assert max(_block_ends(made)) > max(_block_ends(now))
    assert tt.re_estimate(tmp_path / "out").table().equals(made.table())


def _block_ends(made: Any) -> list[int]:
    return [int(level["block ends"].values.max()) for level in made.noisy.levels if level.queries]


def test_another_norm_or_merge_is_another_estimate_of_the_same_answers(tmp_path: Path) -> None:
    made = tt.release(counts(), epsilon="0.05", view="cumulative", max_size=20, insecure_seed=1)
    made.save(tmp_path / "out")
    other = tt.re_estimate(tmp_path / "out", norm=2, merge="average")
    assert other.verify()
    assert not other.table().equals(made.table())
    asked_so = tt.release(
        counts(),
        epsilon="0.05",
        view="cumulative",
        max_size=20,
        norm=2,
        merge="average",
        insecure_seed=1,
    )
    assert other.table().equals(asked_so.table())
    assert other.manifest["mechanism"] == asked_so.manifest["mechanism"]
    other.save(tmp_path / "other")
    tt.verify(tmp_path / "other").raise_if_failed()


@pytest.mark.parametrize("name", ["adaptive", "histogram", "map", "stream"])
def test_a_choice_that_a_mechanism_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    MAKERS[name]().save(tmp_path / "out")
    with pytest.raises(RequestError, match="has no norm to choose"):
        tt.re_estimate(tmp_path / "out", norm=2)


def test_without_measurements_there_is_nothing_to_estimate_from(tmp_path: Path) -> None:
    for name in ("adaptive", "histogram", "map", "degrees", "grid", "stream"):
        MAKERS[name]().save(tmp_path / name, noisy=False)
        with pytest.raises(RequestError, match="without its raw measurements"):
            tt.re_estimate(tmp_path / name)
