"""The command line: each command parses, calls one function, prints."""

from tallytree.cli import (
    degrees,
    demo,
    doctor,
    histogram,
    inspect,
    ledger,
    plan,
    release,
    report,
    reproduce,
    spatial,
    stream,
)
from tallytree.cli.app import app, main

# Importing a module registers its commands; they show up in the help in the order of these imports.
COMMANDS = (
    degrees,
    demo,
    doctor,
    histogram,
    inspect,
    ledger,
    plan,
    release,
    report,
    reproduce,
    spatial,
    stream,
)

__all__ = ["COMMANDS", "app", "main"]
