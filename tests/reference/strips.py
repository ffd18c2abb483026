"""What neighbouring boxes of a strip lose together, stretch by stretch and box by box."""

import math


def given_back(drawn, noisy, variance, total, strips):
    """First halves after all rounds; ``strips`` are lists of boxes, neighbours side by side."""
    halves, length = list(drawn), 2
    while length < 2 * max(len(strip) for strip in strips):
        stretches = [
            strip[at : at + length] for strip in strips for at in range(0, len(strip), length)
        ]
        stretches = [stretch for stretch in stretches if len(stretch) > 1]
        lack = [sum(noisy[box] - halves[box] for box in stretch) for stretch in stretches]
        chance = [sum(variance[box] for box in stretch) for stretch in stretches]
        explained = sum(chance) + math.sqrt(2 * sum(one**2 for one in chance))
        seen = sum(one**2 for one in lack)
        believed = max(0.0, 1 - explained / seen) if seen > 0 else 0.0
        for stretch, missing, noise in zip(stretches, lack, chance):
            for box in stretch:
                halves[box] = min(
                    max(halves[box] + believed * missing * variance[box] / noise, 0.0), total[box]
                )
        length *= 2
    return halves


def strips_of(tree, families):
    """Families (first, middle, last) by what they span and where they are cut along the column of
    the cut, in their order.
    """
    found = {}
    for place, (first, middle, last) in sorted(enumerate(families), key=lambda one: one[1]):
        low, cut = tree.low[first].tolist(), tree.low[middle].tolist()
        column = next(axis for axis in range(len(low)) if cut[axis] > low[axis])
        key = (column, low[column], cut[column], int(tree.high[last - 1][column]))
        found.setdefault(key, []).append(place)
    return list(found.values())
