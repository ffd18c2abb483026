"""Flags that commands with few options of their own share, as the groups of options declare them."""

from __future__ import annotations

from typing import Annotated

from tallytree.cli.commands import declared
from tallytree.options.groups import Printing

AsJson = Annotated[bool, declared(Printing, "json")]
