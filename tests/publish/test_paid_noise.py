"""Paying, drawing and forgetting, in one place for every kind."""

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.keeping import paid_noise

PEOPLE = pa.table({"household": [1, 1, 2], "state": ["GA", "GA", "NY"]})
READ: dict[str, Any] = {"group": "household", "levels": ["state"], "public": "groups"}
RELEASES: dict[str, tuple[str, Any]] = {
    "adaptive": ("tallytree.publish.group_sizes.run_adaptive", lambda: tt.release(tt.read(PEOPLE, **READ), epsilon=1)),
    "matching": (
        "tallytree.publish.group_sizes.measure_level",
        lambda: tt.release(tt.read(PEOPLE, **READ), epsilon=1, view="hybrid"),
    ),
    "histogram": ("tallytree.publish.histogram.measure_histogram", lambda: tt.histogram([1, 2], epsilon=1)),
    "degrees": ("tallytree.publish.degrees.measure_sorted_counts", lambda: tt.degrees([1, 2], epsilon=1)),
    "stream": ("tallytree.publish.stream.measure_arrivals", lambda: tt.stream(counts=[1, 2], epsilon=1)),
    "map": ("tallytree.publish.spatial.measure_map", lambda: tt.spatial(counts=[[1, 2], [3, 4]], epsilon=1)),
}


@pytest.mark.parametrize("name", RELEASES)
def test_the_key_is_forgotten_after_an_exception(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[KeyStream] = []

    def fail(*arguments: Any, **options: Any) -> None:
        streams.extend(value for value in (*arguments, *options.values()) if isinstance(value, KeyStream))
        raise RuntimeError("the machine is on fire")

    where, release = RELEASES[name]
    monkeypatch.setattr(where, fail)
    with pytest.raises(RuntimeError, match="on fire"):
        release()
    (stream,) = streams
    with pytest.raises(RequestError, match="was forgotten"):
        stream.export_key()


def test_the_key_is_forgotten_after_success() -> None:
    with paid_noise(None, {}, None) as paid:
        stream = paid.stream
        stream.export_key()
    with pytest.raises(RequestError, match="was forgotten"):
        stream.export_key()


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
