"""The command line: each command parses, calls one function, prints."""

from tallytree.cli.app import app, main

__all__ = ["app", "main"]
