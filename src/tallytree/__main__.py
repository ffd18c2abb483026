"""``python -m tallytree``."""

from tallytree.cli import program

program()
