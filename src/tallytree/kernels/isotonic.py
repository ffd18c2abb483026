"""Isotonic regression of many regions at once, in least squares (L2) and least absolute deviations
(L1).

Region ``r`` owns ``values[offsets[r]:offsets[r + 1]]``. Each fit is nondecreasing within its region
and, where bounds are given, clipped to them: for a separable convex loss, clipping the unbounded
fit gives the bounded optimum.

L2 is pool-adjacent-violators (kuo2018 §4.2 names it); L1 is the slope trick. Both visit each value
once and keep a stack.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError
from tallytree.kernels.jit import as_input, collect_in_chunks, run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths

Bound = float | npt.ArrayLike | None

# Bounds that bind nothing; half the range of 64 bits, so that a size may be added to them.
FAR_BELOW, FAR_ABOVE = -(2**62), 2**62
# Comparisons per value that the sorted stack of the L1 fit may cost before a heap takes over.
STACK_PATIENCE = 24


def isotonic_l2(
    values: npt.ArrayLike,
    offsets: IntArray | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    lower: Bound = None,
    upper: Bound = None,
) -> FloatArray:
    """Nearest nondecreasing array in (weighted) squared distance, per region.

    Parameters
    ----------
    values
        Finite numbers, one region after the other.
    offsets
        Where each region starts and ends; all values form one region when left out.
    weights
        Positive weights, as many as values.
    lower, upper
        Bounds of the fit, one for all regions or one per region.

    Examples
    --------
    >>> isotonic_l2([1, 3, 2, 5]).tolist()
    [1.0, 2.5, 2.5, 5.0]
    """
    numbers = as_input(values, np.float64)
    places = _offsets(offsets, len(numbers))
    n_regions = len(places) - 1
    weight = None if weights is None else as_input(weights, np.float64)
    if weight is not None and (len(weight) != len(numbers) or not (weight > 0).all()):
        raise InputError("Isotonic regression needs one positive weight per value.")
    if weight is not None and len(weight):
        weight = weight / weight.max()  # so that products of tiny ones do not vanish
    low = as_input(_bound(lower, n_regions, -np.inf), np.float64)
    high = as_input(_bound(upper, n_regions, np.inf), np.float64)
    fit = np.empty(len(numbers))
    run_in_chunks(
        lambda start, stop: _fit_l2(numbers, weight, places, low, high, fit, start, stop),
        n_regions,
        smallest=20_000 * n_regions // max(len(numbers), 1),
    )
    return fit


def isotonic_l2_whole(
    values: npt.ArrayLike,
    offsets: IntArray | None = None,
    *,
    lower: Bound = None,
    upper: Bound = None,
) -> IntArray:
    """Nearest nondecreasing array of whole numbers in squared distance, per region; values are
    whole numbers.

    Rounding the real fit gives the integer optimum. Means that end in one half are rounded up.
    """
    return _expand(*isotonic_runs(values, offsets, norm=2, lower=lower, upper=upper))


def isotonic_l1(
    values: npt.ArrayLike,
    offsets: IntArray | None = None,
    *,
    lower: Bound = None,
    upper: Bound = None,
) -> IntArray:
    """Nearest nondecreasing array in absolute distance, per region; values are whole numbers, and
    so is the fit.

    Many fits may be equally near. Taken is the one halfway between the lowest and the highest of
    them, halves up: always to take the lowest, say, would be off to one side.

    Examples
    --------
    >>> isotonic_l1([0, 9, 1, 1, 5]).tolist()
    [0, 1, 1, 1, 5]
    """
    return _expand(*isotonic_runs(values, offsets, norm=1, lower=lower, upper=upper))


def isotonic_runs(
    values: npt.ArrayLike,
    offsets: IntArray | None = None,
    *,
    norm: int,
    lower: Bound = None,
    upper: Bound = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Whole-number fit in the given norm (1 or 2) as runs of equal values: offsets of runs, value
    and length of each run.

    Memory beyond the result is the stack: as large as a region at worst, and tiny where noise pools
    long stretches.
    """
    numbers = as_input(values, np.int64)
    places = _offsets(offsets, len(numbers))
    n_regions = len(places) - 1
    low = as_input(_bound(lower, n_regions, FAR_BELOW), np.int64)
    high = as_input(_bound(upper, n_regions, FAR_ABOVE), np.int64)
    kernel = {1: _runs_l1, 2: _runs_l2}[norm]
    parts = collect_in_chunks(
        lambda start, stop: kernel(numbers, places, low, high, start, stop), n_regions
    )
    lengths, value, count = (np.concatenate(column) for column in zip(*parts))
    return offsets_from_lengths(lengths), value, count


def cumulative_runs(
    values: npt.ArrayLike, offsets: IntArray, n_groups: IntArray, *, norm: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Fit noisy cumulative counts (kuo2018 §4.3) and return them as runs of groups: offsets, size,
    count.

    Region ``r`` gives H_c[0 … K_r − 1]; the fit lies between 0 and ``n_groups[r]``, and H_c[K_r] =
    ``n_groups[r]``.
    """
    fit_offsets, level, length = isotonic_runs(values, offsets, norm=norm, lower=0, upper=n_groups)
    return groups_of_cumulative(fit_offsets, level, length, as_input(n_groups, np.int64))


def _offsets(offsets: IntArray | None, n_values: int) -> IntArray:
    if offsets is None:
        return as_input([0, n_values], np.int64)
    places = as_input(offsets, np.int64)
    if len(places) < 1 or places[0] != 0 or places[-1] != n_values or (np.diff(places) < 0).any():
        raise InputError(f"Offsets must rise from 0 to the number of values, {n_values}.")
    return places


def _bound(bound: Bound, n_regions: int, default: float) -> npt.NDArray[np.generic]:
    return np.full(n_regions, default if bound is None else bound)


def _expand(run_offsets: IntArray, value: IntArray, length: IntArray) -> IntArray:
    return np.repeat(value, length)


def groups_of_cumulative(
    run_offsets: IntArray, level: IntArray, length: IntArray, n_groups: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Groups from a nondecreasing cumulative curve given as runs: a rise by ``c`` at size ``s`` is
    ``c`` groups of ``s``.

    ``run_offsets`` is (n_regions + 1,), ``level`` and ``length`` are (n_runs,), ``n_groups`` is
    (n_regions,). The result are offsets (n_regions + 1,), sizes and counts, one per size that
    occurs.
    """
    n_regions = len(n_groups)
    n_steps = np.diff(run_offsets) + 1
    # One step more per region: from the last level up to all groups, at size K_r.
    last = offsets_from_lengths(n_steps)[1:] - 1
    is_run = np.ones(len(level) + n_regions, dtype=bool)
    is_run[last] = False
    reached = np.empty(len(is_run), dtype=np.int64)
    reached[is_run], reached[last] = level, n_groups
    width = np.zeros(len(is_run), dtype=np.int64)
    width[is_run] = length
    # Both start at 0 in every region.
    begins = np.cumsum(width) - width
    first = last - n_steps + 1
    size = begins - np.repeat(begins[first], n_steps)
    count = np.diff(reached, prepend=0)
    count[first] = reached[first]
    kept = count > 0
    region = np.repeat(np.arange(n_regions), n_steps)
    return (
        offsets_from_lengths(np.bincount(region[kept], minlength=n_regions)),
        size[kept],
        count[kept],
    )


@serial
def _longest(places, start, stop):
    longest = 0
    for region in range(start, stop):
        longest = max(longest, places[region + 1] - places[region])
    return longest


@serial
def _fit_l2(values, weights, places, low, high, fit, start, stop):
    # The block under way stays in local variables. Block b below it has the sum totals[b] and the
    # weight heft[b], and ends before position end[b]; means rise strictly from block to block.
    # Whether a value rises is a toss that processors guess, and a wrong guess costs what it takes
    # to compare: products, because a quotient takes several times as long.
    longest = _longest(places, start, stop)
    totals = np.empty(longest, dtype=np.float64)
    heft = np.empty(longest, dtype=np.float64)
    end = np.empty(longest, dtype=np.int64)
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        if first == last:
            continue
        n_below = 0
        weight = 1.0 if weights is None else weights[first]
        total = weight * values[first]
        for i in range(first + 1, last):
            own = 1.0 if weights is None else weights[i]
            if values[i] * weight > total:
                totals[n_below] = total
                heft[n_below] = weight
                end[n_below] = i
                n_below += 1
                weight = own
                total = own * values[i]
                continue
            total += own * values[i]
            weight += own
            while n_below > 0 and totals[n_below - 1] * weight >= total * heft[n_below - 1]:
                n_below -= 1
                total += totals[n_below]
                weight += heft[n_below]
        totals[n_below] = total
        heft[n_below] = weight
        position, above = last, high[region]
        for block in range(n_below, -1, -1):
            opens = end[block - 1] if block > 0 else first
            # Products may take two means for rising whose quotients, rounded, fall.
            above = min(totals[block] / heft[block], above)
            fit[opens:position] = min(max(above, low[region]), high[region])
            position = opens


@serial
def _runs_l2(values, places, low, high, start, stop):
    # As _fit_l2, with exact sums. np.empty takes memory only where it is written: the stack stays
    # as small as the blocks.
    longest = _longest(places, start, stop) + 1
    totals = np.empty(longest, dtype=np.int64)
    lengths = np.empty(longest, dtype=np.int64)
    means = np.empty(longest, dtype=np.float64)
    n_runs = np.empty(stop - start, dtype=np.int64)
    value = np.empty(places[stop] - places[start], dtype=np.int64)
    count = np.empty(places[stop] - places[start], dtype=np.int64)
    written = 0
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        n_runs[region - start] = 0
        if first == last:
            continue
        n_below = 0
        total = values[first]
        length = np.int64(1)
        mean = np.float64(total)
        for i in range(first + 1, last):
            if values[i] > mean:
                totals[n_below] = total
                lengths[n_below] = length
                means[n_below] = mean
                n_below += 1
                total = values[i]
                length = np.int64(1)
                mean = np.float64(total)
                continue
            total += values[i]
            length += 1
            mean = total / length
            while n_below > 0 and means[n_below - 1] >= mean:
                n_below -= 1
                total += totals[n_below]
                length += lengths[n_below]
                mean = total / length
        totals[n_below] = total
        lengths[n_below] = length
        before = written
        for block in range(n_below + 1):
            # Exact rounding, half up: floor(total / length + 1/2).
            rounded = (2 * totals[block] + lengths[block]) // (2 * lengths[block])
            rounded = min(max(rounded, low[region]), high[region])
            if written > before and value[written - 1] == rounded:
                count[written - 1] += lengths[block]
            else:
                value[written] = rounded
                count[written] = lengths[block]
                written += 1
        n_runs[region - start] = written - before
    return n_runs, value[:written].copy(), count[:written].copy()


@serial
def _runs_l1(values, places, low, high, start, stop):
    longest = _longest(places, start, stop)
    lowest = np.empty(longest, dtype=np.int64)
    highest = np.empty(longest, dtype=np.int64)
    kink = np.empty(longest + 1, dtype=np.int64)
    times = np.empty(longest + 1, dtype=np.int64)
    n_runs = np.empty(stop - start, dtype=np.int64)
    value = np.empty(places[stop] - places[start], dtype=np.int64)
    count = np.empty(places[stop] - places[start], dtype=np.int64)
    written = 0
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        n = last - first
        done, top = _edges_by_stack(values[first:last], lowest, highest, kink, times)
        if done < n:
            _edges_by_heap(
                values[first:last], lowest, highest, done, _spread_kinks(kink, times, top, n)
            )
        # A fit takes the best end of its prefix, unless what follows is lower: the least edge to
        # the right, from here on.
        for i in range(n - 2, -1, -1):
            lowest[i] = min(lowest[i], lowest[i + 1])
            highest[i] = min(highest[i], highest[i + 1])
        before = written
        for i in range(n):
            # Halfway between two best fits is a best fit, and rounding all of it the same way keeps
            # it one: costs are straight between whole numbers.
            fitted = min(max((lowest[i] + highest[i] + 1) >> 1, low[region]), high[region])
            if written > before and value[written - 1] == fitted:
                count[written - 1] += 1
            else:
                value[written] = fitted
                count[written] = 1
                written += 1
        n_runs[region - start] = written - before
    return n_runs, value[:written].copy(), count[:written].copy()


@serial
def _edges_by_stack(values, lowest, highest, kink, times):
    """Slope trick: from lowest[i] to highest[i] the best fits of values[0..i] may end when nothing
    follows.

    The cost of a prefix as a function of an upper bound on its last value is convex, falls in steps
    of 1 from kink to kink, and is flat after the largest; kinks are kept in rising order, kink[k]
    taken times[k] times. A value v at or above the largest kink becomes the only best end, and the
    largest kink. Below it, v adds two kinks; then the best ends reach from the second largest kink
    to the largest, which goes. Noisy values lie close to the largest kink, where a search from the
    top is short. Where it is not, this stops early for the heap to take over: returns the number of
    values done and the top of the stack.
    """
    top = -1
    work = 0
    for i in range(len(values)):
        v = values[i]
        highest[i] = v
        if top < 0 or v > kink[top]:
            top += 1
            kink[top] = v
            times[top] = 1
        elif v == kink[top]:
            times[top] += 1
        else:
            highest[i] = kink[top]
            place = top - 1
            while place >= 0 and kink[place] > v:
                place -= 1
            work += top - place
            if place >= 0 and kink[place] == v:
                times[place] += 2
            else:
                for k in range(top, place, -1):
                    kink[k + 1] = kink[k]
                    times[k + 1] = times[k]
                kink[place + 1] = v
                times[place + 1] = 2
                top += 1
            times[top] -= 1
            if times[top] == 0:
                top -= 1
        lowest[i] = kink[top]
        if work > STACK_PATIENCE * (i + 256):
            return i + 1, top
    return len(values), top


@serial
def _spread_kinks(kink, times, top, n):
    """Kinks in falling order, each as often as it counts: a heap with its largest in front, with
    room for n.
    """
    heap = np.empty(n, dtype=np.int64)
    filled = 0
    for k in range(top, -1, -1):
        for _ in range(times[k]):
            heap[filled] = kink[k]
            filled += 1
    return heap


@serial
def _edges_by_heap(values, lowest, highest, done, heap):
    """The same as :func:`_edges_by_stack` from value ``done`` on: O(log n) each, whatever the
    values.

    Every value so far has left exactly one kink more, so the heap holds ``i`` kinks before value
    ``i``.
    """
    for i in range(done, len(values)):
        v = values[i]
        hole = i
        while hole > 0 and heap[(hole - 1) // 2] < v:
            heap[hole] = heap[(hole - 1) // 2]
            hole = (hole - 1) // 2
        heap[hole] = v
        highest[i] = heap[0]
        if heap[0] > v:
            hole = 0
            while True:
                child = 2 * hole + 1
                if child > i:
                    break
                if child < i and heap[child + 1] > heap[child]:
                    child += 1
                if heap[child] <= v:
                    break
                heap[hole] = heap[child]
                hole = child
            heap[hole] = v
        lowest[i] = heap[0]
