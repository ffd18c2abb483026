"""Every command explains itself and has an example."""

import pytest

from tallytree.cli import load_commands

COMMANDS = load_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(name: str) -> None:
    command = COMMANDS[name]
    subcommands = getattr(command, "commands", {"": command})
    for sub in subcommands.values():
        assert sub.help, f"{name} has no help"
        assert "Example: tallytree" in sub.help, f"{name} has no example"
        for parameter in sub.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert parameter.help, f"{name}: {parameter.name} has no help"
