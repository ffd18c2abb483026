"""Expected errors of tables, for ``tallytree plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallytree.cli.app import print_json, say
from tallytree.cli.table import print_prediction
from tallytree.errors import RequestError
from tallytree.options.asking import PlanOptions, VariantOptions

if TYPE_CHECKING:
    from tallytree.tables.release import TableRelease


def plan_table_like(earlier: TableRelease, what: PlanOptions, asked: VariantOptions) -> None:
    """Show predicted errors of an earlier table's regions and values."""
    from tallytree.tables.prediction import plan_like

    if asked.given():
        raise RequestError(
            f"Tables have one mechanism and no {', '.join(asked.given())}; leave it out."
        )
    if what.chart is not None:
        raise RequestError("There is no chart of the errors of tables; leave out --chart.")
    found = plan_like(earlier, epsilon=what.epsilon, target=what.target)
    if what.json:
        print_json({"predictions": [found.to_json()]})
        return
    say("No confidential data were read: errors follow from regions, values and the budget.")
    if what.target is not None:
        say(f"The smallest privacy loss that meets {what.target!r}: epsilon = {found.epsilon:g}")
    print_prediction(found)
