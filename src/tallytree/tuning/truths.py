"""What possible truths have that a release does not show."""

# How far regions differ from the one above, in natural logs per standard deviation of the size:
# where answers cannot tell, errors of copies are too small without it. 8,000 groups in 40 leaves
# whose means differ by a factor of two, ε = 0.02: "at least" on leaves held 74 % of the time.
UNLIKE_REGIONS = 0.3
# Sizes of groups that noise hides beyond the last size told apart have a tail like i^-2: such groups
# are only seen where tails are long.
TAIL_OF_HIDDEN = 2.0
# Part of the groups of a block that stand at one size, where answers are likelier with heaps.
HEAPS = 0.7
# Sizes to either side over which falls are averaged to tell the width of a block.
NEAR = 2
# Whole weights of shares: so many for a factor of 1.
TIMES = 1 << 10
