"""What noisy sizes of the largest groups tell."""

# Rows are believed from the first pool on, going up, that stands three of its own standard
# deviations above the last block.
ROW_DEVIATIONS = 3.0
# The largest of M values that are all noise stands about ln M scales high; three scales more are
# clear of it (once in 20).
CLEAR_SCALES = 3.0
# Entities of hidden groups count where their sum stands this many deviations above 0. Much more
# would take every small tail for noise, and bands would miss it: with 2.5, in 9 of 30 releases of
# CPS instead of 1. Empty tails are told from the blocks.
HIDDEN_DEVIATIONS = 0.5
# Sizes that a shape does not have occur a tenth as often as the mean nearby. Without the shape as
# prior, rows' errors make the whole 1.08 times as large, 10 times at worst.
UNEXPECTED = 0.1
# Noise beyond this many scales is left out: e⁻¹² of it.
REACH = 12.0
