"""How noisy blocks become curves, and what curves hand on to the levels around them."""

# Sizes that say something about size i: i/1.5 … 1.5 i. Falls are compared with the prior's over
# them, doubt about children's sums is judged over them, and a size that no shape has is as likely
# as a tenth of the mean over them.
NEARBY = 1.5
# Roughness of falls and width of the window over which a shape is smoothed, chosen per level by
# likelihood. Shapes of neighbouring levels are never trusted to better than a tenth: with less, the
# likelihood overfits small levels. With one fixed pair errors are 1.05 times as large, 1.45 at
# worst.
ROUGHNESSES = (0.1, 0.2, 0.4, 0.8)
WINDOWS = (1.0, 1.25, 1.5, 2.0)
# From this roughness on sizes are taken to have heaps. On ten made-up sets of 8,000 groups, 12 runs
# each at ε = 1 and 0.1, smooth ones had 0.1 (heavy tails at 0.1 more in 2 of 12), heaped ones 0.8.
HEAPED = 0.4
# Chance of a drop before any one block, where curves are taken to be level in between; chosen by
# likelihood. Without drops errors are 1.26 times as large, 61 times for employment classes.
DROP_CHANCES = (0.5, 0.1, 0.03)
# Two numbers are chosen per level; a few hundred regions tell them.
LIKELIHOOD_SAMPLE = 200
# Regions of the topmost measured level that tell how large groups are that noise hides: usually it
# has far fewer.
HIDDEN_SAMPLE = 1 << 14
# A tail is taken to be empty where that is e² times as likely, and then N is known to a tenth.
# Without empty tails errors are as large on average over eight data sets, 1.07 times as large at
# worst.
EMPTY_TAIL, EMPTY_VARIANCE = 2.0, 0.01
# The same for sizes below those that a combination of values has, with attributes: CPS households
# by couple and assistance have 34.0 instead of 34.9 at ε = 1 (geometric mean over levels), 187
# instead of 193 at 0.1. A head ends for good where it is e⁵⁰ times as unlikely.
EMPTY_HEAD, HOPELESS_HEAD = 2.0, -50.0
# Likeliest places of the last drop that are followed up, and the weight below which a place is left
# out.
DROP_PLACES, NEGLIGIBLE = 64, 1e-12
# Keeps the smoother's covariances invertible where a curve is known.
LEAST_VARIANCE = 1e-9
# Deviation of a child's curve from its siblings' shape, relative to the groups in question, beyond
# what chance explains.
UNLIKE = 1.0
# How far sums of smoothed curves may be off, relative to the groups in question; chosen per level
# by likelihood.
BIASES = (0.0001, 0.003, 0.01, 0.03, 0.1, 0.3)
