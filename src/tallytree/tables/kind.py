"""Tables: how many rows every region of a hierarchy has, by attributes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.options.asking import PageOptions
from tallytree.options.exporting import ShapesOptions
from tallytree.options.tables import EVALUATES_WITH
from tallytree.releases.kind import Kind
from tallytree.tables.release import TableRelease, load_table

if TYPE_CHECKING:
    from tallytree.model.notebook import Picture
    from tallytree.releases.checks import Check
    from tallytree.releases.comparison import Comparison
    from tallytree.releases.export.geographic import Features
    from tallytree.releases.export.sheet import Sheet
    from tallytree.storage.folder import Folder
    from tallytree.tables.evaluate import TableEvaluation
    from tallytree.tables.prediction import TablePrediction

# Each verb loads what it needs when it is called: a question needs none of the others.


def check_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss recomputed from the manifest."""
    from tallytree.tables.check import check_table_privacy

    return check_table_privacy(folder)


def estimate(folder: Folder) -> TableRelease:
    """The release again from the raw measurements of a folder."""
    from tallytree.tables.publish import estimate_table

    return estimate_table(folder)


def evaluate(release: TableRelease, truth: Any, **source: Any) -> TableEvaluation:
    """Errors against the truth."""
    from tallytree.tables.evaluate import evaluate_table

    return evaluate_table(release, truth, **source)


def plan(like: TableRelease, **asked: Any) -> TablePrediction:
    """Expected errors of a release like an earlier one, in closed form."""
    from tallytree.tables.prediction import plan_like

    return plan_like(like, **asked)


def compare(first: TableRelease, second: Any, **how: Any) -> Comparison:
    """Differences of two releases."""
    from tallytree.tables.compare import compare_tables

    return compare_tables(first, second, **how)


def sheet(release: TableRelease) -> Sheet:
    """The release as one flat table."""
    from tallytree.tables.sheet import table_sheet

    return table_sheet(release)


def features(release: TableRelease, rows: Sheet, outlines: ShapesOptions) -> Features:
    """Its rows with the outlines of regions."""
    from tallytree.tables.sheet import table_features

    return table_features(release, rows, outlines)


def microdata(release: TableRelease, out: str | Path, *, overwrite: bool = False) -> Path:
    """Synthetic rows that tabulate to the release."""
    from tallytree.tables.microdata import write_microdata

    return write_microdata(release, out, overwrite=overwrite)


def page(release: TableRelease, evaluation: Any = None, look: PageOptions | None = None) -> str:
    """The report."""
    from tallytree.tables.report import table_page

    return table_page(release, evaluation, look)


def plot(release: TableRelease, **what: Any) -> Picture:
    """The values of one attribute of a region."""
    from tallytree.tables.picture import plot_table

    return plot_table(release, **what)


KIND = Kind(
    name="table",
    title="a table",
    command="table",
    function="tallytree.table",
    load=load_table,
    check_privacy=check_privacy,
    page=page,
    plot=plot,
    estimate=estimate,
    evaluate=evaluate,
    evaluates_with=EVALUATES_WITH,
    plan=plan,
    intervals="in closed form, with every answer",
    spark="counts per cell, made on the executors",
    compare=compare,
    sheet=sheet,
    features=features,
    microdata=microdata,
)
