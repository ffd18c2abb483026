"""Children add up to parents, in nonnegative whole numbers."""
