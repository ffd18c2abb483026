"""``python -m tallytree``."""

from tallytree.cli import main

main()
