"""Every public name has an example, and what docstrings show is what comes out.

Examples of public names go on from the lines at the top of the Python reference, in a folder that
holds the release that these lines save; all others stand alone.
"""

import doctest
import importlib
import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest

import tallytree
from tests.test_docs import ROOT, blocks_of

PACKAGE = Path(tallytree.__file__).parent
MODULES = [
    ".".join(("tallytree", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
# The former name of maps, which warns wherever it is called.
FORMER = {"grid_histogram", "GridHistogramOptions"}
PUBLIC = sorted(set(tallytree.__all__) - {"__version__"} - FORMER)


@pytest.fixture(scope="module")
def first_lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder and the names that the lines at the top of the Python reference leave."""
    place, names = tmp_path_factory.mktemp("reference"), dict[str, Any]()
    block = blocks_of(ROOT / "docs/reference/python.md")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        exec(block.code, names)
    return place, names


def wrong_examples(examples: list[doctest.DocTest]) -> str:
    """What examples print instead of what they show."""
    runner, wrong = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), list[str]()
    for example in examples:
        runner.run(example, out=wrong.append)
    return "".join(wrong)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_that_runs(
    name: str,
    first_lines: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, names = first_lines
    shutil.copytree(place / "out", tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    public = getattr(tallytree, name)
    text = inspect.getdoc(public) or ""
    shown = doctest.DocTestParser().get_doctest(text, {**names, name: public}, name, None, None)
    assert shown.examples
    assert wrong_examples([shown]) == ""


@pytest.mark.parametrize("name", MODULES)
def test_what_docstrings_show_comes_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    public = {f"tallytree.{tallytree._HOMES[one]}.{one}" for one in PUBLIC}
    found = [test for test in doctest.DocTestFinder().find(module) if test.name not in public]
    assert wrong_examples([test for test in found if test.examples]) == ""
