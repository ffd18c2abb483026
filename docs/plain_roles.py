"""Griffe extension: docstrings name things as Sphinx does (a role before the backticks); on the
site the role is left out.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|mod|data|meth|attr):`~?([^`]+)`")


class PlainRoles(griffe.Extension):
    """Turn ``:func:`name``` into plain code."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
