"""The command line: each command parses, calls one function, prints."""

from tallytree.cli import (
    degrees,
    demo,
    doctor,
    finish,
    histogram,
    inspect,
    ledger,
    plan,
    release,
    report,
    reproduce,
    spatial,
)
from tallytree.cli.app import app, main

# Importing a module registers its commands; they show up in the help in the order of these imports.
COMMANDS = (
    degrees,
    demo,
    doctor,
    finish,
    histogram,
    inspect,
    ledger,
    plan,
    release,
    report,
    reproduce,
    spatial,
)

__all__ = ["COMMANDS", "app", "main"]
