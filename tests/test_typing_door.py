"""A type checker sees the public functions as a user calls them: every keyword, its type, and the names it accepts."""

import re
from pathlib import Path

import pytest

import tallytree

mypy = pytest.importorskip("mypy.api", reason="mypy is not installed: pip install mypy")
pytestmark = pytest.mark.slow

SOURCE = Path(tallytree.__file__).parents[1]
RIGHT = """import tallytree as tt

counts = tt.read("people.parquet", group="household", levels=["state", "county"])
reveal_type(counts)
reveal_type(tt.release(counts, epsilon=1, mechanism="matching", view=["hybrid", "sizes", "sizes"], progress=print))
reveal_type(tt.release(counts, tt.ReleaseOptions(epsilon="1/3"), progress=print))
reveal_type(tt.read("people.parquet", tt.ReadOptions(group="household")))
reveal_type(tt.histogram([1, 2], epsilon=1, width=1, bounds=(0, 10), strategy="wavelet"))
reveal_type(tt.histogram(counts=[1, 2], rho=0.5, definition="zcdp"))
reveal_type(tt.spatial([[1.0, 2.0]], epsilon=1, box=[(0, 1), (0, 1)], method="quadtree"))
reveal_type(tt.degrees([1, 2], epsilon=1, mechanism="sorted"))
reveal_type(tt.stream("visits.parquet", column="day", until="2025-01-31", every="day", start="2025-01-01", epsilon=1))
reveal_type(tt.stream(counts=[1, 2], horizon=365, rho=1, definition="zcdp", strategy="square-root", out="visits"))
reveal_type(tt.StreamCounter(365, epsilon=1).add(3))
reveal_type(tt.plan(tt.release(counts, epsilon=1), epsilon=1, mechanism="chain"))
reveal_type(tt.__version__)
"""
REVEALED = (
    "ConfidentialCounts", "Release", "Release", "ConfidentialCounts", "RangeHistogram", "RangeHistogram", "SpatialRelease",
    "DegreeSequence", "StreamRelease", "StreamRelease", "Answer", "Prediction", "str",
)  # fmt: skip
WRONG = {
    "a misspelt keyword of read": 'tt.read("people.parquet", grop="household")',
    "an internal hook of read": 'tt.read("people.parquet", group="household", counter=print)',
    "a wrong type for read": 'tt.read("people.parquet", group=3)',
    "a misspelt keyword of release": "tt.release(counts, epsilom=1)",
    "a misspelt mechanism": 'tt.release(counts, epsilon=1, mechanism="matchng")',
    "a misspelt mechanism in options": 'tt.ReleaseOptions(epsilon=1, mechanism="matchng")',
    "a misspelt view of one level": 'tt.release(counts, epsilon=1, view=["hybrid", "hybird"])',
    "a misspelt definition": 'tt.release(counts, rho=1, definition="zCDP")',
    "options of another kind": "tt.release(counts, tt.HistogramOptions(epsilon=1))",
    "options both ways": "tt.release(counts, tt.ReleaseOptions(), epsilon=1)",
    "data of another kind": 'tt.release("people.parquet", epsilon=1)',
    "a misspelt strategy": 'tt.histogram([1], epsilon=1, mechanism="wavlet")',
    "a misspelt way to be nonnegative": 'tt.histogram([1], epsilon=1, nonnegative="clip")',
    "a misspelt method of maps": 'tt.spatial([[1.0, 2.0]], epsilon=1, mechanism="quadtre")',
    "a misspelt policy": 'tt.spatial([[1.0, 2.0]], epsilon=1, outside="ignore")',
    "a misspelt method of degrees": 'tt.degrees([1], epsilon=1, mechanism="sort")',
    "a misspelt step": 'tt.stream("visits.parquet", column="day", until=3, every="hour", epsilon=1)',
    "a misspelt keyword of a counter": "tt.StreamCounter(365, epsilom=1)",
    "a misspelt strategy of grids": 'tt.grid_histogram([[1]], epsilon=1, strategy="wavelet")',
    "a misspelt mechanism in a plan": 'tt.plan(tt.release(counts, epsilon=1), epsilon=1, mechanism="matchng")',
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says about one script: right calls first, then one wrong call per line."""
    script = tmp_path_factory.mktemp("user") / "script.py"
    script.write_text(RIGHT + "\n".join(WRONG.values()) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(SOURCE))
        options = [
            "--strict",
            "--no-error-summary",
            "--hide-error-context",
            "--config-file=",
            f"--cache-dir={script.parent}",
        ]
        said, complained, _ = mypy.run([*options, "--follow-imports=silent", "--ignore-missing-imports", str(script)])
    assert not complained
    return [line for line in said.splitlines() if line.startswith(str(script))]


def line_of(message: str) -> int:
    found = re.match(r"[^:]+:(\d+):", message)
    assert found is not None, message
    return int(found[1])


def test_right_calls_pass_and_have_their_types(checked: list[str]) -> None:
    right = [message for message in checked if line_of(message) <= RIGHT.count("\n")]
    assert not [message for message in right if "error:" in message]
    revealed = [re.sub(r'.*Revealed type is "(?:.*\.)?(\w+)".*', r"\1", message) for message in right]
    assert tuple(revealed) == REVEALED


@pytest.mark.parametrize("what", WRONG)
def test_wrong_calls_fail_on_their_line(what: str, checked: list[str]) -> None:
    line = RIGHT.count("\n") + 1 + list(WRONG).index(what)
    assert [message for message in checked if line_of(message) == line and "error:" in message], what


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tallytree.__file__).parent / "py.typed").exists()
