"""Whether staircases or bins of sizes are measured, and how bins share a budget."""

from fractions import Fraction

# Staircases are predicted too near to the truth beside bins, as a log ratio of errors: by nothing
# where sizes are told one by one, by this much where they are large. Half of it is reached where
# the mean size is 0.7 times the second number.
STAIRCASES_BEHIND, LARGE_MEAN = 0.5, 15.0
# What a level of bins costs that is behind staircases, per log ratio: more than it gains elsewhere.
LEVEL_BEHIND = 1.5
# Bins may give their last level this share instead of the same as to all others: on uniform
# quantities up to 20 under zCDP leaves have 311 instead of 356, beside 289 of staircases.
SHARE_OF_LEAVES = Fraction(3, 5)
# Staircases whose noise, with the same share for every level, is as large as this part of all groups
# of the root fall apart: 2 to 5 times as far off as bins, on 500 to 20,000 groups.
HOPELESS = 0.7
# A look whose noise is more than a fifth of all groups tells nothing to choose by; then staircases
# are taken up to this bound on quantities, with which 500 groups are as well off with either.
BLIND_LOOK, SMALL_QUANTITY = 5, 20
# Sizes are taken to reach as far as groups are left by so many standard deviations of the look, for a
# prediction; bins are chosen more cautiously, for one too many there costs more than one too few.
LIKELY_REACH = 1.5
# Bins are taken where quantities are bounded this many times above the mean size: staircases win up to
# one or two times. In looks with much noise predictions alone took staircases once in five.
FAR_ABOVE = 5
