"""The documentation is true: every example on every page runs, and shown output is what comes out
but for its numbers.

A page is a script. Its ``python`` blocks share one namespace; its ``console`` blocks run the
commands after ``$``; all of them run in order, in an empty folder. A ``text`` block right after one
of them must show what that block printed.
"""

import importlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.cli_reference import PAGE, reference
from rich.console import Console

import tallytree
from tallytree.cli import main
from tallytree.spark.session import spark_session
from tests.ledger.postgres_server import postgres_server

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
RUNNABLE = ("python", "console", "r")
# Pages whose examples need a server, another program or the reader's own file: the page stands here
# with the fixture that provides it.
NEEDS = {
    "docs/index.md": "people_file",
    "docs/how-to/postgres.md": "postgres_address",
    "docs/how-to/spark.md": "spark_cluster",
    "docs/how-to/r.md": "r_program",
}


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    code: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


PAGES_WITH_EXAMPLES = [
    page for page in PAGES if any(block.language in RUNNABLE for block in blocks_of(page))
]


@pytest.fixture
def people_file(tmp_path: Path) -> None:
    """A file of people in the folder of the page."""
    rows = ["household,state,county", "1,Georgia,Cobb", "1,Georgia,Cobb", "2,Georgia,Fulton"]
    (tmp_path / "people.csv").write_text("\n".join([*rows, "3,Ohio,Lake"]), encoding="utf-8")


@pytest.fixture
def postgres_address() -> Iterator[None]:
    """DATABASE_URL names an empty database on a running server, or a loud skip."""
    with postgres_server() as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", address.format(database="postgres"))
        yield


@pytest.fixture
def spark_cluster() -> Iterator[None]:
    """A Spark session whose workers find the package, or a loud skip."""
    pytest.importorskip(
        "pyspark", reason="SKIPPED LOUDLY: install the extra spark to run this page"
    )
    if shutil.which("java") is None:
        pytest.skip("SKIPPED LOUDLY: Spark needs Java 17 or later, and there is no java here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        )
        session = spark_session(
            "local[1]", {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
        )
        yield
        session.stop()


@pytest.fixture
def r_program() -> None:
    """Rscript with jsonlite, or a loud skip."""
    if shutil.which("Rscript") is None:
        pytest.skip(
            "SKIPPED LOUDLY: no Rscript found; install r-base-core and r-cran-jsonlite to run this "
            "page"
        )


def parameter(page: Path):  # type: ignore[no-untyped-def]
    marks = (
        [pytest.mark.filterwarnings("ignore")] if name_of(page) == "docs/how-to/spark.md" else []
    )
    return pytest.param(
        page, id=name_of(page), marks=marks
    )  # Spark leaves sockets open, which is its own business


@pytest.mark.parametrize("page", [parameter(page) for page in PAGES_WITH_EXAMPLES])
def test_every_example_runs(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    if name_of(page) in NEEDS:
        request.getfixturevalue(NEEDS[name_of(page)])
    terminal = Console(force_terminal=True, width=120, no_color=True, color_system=None)
    monkeypatch.setattr(importlib.import_module("tallytree.cli.app"), "output", terminal)
    capture = request.getfixturevalue("capsys")
    capture.readouterr()
    printed, in_r = "", ""
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        if block.language == "python":
            # Line numbers of a traceback are those of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
            printed = capture.readouterr().out
        elif block.language == "console":
            run_console(block.code, where)
            printed = "".join(capture.readouterr())
        elif block.language == "r":
            in_r += block.code  # blocks of a page share one session, as in Python
            printed = run_r(in_r, where)
        elif block.language == "text" and printed:
            assert skeleton(block.code) == skeleton(printed), (
                f"{where} shows other output:\n{printed}"
            )
            printed = ""


def run_r(code: str, where: str) -> str:
    """Run R code in a program of its own; what it printed."""
    ended = subprocess.run(
        ["Rscript", "--vanilla", "-"],
        input=code,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{where}: {ended.stderr}"
    return ended.stdout


def run_console(code: str, where: str) -> None:
    """Run every ``tallytree`` command of a block; other commands are refused, so that nothing goes
    untested.
    """
    commands = re.sub(r"\\\n\s*", "", code).splitlines()
    for command in commands:
        assert command.startswith("$ tallytree "), (
            f"{where}: a console block holds '$ tallytree …' lines only"
        )
        words = shlex.split(command)[2:]
        with pytest.raises(SystemExit) as ended:
            main([os.path.expandvars(word) for word in words])
        assert ended.value.code in (0, None), f"{where}: {command} ended with {ended.value.code}"


def skeleton(output: str) -> str:
    """Output without what differs from run to run: digits, the width of columns and rules of
    tables.
    """
    words = re.sub(r"[┏┳┓┡╇┩└┴┘━─┃│]+", " ", output)
    return " ".join(re.sub(r"-?[\d.,]*\d", "0", words).split())


def test_the_cli_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m docs.cli_reference"


def test_skeletons_tell_words_apart() -> None:
    assert skeleton("│ US │ 1,234 │") == skeleton("│ US    │ 7 │")
    assert skeleton("county 3") != skeleton("state 3")


def test_the_python_reference_holds_every_public_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    documented = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert set(tallytree.__all__) - {"__version__"} <= documented


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [
        target.partition("#")[0]
        for target in re.findall(r"\]\(([^)\s]+)\)", prose)
        if "://" not in target
    ]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_page_can_be_reached() -> None:
    linked = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M))
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s#]+\.md)", page.read_text(encoding="utf-8")):
            if "://" not in target and page.is_relative_to(DOCS):
                linked.add((page.parent / target).resolve().relative_to(DOCS).as_posix())
    pages = {page.relative_to(DOCS).as_posix() for page in PAGES if page.is_relative_to(DOCS)}
    assert len(pages) > 40
    assert pages - linked == set()


def test_the_menu_is_short() -> None:
    menu = re.search(r"^nav:.*?^(?=\S)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M | re.S)
    assert menu is not None
    assert len(re.findall(r"^  - .*:$", menu[0], re.M)) == 4
    assert 15 < len(re.findall(r"^      - .*\.md$", menu[0], re.M)) <= 25


def test_pages_are_short_enough_to_be_read() -> None:
    """Pages of experiments and the reference that is written from the code are looked up; those of
    tables of people and of values, and of streams, count on top.
    """
    words = {
        name_of(page): len(page.read_text(encoding="utf-8").split())
        for page in PAGES
        if page.is_relative_to(DOCS) and page.parent.name != "experiments" and page != PAGE
    }
    assert {name: n for name, n in words.items() if "/concepts/" in name and n > 1500} == {}
    on_top = ("how-to/tables.md", "concepts/tables.md", "how-to/values.md", "concepts/streams.md")
    shared = sum(n for name, n in words.items() if not name.endswith(on_top))
    assert 20_000 < shared <= 35_000


def test_the_glossary_is_short() -> None:
    page = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    terms = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert 15 < len(terms) <= 25


def test_recipes_name_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_0-9]+/[\w/.]*)`", text))
    places = [ROOT / "src" / "tallytree", ROOT]
    missing = {
        name
        for name in named
        if not any((at / name).exists() or (at / f"{name}.py").exists() for at in places)
    }
    assert len(named) > 20
    assert missing == set()
