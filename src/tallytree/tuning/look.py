"""The first look at the root, and how many sizes are told apart after it."""

from fractions import Fraction

# Share of the budget: a look only has to tell one shape from another. Leaving its answers out of
# the root's estimate changes errors by 2 % at most, so a larger share would be lost to all levels
# but the root.
FIRST_LOOK_SHARE = Fraction(3, 100)
# By attributes the shape of every cell comes from the cells of the root, which are measured well,
# and the look tells only how far sizes reach and how to split.
LOOK_SHARE_BY_ATTRIBUTES = Fraction(1, 100)
# A look at bins of sizes, where entities have quantities. Whether staircases or bins are nearer is
# told by it; staircases have a look of their own besides.
SIZE_LOOK_SHARE = Fraction(2, 100)
# Blocks a fifth as wide as the size they begin at, from size 0 up to sizes that no group reaches.
RELATIVE_WIDTH = 0.2
LARGEST_LOOK = 1 << 24
# Blocks show groups where they stand five noise scales above 0: with three, 1 look in 30 saw a
# ghost, and planned for it.
SEEN_SCALES = 5.0
# What a straight line between two block means misses, as a part of the fall.
UNSEEN_FALL = 0.3
# Sizes that are told apart whatever the look shows, and where a quarter of the memory does not hold
# them.
USUAL_SIZES = 64
LEAST_SIZES = 8
# Where a look sees nothing more, sizes may still be told apart up to four times as far with less
# noise.
FARTHEST = 4
# As many groups are measured one by one at the far end, whatever noise blurs. Without it county
# housing at ε = 0.05 told 10,000 sizes apart in some runs and 74 in others.
FEW_GROUPS = 100
# Where a look shows little, sizes are taken to fall by a share of 1/(1 + mean excess) at each size,
# give or take as much. Mean excesses lean on the size before by 0.3 noise deviations' worth of
# groups. At ε = 0.1 the root of 3,000 groups has 148 instead of 287, of few thousand small leaves
# 428 instead of 547, of 103 groups 55 instead of 79; Roma, with its heavy tail, 966 instead of 862
# (4 runs).
USUAL_DEVIATION = 1.0
LEANING = 0.3
