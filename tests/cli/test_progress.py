"""The progress bar says what takes the time."""

import importlib
import io
from collections.abc import Callable
from contextlib import contextmanager

import pytest
from rich.console import Console

from tallytree.cli.app import progress_bar
from tallytree.kernels import jit

app = importlib.import_module("tallytree.cli.app")


def test_compiling_is_named_until_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[Callable[[], None]] = []

    @contextmanager
    def telling(compiling: Callable[[], None]):  # type: ignore[no-untyped-def]
        listeners.append(compiling)
        yield
        listeners.remove(compiling)

    screen = io.StringIO()
    monkeypatch.setattr(app, "messages", Console(file=screen, force_terminal=True, width=120))
    monkeypatch.setattr(jit, "telling", telling)
    with progress_bar() as progress:
        progress(1, 3, "estimating county")
        assert len(listeners) == 1
        listeners[0]()
        assert "estimating county (compiling, once per machine)" in screen.getvalue()
        progress(2, 3, "matching")
    assert "matching (compiling" not in screen.getvalue()
    assert "matching" in screen.getvalue()
    assert listeners == []
