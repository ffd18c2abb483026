"""The engine where its surroundings are poor."""

import duckdb
import pytest

from tallytree.errors import InputError
from tallytree.ingest.engine import _show_no_progress, guarded, open_session


class Connection:
    """A connection of which only the DuckDB inside is used."""

    def __init__(self, error: Exception) -> None:
        self.con = self
        self.error = error

    def execute(self, statement: str) -> None:
        raise self.error


def test_a_kernel_without_widgets_is_no_obstacle() -> None:
    # What DuckDB 2 raises in a Jupyter kernel without ipywidgets, whatever the setting is set to.
    _show_no_progress(
        Connection(duckdb.InvalidInputException("required package 'ipywidgets' is missing"))
    )


def test_other_errors_of_the_setting_are_not_hidden() -> None:
    with pytest.raises(duckdb.CatalogException):
        _show_no_progress(Connection(duckdb.CatalogException("no such setting")))


def test_no_bar_is_drawn() -> None:
    with open_session() as session:
        assert session.connection.con.execute(
            "SELECT current_setting('enable_progress_bar')"
        ).fetchall() == [(False,)]


def test_what_does_not_fit_in_memory_is_told_from_damage() -> None:
    """DuckDB alone cannot write encrypted files, and nothing is spilled in the clear."""

    def spill() -> None:
        raise duckdb.Error("DuckDB currently has a read-only crypto module loaded. Household 17 …")

    with pytest.raises(InputError, match="more memory") as refused:
        guarded(spill, "people.parquet")
    assert "17" not in str(refused.value)
