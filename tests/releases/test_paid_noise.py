"""Paying, drawing and forgetting, in one place for every kind."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.keeping import NOTHING_KEPT, paid_noise

PEOPLE = pa.table({"household": [1, 1, 2], "state": ["GA", "GA", "NY"]})
READ: dict[str, Any] = {"group": "household", "levels": ["state"], "public": "groups"}
RELEASES: dict[str, tuple[str, Any]] = {
    "adaptive": (
        "tallytree.group_sizes.publish.measure_people",
        lambda: tt.release(tt.read(PEOPLE, **READ), epsilon=1),
    ),
    "matching": (
        "tallytree.group_sizes.measure.views.measure_level",
        lambda: tt.release(tt.read(PEOPLE, **READ), epsilon=1, view="hybrid"),
    ),
    "histogram": (
        "tallytree.ranges.publish.measure_histogram",
        lambda: tt.histogram([1, 2], epsilon=1),
    ),
    "degrees": (
        "tallytree.degree_sequences.publish.measure_sorted_counts",
        lambda: tt.degrees([1, 2], epsilon=1),
    ),
    "stream": (
        "tallytree.streams.publish.measure_arrivals",
        lambda: tt.stream(counts=[1, 2], epsilon=1),
    ),
    "map": (
        "tallytree.boxes.publish.measure_map",
        lambda: tt.spatial(counts=[[1, 2], [3, 4]], epsilon=1),
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_the_key_is_forgotten_after_an_exception(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams: list[KeyStream] = []

    def fail(*arguments: Any, **options: Any) -> None:
        streams.extend(
            value for value in (*arguments, *options.values()) if isinstance(value, KeyStream)
        )
        raise RuntimeError("the machine is on fire")

    where, release = RELEASES[name]
    monkeypatch.setattr(where, fail)
    with pytest.raises(RuntimeError, match="on fire"):
        release()
    (stream,) = streams
    with pytest.raises(RequestError, match="was forgotten"):
        stream.lend_key("a test")


def test_the_key_is_forgotten_after_success() -> None:
    privacy = {"definition": "pure", "epsilon": "1", "unit": {"contributions": 1}}
    with paid_noise(NOTHING_KEPT, {"privacy": privacy}, None, read=None) as paid:
        stream = paid.stream
        stream.lend_key("a test")
    with pytest.raises(RequestError, match="was forgotten"):
        stream.lend_key("a test")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_cannot_draw_under_the_key() -> None:
    stream = KeyStream.from_system()
    offsets = np.array([0, 3])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            stream.words(0, "q", offsets=offsets)
            os.write(writer, b"drew")
        except RequestError as error:
            os.write(writer, b"refused" if "another process" in str(error) else b"other")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert os.read(reader, 100) == b"refused"
    os.close(reader)
    assert len(stream.words(0, "q", offsets=offsets)) == 3


@pytest.mark.parametrize("how", [{}, {"view": "hybrid"}])
def test_simulations_for_intervals_touch_nothing_that_is_paid_for(
    how: dict[str, Any], tmp_path: Path
) -> None:
    """While a release is made in a folder, copies of it draw noise of their own: not the kept
    answers, nor among them.
    """
    people = pa.table({"household": np.repeat(np.arange(200), np.arange(200) % 4 + 1)})
    counts = tt.read(people, group="household", public="groups")
    made = tt.release(counts, epsilon=0.1, **how, intervals=3, out=tmp_path / "out")
    kept = tt.load(tmp_path / "out")
    assert tt.verify(tmp_path / "out")
    np.testing.assert_array_equal(kept.counts.count, made.counts.count)
    again = tt.re_estimate(tmp_path / "out").table()
    assert again.equals(made.table().select(again.column_names))
    # Copies that were given the kept answers would all be the same.
    assert kept.intervals.std_error.max() > 0.5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
