"""Distances between two lists of group sizes, from their definitions."""


def earth_movers_distance(a: list[int], b: list[int]) -> int:
    """Entities to add or remove when groups are paired in order; the shorter list is filled with
    empty groups.
    """
    longest = max(len(a), len(b))
    padded = [sorted([0] * (longest - len(sizes)) + list(sizes)) for sizes in (a, b)]
    return sum(abs(x - y) for x, y in zip(*padded))


def count_differences(a: list[int], b: list[int]) -> list[int]:
    return [a.count(size) - b.count(size) for size in sorted({*a, *b})]
