"""The command line: each command parses, calls one function, prints."""

from tallytree.cli import demo, inspect, ledger, release, reproduce
from tallytree.cli.app import app, main

__all__ = ["app", "demo", "inspect", "ledger", "main", "release", "reproduce"]
