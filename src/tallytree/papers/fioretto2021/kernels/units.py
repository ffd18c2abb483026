"""Move single units through the tree of one size so that it stays optimal: the integer side of
fioretto2021 §7.

The cost of a subtree with a fixed total is convex in that total (Lemma 5). So a subtree holds an
optimal allocation if and only if at every region the cheapest unit to add below one child costs at
least what the dearest unit below another saves, and adding the cheapest unit (or removing the
dearest) keeps it optimal. This replaces Algorithm 1: no cost table is built, and no domain window
is assumed (footnote 2 of the paper takes one and loses optima on its edge).

Siblings that are leaves have a closed form. With ``shift`` t every leaf holds ``max(0, y + t)``,
the next unit costs ``w (2t + 1)`` and may go to any of the ``eligible`` leaves with y ≥ −t;
``extra`` of them have it already. Only these three numbers are kept for each parent of leaves.

All arrays of a :class:`Units` belong to one size; kernels change them in place.
"""

from __future__ import annotations

from typing import NamedTuple

from tallytree.kernels.jit import serial
from tallytree.model.arrays import IntArray

# Saving of a unit that does not exist; far below any price, far from overflow.
NO_UNIT = -(2**62)


class Units(NamedTuple):
    """State of one size; the first three have one entry per parent of leaves, the rest one per
    internal region.
    """

    shift: IntArray
    extra: IntArray
    eligible: IntArray
    value: IntArray
    cost_to_add: IntArray
    saved_by_removing: IntArray
    cheapest: IntArray
    dearest: IntArray
    target: IntArray
    """One entry per region, leaves included."""


@serial
def count_eligible(target, first, last, shift):
    """Leaves among ``first:last`` that may take the next unit at this shift."""
    n_eligible = 0
    for leaf in range(first, last):
        if target[leaf] >= -shift:
            n_eligible += 1
    return n_eligible


@serial
def fill_leaves(tree, units, region, total, guess):
    """Give ``total`` units to the leaves below ``region``, starting the search for the shift at
    ``guess``.
    """
    first, last = tree.child_starts[region], tree.child_starts[region + 1]
    largest = units.target[first]
    for leaf in range(first + 1, last):
        largest = max(largest, units.target[leaf])
    # At shift −largest every leaf holds 0 and the largest may take the first unit.
    shift = max(guess, -largest)
    while True:
        held = 0
        n_eligible = 0
        for leaf in range(first, last):
            y = units.target[leaf]
            if y >= -shift:
                n_eligible += 1
                held += y + shift
        if held > total:
            shift -= max(1, (held - total) // (last - first))
            shift = max(shift, -largest)
        elif total - held >= n_eligible:
            shift += max(1, (total - held) // (last - first))
        else:
            break
    place = region - tree.level_starts[len(tree.level_starts) - 3]
    units.shift[place] = shift
    units.extra[place] = total - held
    units.eligible[place] = n_eligible
    units.value[region] = total


@serial
def refresh(tree, units, region, level, turn):
    """Recompute what one more or one less unit in a region costs; children of regions above are up
    to date.

    Among children that tie the scan starts at a place that moves with ``turn``, so that no sibling
    is always first.
    """
    n_levels = len(tree.level_starts) - 1
    if level == n_levels - 2:
        place = region - tree.level_starts[level]
        weight = tree.weights[level + 1]
        below_add = weight * (2 * units.shift[place] + 1)
        below_save = below_add if units.extra[place] > 0 else below_add - 2 * weight
    else:
        first = tree.child_starts[region]
        n_children = tree.child_starts[region + 1] - first
        child = first + turn % n_children
        below_add = units.cost_to_add[child]
        below_save = units.saved_by_removing[child]
        units.cheapest[region] = child
        units.dearest[region] = child
        for _ in range(n_children - 1):
            child += 1
            if child == first + n_children:
                child = first
            if units.cost_to_add[child] < below_add:
                below_add = units.cost_to_add[child]
                units.cheapest[region] = child
            if units.saved_by_removing[child] > below_save:
                below_save = units.saved_by_removing[child]
                units.dearest[region] = child
    weight = tree.weights[level]
    own = 2 * (units.value[region] - units.target[region])
    units.cost_to_add[region] = weight * (own + 1) + below_add
    units.saved_by_removing[region] = (
        weight * (own - 1) + below_save if units.value[region] > 0 else NO_UNIT
    )


@serial
def _refresh_path(tree, units, bottom, top, step, turn):
    """Carry a change of ``step`` units at ``bottom``, a parent of leaves, up to ``top``."""
    region = bottom
    level = len(tree.level_starts) - 3
    while True:
        if region != bottom:
            units.value[region] += step
        refresh(tree, units, region, level, turn)
        if region == top:
            break
        region = tree.parent[region]
        level -= 1


@serial
def add_unit(tree, units, top, turn):
    """Add the cheapest unit below ``top``."""
    first_bottom = tree.level_starts[len(tree.level_starts) - 3]
    region = top
    while region < first_bottom:
        region = units.cheapest[region]
    place = region - first_bottom
    units.value[region] += 1
    units.extra[place] += 1
    if units.extra[place] == units.eligible[place]:
        units.shift[place] += 1
        units.extra[place] = 0
        first, last = tree.child_starts[region], tree.child_starts[region + 1]
        units.eligible[place] = count_eligible(units.target, first, last, units.shift[place])
    _refresh_path(tree, units, region, top, 1, turn)


@serial
def remove_unit(tree, units, top, turn):
    """Remove the dearest unit below ``top``, which holds at least one."""
    first_bottom = tree.level_starts[len(tree.level_starts) - 3]
    region = top
    while region < first_bottom:
        region = units.dearest[region]
    place = region - first_bottom
    units.value[region] -= 1
    if units.extra[place] == 0:
        units.shift[place] -= 1
        first, last = tree.child_starts[region], tree.child_starts[region + 1]
        units.eligible[place] = count_eligible(units.target, first, last, units.shift[place])
        units.extra[place] = units.eligible[place]
    units.extra[place] -= 1
    _refresh_path(tree, units, region, top, -1, turn)


@serial
def settle(tree, units, region, price, turn):
    """Add every unit below ``region`` that costs at most ``price`` and remove every one that costs
    more.
    """
    while units.cost_to_add[region] <= price:
        add_unit(tree, units, region, turn)
    while units.saved_by_removing[region] > price:
        remove_unit(tree, units, region, turn)


@serial
def write_values(tree, units, turn, out):
    """Values of all regions of one size; the extra units of tied leaves are spread evenly, from a
    start that moves.
    """
    first_bottom = tree.level_starts[len(tree.level_starts) - 3]
    n_internal = tree.level_starts[len(tree.level_starts) - 2]
    for region in range(n_internal):
        out[region] = units.value[region]
    for region in range(first_bottom, n_internal):
        place = region - first_bottom
        shift, extra, eligible = units.shift[place], units.extra[place], units.eligible[place]
        # Over the eligible leaves, in order, (j·extra + offset) div eligible steps up exactly
        # `extra` times.
        position = (turn + region * 7919) % eligible
        for leaf in range(tree.child_starts[region], tree.child_starts[region + 1]):
            y = units.target[leaf]
            out[leaf] = max(0, y + shift)
            if y >= -shift:
                position += extra
                if position >= eligible:
                    position -= eligible
                    out[leaf] += 1
