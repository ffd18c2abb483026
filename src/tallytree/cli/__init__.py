"""The command line: each command parses, calls one function, prints."""

from tallytree.cli import degrees, demo, histogram, inspect, ledger, release, reproduce
from tallytree.cli.app import app, main

__all__ = ["app", "degrees", "demo", "histogram", "inspect", "ledger", "main", "release", "reproduce"]
