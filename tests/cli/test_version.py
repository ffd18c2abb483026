"""The version is written once, and told by the package, the command line and the installed
distribution.
"""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

import tallytree
from tallytree.cli import main


def test_the_version_is_the_same_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tallytree {tallytree.__version__}\n"
    assert importlib.metadata.version("tallytree") == tallytree.__version__


def test_the_build_takes_it_from_the_package() -> None:
    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert "version" not in project["project"]
    assert (Path(__file__).parents[2] / project["tool"]["hatch"]["version"]["path"]).exists()
