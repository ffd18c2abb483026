"""The sentence for each thing that can be wrong with the rows. None of them shows a value."""

from __future__ import annotations

from collections.abc import Sequence

from tallytree.ingest.columns import Problem
from tallytree.ingest.shapes import RowShape


def describe(problem: Problem, shape: RowShape, source: str, groups: str | None) -> str:
    """Say in one sentence what is wrong, where, and what to do."""
    group = f"column {shape.group!r} of {source}"
    match problem:
        case Problem.GROUP_MISSING:
            what = f"Column {shape.group!r} of {source} has missing values; every row needs a group, so fill or drop them."
        case Problem.UNIT_MISSING:
            what = missing_unit(str(shape.unit), source)
        case Problem.REGION_MISSING:
            what = missing_region((*shape.levels, *shape.closed), source)
        case Problem.GROUP_IN_TWO_LEAVES:
            leaf = " and ".join(repr(level) for level in shape.labels)
            where = (
                "leaf regions, or has two values of an attribute" if shape.by else "leaf regions"
            )
            what = (
                f"A group in {group} lies in two {where} (by {leaf}); a group belongs to one, so "
                "correct the regions or include the region in the name of the group."
            )
        case Problem.GROUP_LISTED_TWICE:
            what = f"A group is listed twice in {group}; with size= each group has one row, so add up or drop the others."
        case Problem.GROUPS_LISTED_TWICE:
            what = f"A group is listed twice in column {shape.group!r} of {groups}; list each group once."
        case Problem.GROUP_NOT_IN_GROUPS:
            what = (
                f"A group in {group} is missing from {groups}; the table of groups must list all "
                "of them, with their "
                "identifiers written alike."
            )
        case _:
            counting = [column for column, _ in shape.sizes] or [str(shape.count)]
            columns = (
                counting
                if problem >= Problem.COUNT_MISSING
                else [str(shape.size or shape.quantity)]
            )
            what = describe_number(problem, columns, source)
    return what


def missing_unit(unit: str, source: str) -> str:
    """Sentence for rows without a protected unit."""
    return f"Column {unit!r} of {source} has missing values; every row needs a protected unit, so fill or drop them."


def missing_region(levels: tuple[str, ...], source: str) -> str:
    """Sentence for rows without a region."""
    columns = " or ".join(repr(level) for level in levels)
    return f"Column {columns} of {source} has missing values; every row needs a region on each level, so fill or drop them."


def not_on_list(attribute: str, source: str) -> str:
    """Sentence for groups whose value of an attribute with a complete list is another one."""
    return (
        f"Column {attribute!r} of {source} has missing values, or some that are not on its list, which "
        "closed= (--closed) says is complete; list them, or let them count as 'other'."
    )


def describe_number(
    problem: Problem, columns: Sequence[str], source: str, *, whole: bool = True
) -> str:
    """Sentence for a column that must hold numbers, by default whole ones of at least 0."""
    shift = (
        Problem.NUMBER_MISSING - Problem.COUNT_MISSING if problem >= Problem.COUNT_MISSING else 0
    )
    found = {
        Problem.NUMBER_MISSING: "missing values (null or NaN)",
        Problem.NUMBER_NOT_A_NUMBER: "text that is not a number",
        Problem.NUMBER_NEGATIVE: "negative values",
        Problem.NUMBER_FRACTIONAL: "fractional values",
    }[Problem(problem + shift)]
    column = " or ".join(repr(name) for name in columns)
    needed = "whole numbers of at least 0" if whole else "numbers"
    return f"Column {column} of {source} has {found}; {needed} are needed."
