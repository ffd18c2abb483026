"""The Hilbert curve, cell by cell, as textbooks have it."""


def cell_at(side: int, distance: int) -> tuple[int, int]:
    """The cell that a curve through side x side cells, a power of two, reaches after so many steps."""
    x = y = 0
    size = 1
    while size < side:
        right = 1 & (distance // 2)
        up = 1 & (distance ^ right)
        if up == 0:
            if right == 1:
                x, y = size - 1 - x, size - 1 - y
            x, y = y, x
        x, y = x + size * right, y + size * up
        distance //= 4
        size *= 2
    return x, y
