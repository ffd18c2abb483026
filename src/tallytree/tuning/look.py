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
# The last hundred groups are measured one by one, whatever noise blurs, where their mean excess is
# more than five times the size. Without it county housing at ε = 0.05 told 10,000 sizes apart in
# some runs and 74 in others; wherever they lie, the Hawaiian areas (one level, ε = 0.1) had 1,212
# instead of 964.
FEW_GROUPS = 100
OUTLYING = 5.0
# Where a look shows little, sizes are taken to fall by a share of 1/(1 + mean excess) at each size,
# give or take as much. Mean excesses lean on the size before by 0.3 noise deviations' worth of
# groups. At ε = 0.1 the root of 3,000 groups has 148 instead of 287, of few thousand small leaves
# 428 instead of 547, of 103 groups 55 instead of 79. Up to a fall of nearly one noise deviation
# only: over the whole tail, as before, 30,000 groups of sizes i^-1.2 had 77,000 / 19,600 / 2,500
# instead of 45,900 / 12,400 / 1,940, five levels of geometric sizes 449 instead of 300 at the root
# (sizes in multiples of five 1.0 to 1.1 times as much).
USUAL_DEVIATION = 1.0
LEANING = 0.3
CLEAR_FALL = 0.9
