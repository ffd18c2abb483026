"""Options that all commands spell alike: how much privacy, where to write, how to print."""

from __future__ import annotations

from typing import Annotated

import typer

Epsilon = Annotated[str | None, typer.Option(help="Privacy loss, for example 1.0 or 1/3.")]
Rho = Annotated[str | None, typer.Option(help="Privacy loss under --definition zcdp.")]
DefinitionName = Annotated[str, typer.Option(help="pure or zcdp.")]
InsecureSeed = Annotated[int | None, typer.Option(help="Experiments only: repeatable noise, NOT PRIVATE.")]
RowsOfUnit = Annotated[int, typer.Option(help="Rows that count of one --unit, or that one unit has at most.")]
UnitName = Annotated[str, typer.Option(help="What one protected unit is called (person, trip …).")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a release that is already there.")]
NoNoisy = Annotated[bool, typer.Option("--no-noisy", help="Leave the raw noisy measurements out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
