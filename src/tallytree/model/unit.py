"""What is protected: the one description from which statements, ledgers and sensitivities follow."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.errors import RequestError

ENTITY = "entity"
"""The default privacy unit: one row."""


GROUP = "group"
"""The privacy unit that is a whole group with all its entities; a column of that name is given as ``column:group``."""

COLUMN = "column:"
"""Before the name of a column, which may then be a reserved word."""

UNNAMED = ("", "row", ENTITY)
"""What one row is called where nobody gave it a name."""


@dataclass(frozen=True)
class Unit:
    """One protected unit. Neighbouring data sets differ by all that one unit adds to them.

    Attributes
    ----------
    entity
        What one entity (row) is called: ``"person"``, ``"trip"`` ….
    column
        The column that names the unit, of whose rows at most ``contributions`` were counted; empty
        where the unit is one entity, or where ``contributions`` is taken on trust.
    contributions
        Public bound on how many entities of one unit count: the factor of every sensitivity.
    group
        What a group is called, where the unit is a whole group with all its entities and its place;
        otherwise empty.
    min_gap
        Of a stream: at least so many steps lie between two entities of one unit; 0 where they may
        come in any steps.
    one_row
        Whether one entity lies in one row of the table, and so in one part of it. An edge that may
        be listed twice does not.

    Examples
    --------
    >>> Unit("person").words, Unit("trip", "driver", 3).words
    ('one person', 'all rows of one driver (of which at most 3 are counted)')
    >>> Unit().name, Unit("person").name, Unit("trip", "driver", 3).name
    ('entity', 'person', 'driver')
    """

    entity: str = "row"
    column: str = ""
    contributions: int = 1
    one_row: bool = True
    group: str = ""
    min_gap: int = 0

    def __post_init__(self) -> None:
        if (
            isinstance(self.contributions, bool)
            or not isinstance(self.contributions, int)
            or self.contributions < 1
        ):
            raise RequestError(
                f"contributions is a whole number of at least 1, got {self.contributions!r}."
            )
        if self.group and self.column:
            raise RequestError(
                f"A whole group is one unit by itself; leave out the column {self.column!r}."
            )

    @property
    def words(self) -> str:
        """What is protected, as it follows "adding or removing"."""
        if self.group:
            counted = (
                f" (of which at most {self.contributions} are counted)"
                if self.contributions > 1
                else ""
            )
            return f"one {self.group} with all its entities{counted}, of any size, in any region"
        if self.column:
            return (
                f"all rows of one {self.column} (of which at most {self.contributions} are "
                f"counted{self._apart})"
            )
        if self.contributions == 1:
            return f"one {self.entity}"
        if self.entity in UNNAMED:  # nobody said whose rows they are, so any of them
            rows = "entities" if self.entity == ENTITY else "rows"
            return f"up to {self.contributions:,} {rows}{self._apart}"
        return f"all rows of one {self.entity}, at most {self.contributions}{self._apart}"

    @property
    def _apart(self) -> str:
        return f", at least {self.min_gap:,} steps apart" if self.min_gap else ""

    @property
    def word(self) -> str:
        """What one unit is called, without its bounds."""
        return self.group or self.column or self.entity

    @property
    def name(self) -> str:
        """By which accounts know the unit: its column, the name of a row, or ``"entity"`` for a row
        without a name.

        Losses of different units do not add up, so an account takes one.
        """
        if self.group:
            return GROUP
        column = f"column:{self.column}" if self.column in (ENTITY, GROUP) else self.column
        return column or (ENTITY if self.entity in UNNAMED else self.entity)

    @property
    def in_one_row(self) -> bool:
        """Whether all of a unit lies in one row, and so in one part of the data, whatever the
        parts.
        """
        return self.one_row and not self.column and not self.group and self.contributions == 1


ONE_ROW = Unit()


def unit_from(
    unit: str, entity: str, contributions: int, *, counted: bool = False, min_gap: int | None = None
) -> Unit:
    """The unit that the options ``unit``, ``entity`` and ``contributions`` of a release without
    groups describe.

    Where numbers of entities are ``counted`` already a row stands for many of them, and is not what
    is protected.
    """
    if unit == GROUP:
        raise RequestError(
            "unit='group' protects whole groups, which only releases of group sizes have. A column "
            "of that name is given as "
            "unit='column:group'."
        )
    entity = ENTITY if counted and entity in UNNAMED else entity
    column = "" if unit == ENTITY else unit.removeprefix(COLUMN)
    return Unit(entity, column, contributions, min_gap=min_gap or 0)
