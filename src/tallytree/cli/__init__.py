"""The command line: each command parses, calls one function, prints."""

from tallytree.cli.app import app, main
from tallytree.cli.lazy import load_commands

__all__ = ["app", "load_commands", "main"]
