"""How a split over levels is chosen: what it is held against, what counts, and the model's corrections."""

from fractions import Fraction

# Shares are multiples of this; a share below the smallest buys noise and is given up.
STEP = Fraction(1, 200)
SMALLEST_SHARE = Fraction(3, 100)
# However little the model makes of them, the leaves keep this much.
LEAST_LEAVES = Fraction(2, 5)
# A look whose noise is more than a tenth of all groups shows nothing to plan from. Leaves get everything then, if they have
# enough groups to be measured well by themselves.
BLIND, CLEAR = 10, 10
# Regions of a level that stand for all of them.
LEVEL_SAMPLE = 200
# The leaves hold most of the numbers, and count four times what a level between does; the root is quoted most, and counts half
# as much again.
ROOT_WEIGHT, LEAF_WEIGHT = 1.5, 4.0
# A percent behind the plain choices counts five percents more, on the leaves ten: there bottom-up is a hard competitor.
BEHIND, LEAVES_BEHIND = 5.0, 10.0
# The yardstick, corrected as measured on six data sets: matching spoils the root by a third, which the rehearsal leaves out;
# between, the model promises a little too much. On the leaves the smoothed fit is credited with no more than it gained
# everywhere: an eighth, and the more the noisier, since a look at the root does not tell how unlike each other leaves are.
ROOT_CORRECTION, MIDDLE_CORRECTION, LEAF_CORRECTION = 1.3, 0.95, 0.9
LEAF_GAIN, LEAF_GAIN_GROWTH = 1.12, 0.3
# Deviation of a region's curve from the shape above it, relative to the groups in question, where nothing is measured.
DEVIATION = 0.3
# Cutting off at 0, rounding and a shared prior push all children the same way, the more the noisier: a sum of n children has
# √(n + (0.1 b^0.4 n)²) times the error of one with noise of scale b. Measured on six data sets, right within a factor of 2.
ALIKE, ALIKE_GROWTH = 0.1, 0.4
# Mean absolute value of Laplace noise and of its smoothed sums, in standard deviations: 0.71 to 0.8.
ABSOLUTE = 0.72
# Sizes that a rehearsal goes up to, regions that stand for a level, cells (regions × sizes) at which it stops being quick.
MOST_SIZES = 1 << 14
REHEARSED_REGIONS = 64
REHEARSED_CELLS = 1 << 20
# Sizes past the largest up to a public bound, at least; more of them would hardly change the error.
EMPTY_SIZES = 128
