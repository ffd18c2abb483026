"""Options that are given once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

from tallytree.errors import RequestError


class OncePerOption(TyperCommand):
    """A command that refuses an option which is given twice, where the last one would win."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does, after a look at which options there are how often."""
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(list(args))
            for parameter, times in Counter(order).items():
                once = isinstance(parameter, TyperOption) and not (
                    parameter.multiple or parameter.is_flag or parameter.count
                )
                if once and times > 1:
                    raise RequestError(
                        f"{parameter.opts[0]} is given {times} times, and one answer would go "
                        "unseen; give it once."
                    )
        return super().parse_args(ctx, args)
