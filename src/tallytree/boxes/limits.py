"""For what boxes are asked at all: sizes, bounds and shares that planning reads without a method."""

from __future__ import annotations

from fractions import Fraction

# Share that a method spends on the number of points where that is not public.
SHARE_OF_TOTAL = {
    "uniform-grid": Fraction(1, 20),
    "adaptive-grid": Fraction(1, 50),
    "adaptive-tree": Fraction(1, 50),
    "adaptive": Fraction(1, 50),
}
MOST_NODES = 1 << 25
# Up to so many cells the flat method is best or close to it, whatever the data (qardaji2013 §5: up
# to 4,096 in two dimensions where all cells are dense, some 45 in one; adaptive trees are ahead
# earlier where they are not).
FEW_CELLS, FEW_BINS = 1024, 64
# A cell is asked in at most as many steps as a tree is deep, far below a thousand; a unit of k
# entities changes k answers each.
MOST_CONTRIBUTIONS_WITH_DELTA = 1000
