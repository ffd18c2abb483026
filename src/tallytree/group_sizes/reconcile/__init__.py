"""Group sizes of children add up to those of parents, in nonnegative whole numbers."""
