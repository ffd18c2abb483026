"""A whole mechanism for group sizes in one file, for ``test_toy_mechanism.py``.

It measures leaves alone, by cumulative counts, and adds them up. Two files of the package are
touched besides: its name goes into ``options/choices.py``, and its object into the table of
mechanisms that no default chooses. This module does both in memory, so it is run in a process of
its own, which ends with the first command that fails: ``python -m tests.group_sizes.toy_mechanism
COMMANDS``, a JSON list of lists of arguments.
"""

import json
import sys
from typing import Literal, get_args

from tallytree.options import choices

NAME = "toy"
choices.Mechanism = Literal[(*get_args(choices.Mechanism), NAME)]  # type: ignore[misc,assignment]

from tallytree.cli import main  # noqa: E402  (after the name)
from tallytree.group_sizes.mechanisms.at_once import AtOnce  # noqa: E402
from tallytree.group_sizes.mechanisms.by_view import add_up_leaves  # noqa: E402
from tallytree.group_sizes.plan.traits import Traits  # noqa: E402
from tallytree.papers.fioretto2021.mechanisms import MECHANISMS  # noqa: E402

TOY = AtOnce(Traits(view="cumulative", totals=("regions",), split="leaves"), add_up_leaves)
MECHANISMS[NAME] = TOY

if __name__ == "__main__":
    for command in json.loads(sys.argv[1]):
        try:
            main(command)
        except SystemExit as ended:
            if ended.code:
                raise
