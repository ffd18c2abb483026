"""Tables of a saved range histogram, and the checks that they hold what the manifest promises."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.bins import Bins
from tallytree.ranges.manifest import LOOK
from tallytree.ranges.measure import NoisyHistogram
from tallytree.ranges.plan import HistogramPlan
from tallytree.releases.checks import Check, Verification
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.estimates import AnyErrors, RangeErrors, bin_variances, estimate_bins
from tallytree.strategies.finishing import check_nonnegative, finish_bins
from tallytree.strategies.strategies import MatrixStrategy, Strategy, query_name

CLOSE = 1e-6  # estimates may differ this much, relative to the largest, between machines


def bins_table(
    bins: Bins, counts: FloatArray | IntArray, estimates: FloatArray, errors: RangeErrors
) -> pa.Table:
    """One row per bin: where it lies, its published count, the unbiased estimate behind it and that
    one's standard error.
    """
    places = np.arange(bins.n_bins)
    columns: dict[str, object] = {"bin": places}
    if bins.categories is not None:
        columns["category"] = list(bins.categories)
    else:
        columns["low"], columns["high"] = bins.edges[:-1], bins.edges[1:]
    return pa.table(
        {
            **columns,
            "count": counts,
            "estimate": estimates,
            "standard_error": np.sqrt(bin_variances(errors, bins.n_bins)),
        }
    )


def layout_table(bins: Bins) -> pa.Table:
    """The bins alone."""
    if bins.categories is not None:
        return pa.table({"category": list(bins.categories)})
    return pa.table({"low": bins.edges[:-1], "high": bins.edges[1:]})


def bins_from_table(table: pa.Table) -> Bins:
    """The bins that :func:`bins_table` wrote."""
    if "category" in table.column_names:
        names = tuple(table["category"].to_pylist())
        return Bins(np.arange(len(names) + 1, dtype=np.float64), names)
    low, high = table["low"].to_numpy(), table["high"].to_numpy()
    return Bins(np.concatenate([low, high[-1:]]))


def noisy_table(noisy: NoisyHistogram) -> pa.Table:
    """The raw measurements: level, query, index, value; a look that came before has the level −1."""
    first = [] if noisy.looked is None else [np.array([noisy.looked])]
    answers = [*first, *noisy.levels]
    lengths = [len(level) for level in answers]
    query = query_name(noisy.plan.strategy)
    return pa.table(
        {
            "level": np.repeat(np.arange(len(lengths)) - len(first), lengths),
            "query": pa.array(
                [LOOK] * len(first) + [query] * (sum(lengths) - len(first))
            ).dictionary_encode(),
            "index": np.concatenate([np.arange(length) for length in lengths]),
            "value": np.concatenate(answers),
        }
    )


def noisy_from_table(table: pa.Table, n_levels: int) -> tuple[IntArray, ...]:
    """The vectors of :func:`noisy_table`, level by level."""
    level, value = table["level"].to_numpy(), table["value"].to_numpy()
    return tuple(
        np.ascontiguousarray(value[level == number], dtype=np.int64) for number in range(n_levels)
    )


def noisy_of_folder(folder: Folder, plan: HistogramPlan) -> NoisyHistogram | None:
    """The raw measurements of a folder, where they were saved."""
    if not folder.has("noisy.parquet"):
        return None
    table = folder.table("noisy.parquet")
    looked = table["value"].to_numpy()[table["level"].to_numpy() == -1]
    return NoisyHistogram(
        plan, noisy_from_table(table, len(plan.noise)), int(looked[0]) if len(looked) else None
    )


def strategy_tables(strategy: Strategy) -> dict[str, pa.Table]:
    """The coefficients of a strategy matrix that are not 0; trees, wavelets and hats are described
    by the manifest alone.
    """
    if not isinstance(strategy, MatrixStrategy):
        return {}
    query, place = np.nonzero(strategy.rows)
    return {
        "strategy.parquet": pa.table(
            {"query": query, "bin": place, "coefficient": strategy.rows[query, place]}
        )
    }


def rows_from_table(table: pa.Table, n_bins: int) -> IntArray:
    """The strategy matrix that :func:`strategy_tables` wrote."""
    query = table["query"].to_numpy()
    rows = np.zeros((int(query.max(initial=-1)) + 1, n_bins), dtype=np.int64)
    rows[query, table["bin"].to_numpy()] = table["coefficient"].to_numpy()
    return rows


def check_histogram(
    counts: FloatArray | IntArray,
    estimates: FloatArray,
    errors: AnyErrors,
    manifest: Manifest,
    noisy: NoisyHistogram | None,
) -> Verification:
    """Whole and nonnegative counts where promised, and counts that follow from the raw
    measurements.
    """
    rule, integers = (
        check_nonnegative(manifest["published"]["nonnegative"]),
        bool(manifest["published"]["integers"]),
    )
    checks = []
    if integers:
        checks.append(
            Check("counts are whole numbers", bool(np.issubdtype(counts.dtype, np.integer)))
        )
    if rule != "no":
        lowest = counts.min()
        checks.append(
            Check(
                "counts are not negative",
                bool(lowest >= 0),
                "" if lowest >= 0 else f"lowest is {lowest}",
            )
        )
    if noisy is not None:
        again = estimate_bins(errors, noisy.levels)
        scale = max(1.0, float(np.abs(again).max()))
        follow = bool(np.all(np.abs(again - estimates) <= CLOSE * scale))
        checks.append(
            Check(
                "estimates follow from the noisy answers", follow, "" if follow else "they differ"
            )
        )
        finished = finish_bins(errors, noisy.levels, again, nonnegative=rule, integers=integers)
        slack = (
            1.0 if integers else CLOSE * scale
        )  # a tie may be rounded the other way on another machine
        follow = bool(np.all(np.abs(finished - counts) <= slack))
        checks.append(
            Check("counts follow from the noisy answers", follow, "" if follow else "they differ")
        )
    return Verification(tuple(checks))
