"""How a split over levels is chosen: what counts, what every level keeps, and the model's corrections."""

from fractions import Fraction

# Shares are multiples of this; a share below the smallest buys noise and is given up.
STEP = Fraction(1, 200)
SMALLEST_SHARE = Fraction(3, 100)
# However little the model makes of them, leaves and root keep this much. A root without a share of its own is predicted well
# on most data and badly on some: bimodal sizes at ε = 1 had 7,500 there, with 8 % 950.
LEAST_LEAVES = Fraction(2, 5)
LEAST_ROOT = Fraction(1, 10)
# A look whose noise is more than a twentieth of all groups shows nothing to plan from; shares are equal then. All to the
# leaves, the rule before, gave 354 / 74.7 on ten regions of 300 households at ε = 0.1 where equal shares have 264 / 71.6.
BLIND = 20
# Regions of a level that stand for all of them; rows of a family, of which there are many more to look at.
LEVEL_SAMPLE = 200
FAMILY_SAMPLE = 60
# With attributes: the root's cells give all cells their shape, which the model does not know. On CPS households by couple and
# assistance at ε = 1 they had errors of 105 without a share of their own, 52 with 19 % and 38 with 30 %, the whole root 159,
# 148 and 107, at the same geometric mean over all levels. Where only tables without attributes are wanted, the cells of the
# leaves, which are released all the same, keep a little.
LEAST_CELLS = Fraction(1, 4)
LEAST_FINEST = Fraction(3, 100)
# Weights of levels (the others have 1). Balanced: with 1, 1.5 and 2 for the leaves the geometric mean over 20 data sets of
# the error relative to the better of kuo2018 and bottom-up was 0.81, 0.82 and 0.83 at ε = 1 and 0.45, 0.45 and 0.44 at 0.1,
# and that of the leaves alone 1.66, 1.33 and 1.18. Punishing levels that fall behind a rehearsed kuo2018 made it 0.85 to
# 0.87, and left more behind.
LEAF_WEIGHT = 1.5
LEAVES_FIRST = 8.0
TOP_FIRST = 4.0
# A target that is missed counts a hundred times what errors do: targets first, then the rest.
MISSED = 100.0
# Deviation of a region's curve from the shape above it, relative to the groups in question, where nothing is measured.
DEVIATION = 0.3
# Levels down to the topmost measured one have no measured shape to lean on, and a quarter more error than predicted (32 data
# sets).
UNLED = 1.25
# Mean absolute value of Laplace noise and of its smoothed sums, in standard deviations: 0.71 to 0.8.
ABSOLUTE = 0.72
