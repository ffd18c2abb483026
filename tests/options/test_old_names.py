"""Names of before still work for one version, warn where they are used, and say the same."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.streams.counter import StreamCounter

COUNTS = np.arange(16).reshape(4, 4)
FIXED: dict[str, Any] = {"epsilon": 1, "insecure_seed": 1}
KEYWORDS: dict[str, tuple[Any, str, str, Any]] = {
    "histogram": (
        lambda **how: tt.histogram(COUNTS[0], **FIXED, **how),
        "strategy",
        "mechanism",
        "flat",
    ),
    "map": (
        lambda **how: tt.spatial(counts=COUNTS, **FIXED, **how),
        "method",
        "mechanism",
        "quadtree",
    ),
    "degrees": (
        lambda **how: tt.degrees([3, 1, 2], **FIXED, **how),
        "method",
        "mechanism",
        "sorted",
    ),
    "allow_negative": (
        lambda **how: tt.spatial(counts=COUNTS, **FIXED, **how),
        "allow_negative",
        "nonnegative",
        None,
    ),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_an_old_keyword_says_the_same_and_warns_here(name: str) -> None:
    make, before, now, value = KEYWORDS[name]
    with pytest.warns(FutureWarning, match=f"{before} is now {now}") as heard:
        old = make(**{before: True if value is None else value})
    assert Path(heard[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = make(**{now: "no" if value is None else value})
    assert old.manifest == new.manifest
    assert old.table().equals(new.table())


def test_old_and_new_name_together_are_refused() -> None:
    with pytest.raises(RequestError, match="method is the old name of mechanism"):
        tt.spatial(counts=COUNTS, epsilon=1, method="flat", mechanism="quadtree")


@pytest.mark.filterwarnings("error")
def test_old_keywords_of_answers_and_old_attributes() -> None:
    line, area = (
        tt.histogram(COUNTS[0], **FIXED),
        tt.spatial(counts=COUNTS, mechanism="flat", **FIXED),
    )
    counter = StreamCounter(10, **FIXED)
    for ask in (
        lambda: line.range(0, 2, level=0.5),
        lambda: line.total(level=0.5),
        lambda: counter.count(level=0.5),
    ):
        with pytest.warns(FutureWarning, match="level is now confidence"):
            assert ask().confidence == 0.5
    with pytest.raises(TypeError, match="twice"):
        line.total(level=0.5, confidence=0.5)
    for answer in (
        line.total(),
        line.quantile(0.5),
        area.total(),
        area.ranges([[(0, 1), (0, 1)]]),
        line.bin_answers(),
    ):
        with pytest.warns(FutureWarning, match="standard_error is now std_error"):
            assert np.array_equal(answer.standard_error, answer.std_error)
    with pytest.warns(FutureWarning, match="level is now confidence"):
        assert line.total().level == 0.95
    with pytest.warns(FutureWarning, match="measurements is now noisy"):
        assert area.measurements is area.noisy
    with pytest.warns(FutureWarning, match="method is now mechanism"):
        assert area.method == "flat"
    with pytest.warns(FutureWarning, match="strategy is now mechanism"):
        StreamCounter(10, strategy="tree", **FIXED)
    with pytest.warns(FutureWarning, match="method is now mechanism"):
        tt.plan(area, epsilon=1, method="flat", runs=1)


def test_an_old_flag_is_told_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "ages.parquet")
    bins = [
        "--column",
        "age",
        "--bins",
        "4",
        "--bounds",
        "0,4",
        "--epsilon",
        "1",
        "--insecure-seed",
        "1",
    ]
    for flag in ("--strategy", "--mechanism"):
        with pytest.raises(SystemExit) as end:
            main(
                [
                    "histogram",
                    str(tmp_path / "ages.parquet"),
                    *bins,
                    flag,
                    "flat",
                    "--out",
                    str(tmp_path / flag),
                ]
            )
        assert end.value.code == 0
        assert ("strategy is now mechanism" in capsys.readouterr().err) == (flag == "--strategy")
    tables = [tt.load(tmp_path / flag).table() for flag in ("--strategy", "--mechanism")]
    assert tables[0].equals(tables[1])
