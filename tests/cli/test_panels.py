"""The help shows options by the question that they answer, at most 25 of them unless all are asked
for.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner

from tallytree.cli import load_commands
from tallytree.cli.app import app
from tallytree.cli.flags import MOST_SHOWN
from tallytree.cli.lazy import TASKS
from tallytree.cli.panels import HELP
from tallytree.options.panels import PANELS

COMMANDS: dict[str, Any] = {
    f"{name} {sub}".strip(): inner
    for name, command in load_commands().items()
    for sub, inner in getattr(command, "commands", {"": command}).items()
}
LONG = [name for name, command in COMMANDS.items() if command.left_out]


def page(*words: str) -> str:
    done = CliRunner().invoke(app, [*words], prog_name="tallytree", env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.output


def options_on(text: str) -> list[str]:
    return re.findall(r"^│ +(?:\* +)?(--[\w-]+)", text, re.MULTILINE)


def panels_on(text: str) -> list[str]:
    return re.findall(r"^╭─ (.+?) ─+╮$", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_shows_at_most_25_options_in_the_panels_of_their_questions(name: str) -> None:
    text = page(*name.split(), "--help")
    assert 1 <= len(options_on(text)) <= MOST_SHOWN
    shown = [panel for panel in panels_on(text) if panel != "Arguments"]
    assert shown == [panel for panel in (*PANELS, HELP) if panel in shown]


@pytest.mark.parametrize("name", LONG)
def test_the_whole_help_shows_every_option(name: str) -> None:
    command = COMMANDS[name]
    every = {one.opts[0]: one.name for one in command.params if one.param_type_name == "option"} | {
        "--help": "help"
    }
    assert set(options_on(page(*name.split(), "--help-all"))) == set(every)
    short = options_on(page(*name.split(), "--help"))
    assert {every[flag] for flag in short} == set(every.values()) - command.left_out


def test_commands_with_few_options_show_them_all() -> None:
    assert {"release", "histogram", "spatial"} <= set(LONG)
    for name, command in COMMANDS.items():
        count = sum(one.param_type_name == "option" for one in command.params)
        assert (count + 1 > MOST_SHOWN) == (name in LONG), name


def test_what_is_needed_comes_first_in_its_panel_and_is_marked() -> None:
    text = " ".join(page("release", "--help").replace("│", " ").split())
    for first, rest in (("--group", "--by"), ("--epsilon", "--unit"), ("--out", "--overwrite")):
        assert text.index(f"{first} <") < text.index(f"{rest} ")
    assert "Folder to write the release to. (needed)" in text
    assert "(needed unless with --size)" in text
    assert "(needed)" not in page("evaluate", "--help")


def test_the_whole_help_needs_no_argument() -> None:
    assert "--insecure-seed" in page("release", "--help-all")
    assert "--insecure-seed" not in page("release", "--help")


def test_the_program_says_what_it_is_and_where_to_begin() -> None:
    said = [line.strip() for line in page("--help").splitlines() if line.strip()]
    first = " ".join(said[1:3])
    assert first.startswith("Publish tables of counts that add up, with a differential privacy")
    assert "Begin with: tallytree demo" in first


def test_commands_are_listed_by_task() -> None:
    assert panels_on(page("--help")) == ["Options", *TASKS]


def test_each_example_stands_on_a_line_of_its_own() -> None:
    text = page("release", "--help")
    assert len(re.findall(r"^ Example: tallytree release", text, re.MULTILINE)) == 2
