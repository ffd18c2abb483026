"""What is asked of a region: how wide blocks are, where they end, how many rows follow."""

# Noise σ on the sum of w sizes leaves variance σ²/w² per size; inside the block a curve whose falls
# have variance v strays from its mean by w v/6. The sum of both is least at w³ v = 12 σ². Without
# blocks: 1.28 times the error, 4.6 at worst.
BLUR = 12.0
# Before anything is measured, falls are trusted to a fifth of their size; with three fifths blocks
# are cut too narrow, and the golden sets lose up to two thirds.
ROUGHNESS = 0.2
# Rows are better than blocks once groups lie further apart than the blocks that the rule above
# would choose, √12 σ.
SPACING = 3.5
# Sizes that are always measured in blocks: a shape predicted wrongly must not turn thousands of
# small groups into rows.
FIRST_SIZES = 4
# Blocks are planned and asked in rounds, all regions of a level at once: sizes below 8, then one
# octave after the other.
FIRST_ROUND = 8
# Rows cover the groups that are expected past the last block, three standard deviations (of the
# prediction, and of a count with that mean) and three more: a group left off costs its whole size,
# a row too many costs next to nothing.
ROW_MARGIN = 3.0
