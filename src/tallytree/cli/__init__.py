"""The command line: each command parses, calls one function, prints."""

from tallytree.cli import demo, inspect, release, reproduce
from tallytree.cli.app import app, main

__all__ = ["app", "demo", "inspect", "main", "release", "reproduce"]
