"""Commands that only read releases start without pandas, which stays at hand for who asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tallytree.cli.quick_start import reads_releases_only

pytest.importorskip("pandas")


def fresh(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_arrow_loads_pandas_by_itself_and_not_where_it_was_left_out() -> None:
    look = "import sys, pyarrow as pa\npa.array([1]).to_numpy()\nprint('pandas' in sys.modules)\n"
    leave = "from tallytree.cli.quick_start import leave_pandas_out\nleave_pandas_out()\n"
    assert fresh(look) == ["True"]  # once this fails, nothing need be left out
    assert fresh(leave + look) == ["False"]


def test_pandas_tables_can_still_be_asked_for() -> None:
    code = (
        "from tallytree.cli.quick_start import leave_pandas_out\nleave_pandas_out()\n"
        "import pyarrow as pa\nframe = pa.table({'a': [1, None]}).to_pandas()\n"
        "print(type(frame).__name__, pa.Table.from_pandas(frame).column('a').null_count)"
    )
    assert fresh(code) == ["DataFrame", "1"]


@pytest.mark.parametrize(
    ("words", "only"),
    [
        (["query", "out"], True),
        (["verify", "out", "--json"], True),
        (["report", "out"], True),
        (["report", "out", "--truth", "request.toml"], False),
        (["report", "out", "--truth=request.toml"], False),
        (["release", "people.csv"], False),
        (["--help"], False),
        ([], False),
    ],
)
def test_readers_are_told_from_commands_that_meet_other_tables(
    words: list[str], only: bool
) -> None:
    assert reads_releases_only(words) is only


def test_the_program_leaves_pandas_out_for_readers_alone() -> None:
    code = (
        "import sys\nfrom tallytree import cli\n"
        "cli.leave_pandas_out = lambda: print(sys.argv[1])\n"
        "cli.main = lambda: None\n"
        "for word in ('query', 'release', 'verify'):\n"
        "    sys.argv = ['tallytree', word]\n"
        "    cli.program()\n"
    )
    assert fresh(code) == ["query", "verify"]
