"""What one row of the input is: the request of :func:`tallytree.ingest.read`, checked before any
data is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallytree.errors import RequestError
from tallytree.model.people import NO_PEOPLE, People
from tallytree.model.scale import ValueScale
from tallytree.model.unit import COLUMN, ENTITY, GROUP
from tallytree.options.reading import ReadOptions


@dataclass(frozen=True)
class RowShape:
    """Which column means what. The four shapes differ by which of ``size``, ``count`` and
    ``quantity`` are given.

    Attributes
    ----------
    group
        Column that names the group of a row; ``None`` where each row is a group of its own or
        stands for several.
    levels
        Columns that name the regions of a row, from the level below the root down to the leaf.
    size
        Column with the size of the group that a row stands for; ``None`` where a row is an entity.
    count
        Column with the number of groups of that size; ``None`` where a row is one group.
    quantity
        Column with what an entity adds to the size of its group; ``None`` where each adds 1.
    max_quantity
        Public bound on what one entity adds to the size of its group.
    unit
        Column that names the protected unit of an entity; ``None`` where each entity is protected
        by itself.
    contributions
        Public bound on the entities that count of one unit.
    whole_groups
        Whether the protected unit is a whole group.
    sizes
        Columns with the numbers of groups of one size or class each, and the smallest size of it;
        ``()`` where rows are no regions.
    by
        Columns with attributes of groups, each with its public values, None where these are read.
    people
        Classes that entities are counted by, and attributes of groups beside them; none where
        entities are not counted.
    closed
        Attributes whose list of values is complete.
    scale
        Where the column ``size`` holds values of rows instead of sizes: the scale they are counted
        on. Rows without a number there are left out; of the rows of a ``unit`` some count.
    """

    group: str | None
    levels: tuple[str, ...]
    size: str | None = None
    count: str | None = None
    quantity: str | None = None
    max_quantity: int = 1
    unit: str | None = None
    contributions: int = 1
    whole_groups: bool = False
    sizes: tuple[tuple[str, int], ...] = ()
    by: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    people: People = NO_PEOPLE
    closed: tuple[str, ...] = ()
    scale: ValueScale | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Columns with attributes."""
        return tuple(name for name, _ in self.by)

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns that say where a group is counted: its regions, then its attributes."""
        return (*self.levels, *self.attributes)

    @property
    def rows_are_entities(self) -> bool:
        """Whether a row is one entity, and not a group or several."""
        return self.size is None and not self.sizes

    @property
    def least_size(self) -> int:
        """1 where every row adds one to its group and a group exists through its rows, else 0."""
        return 1 if self.rows_are_entities and self.quantity is None else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the request names, each once."""
        wide = (column for column, _ in self.sizes)
        named = (
            self.group,
            *self.labels,
            self.size,
            self.count,
            self.quantity,
            self.unit,
            *wide,
            *self.people.classes.names,
        )
        return tuple(dict.fromkeys(column for column in named if column is not None))


def row_shape(options: ReadOptions, sizes: tuple[tuple[str, int], ...], people: People) -> RowShape:
    """Check that the columns make up one of the shapes, and put them in order.

    ``sizes`` and ``people`` are what the options of these names come to, as :class:`RowShape` has
    them.
    """
    group, size, count, quantity = options.group, options.size, options.count, options.quantity
    levels = (options.levels,) if isinstance(options.levels, str) else tuple(options.levels)
    unit, contributions, attributes = (
        options.unit,
        options.contributions,
        attributes_asked(options.by),
    )
    wide = [column for column, _ in sizes]
    names = [name for name, _ in attributes]
    columns = (group, *levels, *names, *people.classes.names, size, count, quantity, *wide)
    named = [column for column in columns if column is not None]
    for column in named:
        if not isinstance(column, str) or not column:
            raise RequestError(f"Columns are given by name; got {column!r}.")
    repeated = {column for column in named if named.count(column) > 1}
    if repeated:
        raise RequestError(
            f"Column {sorted(repeated)[0]!r} is given twice; each column has one meaning."
        )
    _check_rows(options, wide=bool(sizes))
    whole_groups = unit == GROUP
    _check_people(people, rows_are_entities=size is None and not sizes and quantity is None)
    if whole_groups:
        _check_bound(contributions, people)
    protected, bound = checked_unit(
        "group" if whole_groups and people else ENTITY if whole_groups else unit, contributions
    )
    protected = None if whole_groups else protected
    if protected is not None and (size is not None or sizes):
        raise RequestError(
            "unit= goes with rows that are entities; with size= or sizes= a row is no entity, and "
            "its units are unknown."
        )
    largest = _checked_max_quantity(
        options.max_quantity, size or (wide[0] if wide else None), quantity
    )
    return RowShape(
        group,
        levels,
        size,
        count,
        quantity,
        largest,
        protected,
        bound,
        whole_groups,
        sizes,
        attributes,
        people,
        closed_of(options.closed, names),
    )


def _check_rows(options: ReadOptions, *, wide: bool) -> None:
    """Refuse columns that do not go together; ``wide`` says that rows are regions."""
    group, size, count, quantity = options.group, options.size, options.count, options.quantity
    if wide and any(column is not None for column in (group, size, count, quantity)):
        raise RequestError(
            "sizes= says what the rows are: regions. Leave out group=, size=, count= and quantity=."
        )
    if size is None and group is None and not wide:
        raise RequestError(
            "Say what a row is: group= (--group) names the column of each entity's group, size= "
            "(--size) the column with the "
            "size of the group that a row stands for, sizes= (--sizes) the columns of a wide table."
        )
    if size is not None and quantity is not None:
        raise RequestError(
            "size= (rows are groups) and quantity= (rows are entities) exclude each other; give "
            "one."
        )
    if count is not None and size is None:
        raise RequestError("count= needs size=: with both, a row says how many groups have a size.")
    if count is not None and group is not None:
        raise RequestError(
            "count= (a row stands for several groups) and group= (it stands for one) exclude each "
            "other."
        )


def _check_bound(contributions: int | None, people: People) -> None:
    """Refuse what does not go with a protected group: where its entities are counted by class their
    number is bounded, elsewhere not.
    """
    if people and (contributions is None or contributions < 2):
        raise RequestError(
            "people= with unit='group' needs contributions=, a public bound of at least 2 on the "
            "rows that count of one group: "
            "the noise follows from it. Choose it without looking at the data; further rows are "
            "left out."
        )
    if contributions is not None and not people:
        raise RequestError(
            "contributions= goes with a unit column; unit='group' protects a group with all its "
            "rows. A column of that name is "
            "given as unit='column:group'."
        )


def closed_of(given: str | Sequence[str], attributes: Sequence[str]) -> tuple[str, ...]:
    """The attributes whose list of values is complete."""
    closed = (given,) if isinstance(given, str) else tuple(given)
    for name in closed:
        if name not in attributes:
            raise RequestError(
                f"closed= names {name!r}, which is no attribute of by= "
                f"({', '.join(attributes) or 'there is none'})."
            )
    return closed


def _check_people(people: People, *, rows_are_entities: bool) -> None:
    """Classes belong to single entities, so rows must be such, and each must add one to the size of
    its group.
    """
    if people and not rows_are_entities:
        raise RequestError(
            "people= counts entities by class, so a row must be one entity: name group=, and leave "
            "out size=, sizes=, count= "
            "and quantity=. Sizes of groups alone, or top-coded ones, do not say who is in them."
        )
    if people.by and not people:
        raise RequestError(
            "people_by= goes with people=, the classes that entities are counted by."
        )


def attributes_asked(
    by: str | Sequence[str] | Mapping[str, Sequence[str] | None],
) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
    """Columns with attributes and their public values, where these are given.

    Examples
    --------
    >>> attributes_asked(["tenure=owned,rented", "head"])
    (('tenure', ('owned', 'rented')), ('head', None))
    """
    if isinstance(by, Mapping):
        return tuple(
            (name, None if values is None else _values(name, values)) for name, values in by.items()
        )
    found = []
    for entry in (by,) if isinstance(by, str) else by:
        name, given, values = entry.partition("=")
        found.append((name.strip(), _values(name, values.split(",")) if given else None))
    return tuple(found)


def _values(name: str, values: Sequence[str]) -> tuple[str, ...]:
    labels = tuple(str(value).strip() for value in values)
    if not all(labels) or len(set(labels)) != len(labels):
        raise RequestError(
            f"by= gives {name!r} a list of values that has an empty or a repeated one."
        )
    return labels


def checked_unit(unit: str, contributions: int | None) -> tuple[str | None, int]:
    """The column of the protected unit, None for single entities, and how many entities of a unit
    count.
    """
    if not isinstance(unit, str) or not unit:
        raise RequestError(
            f"unit= is {ENTITY!r} or the column that names the protected unit; got {unit!r}."
        )
    if unit == ENTITY:
        if contributions not in (None, 1):
            raise RequestError(
                "contributions= goes with unit=, the column that names who has several rows."
            )
        return None, 1
    unit = unit.removeprefix(COLUMN)
    if contributions is None:
        raise RequestError(
            f"unit={unit!r} needs contributions=, a public bound on the rows that count of one "
            f"{unit}: the noise follows from "
            "it. Choose it without looking at the data; further rows are left out."
        )
    if (
        isinstance(contributions, bool)
        or not isinstance(contributions, int)
        or not 1 <= contributions <= 2**31
    ):
        raise RequestError(
            f"contributions must be a whole number from 1 to {2**31:,}, got {contributions!r}."
        )
    return unit, contributions


def _checked_max_quantity(max_quantity: int | None, size: str | None, quantity: str | None) -> int:
    if max_quantity is None:
        if quantity is not None:
            raise RequestError(
                "quantity= needs max_quantity=, a public bound on what one entity adds to its "
                "group: the noise follows "
                "from it. Choose it without looking at the data; larger quantities are lowered to "
                "it."
            )
        return 1
    if (
        isinstance(max_quantity, bool)
        or not isinstance(max_quantity, int)
        or not 1 <= max_quantity <= 2**31
    ):
        raise RequestError(
            f"max_quantity must be a whole number from 1 to {2**31:,}, got {max_quantity!r}."
        )
    if quantity is None and size is None and max_quantity != 1:
        raise RequestError(
            "max_quantity= goes with quantity= or size=; a row that counts as one entity adds 1."
        )
    return max_quantity
