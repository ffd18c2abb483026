"""An option that is given twice is refused, where one of the two would go unseen."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tallytree.cli.app import app
from tallytree.errors import RequestError
from tests.cli.test_panels import COMMANDS

# An option of each command that takes a value, if it has one.
VALUED = {
    name: next(
        (
            one.opts[0]
            for one in command.params
            if one.param_type_name == "option" and not one.is_flag and not one.multiple
        ),
        None,
    )
    for name, command in COMMANDS.items()
}


@pytest.mark.parametrize(
    "call",
    [
        ["query", "out", "--size", "12", "--size", "13"],
        ["query", "out", "--size=12", "--size=13"],
        ["query", "out", "--between", "1", "2", "--between", "3", "4"],
        ["release", "x.csv", "--epsilon", "1", "--epsilon", "2"],
        ["verify", "out", "--public-key", "a", "--public-key", "b"],
        ["ledger", "status", "--ledger", "a", "--ledger", "b"],
    ],
    ids=lambda call: call[0],
)
def test_options_are_given_once(call: list[str]) -> None:
    result = CliRunner().invoke(app, call)
    assert isinstance(result.exception, RequestError)
    assert "2 times" in str(result.exception)


@pytest.mark.parametrize("name", [name for name, option in VALUED.items() if option])
def test_every_command_takes_an_option_once(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), f"{VALUED[name]}=1", f"{VALUED[name]}=2"])
    assert isinstance(result.exception, RequestError)
    assert f"{VALUED[name]} is given 2 times" in str(result.exception)


def test_options_that_repeat_may_repeat() -> None:
    call = ["query", "nowhere", "--where", "a=b", "--where", "c=d", "--json", "--json"]
    assert "times" not in str(CliRunner().invoke(app, call).exception)
