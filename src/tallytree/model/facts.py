"""What is public about counts of groups, wherever the counts are held: said once, and handed to
plan, manifest and checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.errors import InputError
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.classes import SizeClasses
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.part import Part
from tallytree.model.people import NO_PEOPLE, People
from tallytree.model.scale import ValueScale
from tallytree.model.unit import ONE_ROW, Unit


@dataclass(frozen=True)
class PublicFacts:
    """What the guarantee holds fixed, and what else may be known without paying for it.

    Attributes
    ----------
    hierarchy
        Which regions there are.
    groups_public
        Whether the number of groups per region may be used as it is.
    max_quantity
        Bound on what one entity adds to the size of its group: 1 where sizes count entities.
    unit
        What is protected.
    least_size
        1 where a group exists through its entities, so that none is empty; 0 where sizes may be 0.
    classes
        The classes that sizes are counted in, by their numbers; None where sizes are themselves.
    attributes
        The attributes of groups and their values.
    people
        The classes that entities are counted by, with the attributes of groups beside them.
    part
        The rows that were read: those of one part, or all of them (None).
    scale
        Where a row has a value and no size: on which scale values are counted, as numbers of steps
        in place of sizes. Each row is then as a group by itself, of which those of a unit count.
    group
        What one group is called, for the privacy statement.
    alone
        In words, where a unit that is alone is not covered, because what is public was read off the
        rows; empty if nowhere.
    groups_note
        In words, why the group totals count as public, or that they do not.
    regions_note
        In words, why the regions themselves count as public.
    """

    hierarchy: Hierarchy
    groups_public: bool = True
    max_quantity: int = 1
    unit: Unit = ONE_ROW
    least_size: int = 0
    classes: SizeClasses | None = None
    attributes: Attributes = NO_ATTRIBUTES
    people: People = NO_PEOPLE
    part: Part | None = None
    scale: ValueScale | None = None
    group: str = "group"
    alone: str = ""
    groups_note: str = "stated by the user"
    regions_note: str = "stated by the user"

    def __post_init__(self) -> None:
        if self.max_quantity < 1:
            raise InputError("max_quantity must be at least 1.")
        if self.unit.group and self.groups_public:
            raise InputError("A protected group has no public place among the group totals.")
        if self.scale is not None and self.groups_public:
            raise InputError("Numbers of rows with a value are not public.")

    @property
    def lattice(self) -> Lattice:
        """All tables that levels and attributes make."""
        return Lattice(self.hierarchy, self.attributes)

    @property
    def whole_groups(self) -> bool:
        """Whether the unit is a whole group, or several, with all that is in them."""
        return bool(self.unit.group) or self.scale is not None

    @property
    def counted(self) -> str:
        """What tables call the numbers of what has a size or a value."""
        return "groups" if self.scale is None else "rows"

    @property
    def groups_of_unit(self) -> int:
        """How many whole groups come or go with one unit, where whole ones do."""
        return 1 if self.scale is None else self.unit.contributions
