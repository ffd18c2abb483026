"""Work is spread over threads in chunks that cover everything once, in order; small work needs no
threads.
"""

import threading
import time

import numpy as np
import pytest

from tallytree.kernels import jit


@pytest.fixture(autouse=True)
def four_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "n_workers", lambda: 4)


@pytest.mark.parametrize("seconds", [0, 0.0004, 0.002])
@pytest.mark.parametrize("smallest", [0, 1, 7, 100])
@pytest.mark.parametrize("n_items", [0, 1, 2, 31, 100, 257])
def test_every_item_is_done_once(n_items: int, smallest: int, seconds: float) -> None:
    done = np.zeros(n_items, dtype=np.int64)

    def work(start: int, stop: int) -> tuple[int, int]:
        time.sleep(seconds)
        done[start:stop] += 1
        return start, stop

    jit.run_in_chunks(work, n_items, smallest=smallest)  # type: ignore[arg-type]
    assert done.tolist() == [1] * n_items
    parts = jit.collect_in_chunks(work, n_items, smallest=smallest)
    assert done.tolist() == [2] * n_items
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == n_items
    assert all(stop - start >= smallest for start, stop in parts) or len(parts) == 1


def test_results_come_in_the_same_chunks_however_long_they_take() -> None:
    slow, fast = (
        jit.collect_in_chunks(
            lambda start, stop, pause=pause: time.sleep(pause) or (start, stop), 500
        )
        for pause in (0.0005, 0)
    )
    assert slow == fast


@pytest.mark.parametrize("spread", [jit.run_in_chunks, jit.collect_in_chunks])
def test_threads_do_what_takes_long_and_nothing_else(
    spread: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(np.arange(10**6))  # a second passes between two looks
    seen: set[int] = set()

    def work(start: int, stop: int) -> None:
        seen.add(threading.get_ident())

    monkeypatch.setattr(jit, "perf_counter", lambda: 0.0)
    spread(work, 10_000)  # type: ignore[operator]
    assert seen == {threading.get_ident()}
    monkeypatch.setattr(jit, "perf_counter", lambda: float(next(clock)))
    spread(work, 10_000)  # type: ignore[operator]
    assert len(seen) > 1


@pytest.mark.parametrize("n_cores", [1, 2, 7])
def test_results_come_in_the_same_chunks_on_any_number_of_cores(
    n_cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = jit.collect_in_chunks(lambda start, stop: (start, stop), 500)
    monkeypatch.setattr(jit, "n_workers", lambda: n_cores)
    assert jit.collect_in_chunks(lambda start, stop: (start, stop), 500) == here
    assert len(here) > 7


def test_pieces_side_by_side_keep_their_order_and_share_the_cores() -> None:
    """Each piece has one thread, and what it spreads over chunks stays in it."""

    def work(piece: int) -> tuple[int, set[int]]:
        seen: set[int] = set()
        jit.run_in_chunks(
            lambda start, stop: time.sleep(0.002) or seen.add(threading.get_ident()), 100
        )
        jit.collect_in_chunks(lambda start, stop: seen.add(threading.get_ident()), 100)
        return piece, seen

    done = jit.side_by_side(work, list(range(12)))
    assert [piece for piece, _ in done] == list(range(12))
    assert all(len(seen) == 1 for _, seen in done)
    assert 1 < len(set.union(*(seen for _, seen in done))) <= 4
    assert jit.side_by_side(work, []) == []
    # The threads are gone: what follows is spread again.
    assert not getattr(jit._own, "busy", False)
