"""How much one protected unit can change each family of queries: one function per family, each with
its proof.

Neighbours. Two databases are neighbours when one results from the other by removing all entities of
one unit. A unit has at most ``contributions`` = k entities, in any groups and regions; for the unit
"entity" k = 1. One entity adds a quantity of 0 … z = ``max_quantity`` to the size of its group; z =
1 where sizes count entities.

Every function bounds the change of the answers of *all regions of one level together*: a level is
one query, its regions compose in parallel, and levels compose one after the other. Both groups
settings are covered. Where groups are public, an entity joins a group that is there already, be it
empty, and ``cumulative`` counts groups of at most i entities. Where groups are private, a group
exists through its entities alone; then ``cumulative`` counts the groups of
*more* than i entities and ``sizes`` the M largest sizes filled up with zeros, and a group that does
 not exist counts like one of size 0.

Groups may have attributes, each with one value per group that stays when an entity goes; numbers of
groups per combination of values are then public, or the unit is a whole group. A row of a table by
attributes is a region with one combination of values: a group lies in one row per level and subset
of attributes, so that every bound for the regions of a level holds for the rows of such a table.
Not so where a value follows from the entities: the entity by which a group of s moves from one row
to another changes 2s − 1 cumulative counts, and there is no function for that.

Where the unit is a whole group, neighbours differ by one group with all its entities, of any size,
in any leaf; only ``size_bins`` and ``size_blocks`` are measured then, and people with a public bound
on the entities of a group. An entity *moves* a group from one bin to another: ``moved_size_bins``
and ``moved_size_blocks`` are the same questions where entities are protected.

Sizes may be cut off at a public largest size: that lowers the growth of a size, never raises it.
All proofs bound one entity first and add up over k entities by the triangle inequality, which gives
l1 = k l1(1) and l2² = k² l2²(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.stream_rows import Factors
from tallytree.model.arrays import IntArray

# Weights a of a bin's count and b of a block's where both are asked for: near the best for 20 to
# 100 bins under either noise.
BLOCK_WEIGHTS = (4, 3)


@dataclass(frozen=True)
class Sensitivity:
    """Bounds on the change of a vector of answers between neighbours, in L1 norm and in squared L2
    norm.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        if self.l1 < 1 or self.l2_squared < 1:
            raise RequestError("A sensitivity is at least 1.")


def _for_units(one_entity: Sensitivity, contributions: int) -> Sensitivity:
    """From one entity to k: norms add up, so the squared L2 norm grows with k²."""
    _require_positive(contributions, "contributions")
    return Sensitivity(contributions * one_entity.l1, contributions**2 * one_entity.l2_squared)


def _require_positive(value: int, name: str) -> None:
    if value < 1:
        raise RequestError(f"{name} must be at least 1, got {value}.")


def counts_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Counts by size, H (kuo2018 §4.1, fioretto2021 Lemma 4): l1 = 2k, l2² = 2k².

    One entity moves one group from a size to another, whatever its quantity: one count falls by 1,
    one rises by 1 (a private group that appears or goes changes one count only). Reached when k
    groups of one size all move to the same other size.
    """
    return _for_units(Sensitivity(2, 2), contributions)


def cumulative_sensitivity(*, max_quantity: int = 1, contributions: int = 1) -> Sensitivity:
    """Cumulative counts, H_c (kuo2018 §4.3, fioretto2021 Lemma 6): l1 = k z, l2² = k² z.

    An entity of quantity q moves a group from size s to s + q, so the cells s … s + q - 1 of its
    region fall by 1 (or the groups of more than s … s + q - 1 rise by 1): q <= z cells change by 1.
    Leaving out cells, such as those above a public largest size, lowers the change. Reached when k
    groups of one size in one region gain z each.
    """
    _require_positive(max_quantity, "max_quantity")
    return _for_units(Sensitivity(max_quantity, max_quantity), contributions)


def sizes_sensitivity(*, max_quantity: int = 1, contributions: int = 1) -> Sensitivity:
    """The sorted sizes of each region, H_g (kuo2018 §4.2, hay2010 §3): l1 = k z, l2² = (k z)².

    One size grows by q <= z, the others stay. Sorting both lists never increases the L1 or L2
    distance of two vectors (matching in order is optimal for convex costs), nor does keeping the M
    largest. Reached when all entities join one group.
    """
    _require_positive(max_quantity, "max_quantity")
    return _for_units(Sensitivity(max_quantity, max_quantity**2), contributions)


def hybrid_sensitivity(*, max_quantity: int = 1, contributions: int = 1) -> Sensitivity:
    """The hybrid view, both parts together: l1 = k z, l2² = (k z)².

    Q1 = H_c[0 … T-1], each cell alone or added up over consecutive blocks; Q2 = the M largest
    values of max(size, T), sorted. An entity of quantity q moves a group from s to s + q. Of the q
    cells s … s + q - 1, a = max(0, min(s + q, T) - s) lie below T: Q1 changes by a in L1, by at
    most a in L2, however cells are put into blocks. Q2 changes by at most b = max(s + q, T) -
    max(s, T) in either norm, whatever M. Since a + b = q, l1 <= q and l2² <= a² + b² <= q² <= z².

    The bounds a and b do not depend on the answers. So T, the blocks and M may be chosen one after
    the other from noisy answers already given: for every transcript the losses add up to at most (a
    + b)/scale, or (a² + b²)/(2 sigma2). With k = z = 1 one of a and b is 0: the two parts never
    cost at once.
    """
    _require_positive(max_quantity, "max_quantity")
    return _for_units(Sensitivity(max_quantity, max_quantity**2), contributions)


def group_totals_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """The number of groups per region, where groups are private (kuo2018 footnote 5): l1 = k, l2² =
    k².

    An entity may be its group's only one, so that the group comes and goes with it: one total
    changes by 1.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def people_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Entities per class (age by sex …) and region, or row of a table by attributes of groups: l1 =
    k, l2² = k².

    An entity has one class and its group lies in one row of a table, so one count changes by 1;
    with k entities at most k in all. Reached when all have the same class in one row. Where the
    unit is a whole group, k is the public bound on the entities that count of one group, all of
    which come and go with it.

    The same entity also fills one cell of the staircase of its row: sizes and people are different
    questions about it, asked one after the other, whose losses add up. Each has its share of the
    budget, and its own sensitivity.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def size_bins_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Groups per bin of sizes, where the unit is k whole groups: l1 = k, l2² = k².

    Neighbours differ by one group with all its entities, of any size, in any leaf; regions and bins
    are fixed, and the last bin takes all larger sizes. On each level the group lies in one region,
    and there in one bin, as bins do not overlap: one count changes by 1. Which bins are asked about
    may follow from noisy answers already given. The rows of a person, of which k count, are k such
    groups; all may lie in one bin.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def size_blocks_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """a times the groups per bin and b times the groups per block of bins, unit k whole groups: l1
    = k (a + b), l2² = k² (a² + b²).

    Neighbours as in :func:`size_bins_sensitivity`. A group lies in one bin and in one block of one
    region: one answer changes by a and one by b, whatever its size. Reached where all k lie in one
    bin.
    """
    a, b = BLOCK_WEIGHTS
    return _for_units(Sensitivity(a + b, a * a + b * b), contributions)


def moved_size_bins_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Groups per bin of sizes, where entities are protected: l1 = 2k, l2² = 2k², whatever their
    quantities.

    One entity takes its group from one size to another in the same region (or row of a table by
    attributes). Bins do not overlap, so one count falls by 1 and one rises by 1; inside a bin
    nothing changes, and a private group that comes or goes changes one count alone. Which bins are
    asked about may follow from noisy answers already given. Reached when k groups of one bin all
    move to the same other bin.
    """
    return _for_units(Sensitivity(2, 2), contributions)


def moved_size_blocks_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """a times the groups per bin and b times the groups per block of bins, where entities are
    protected: l1 = 2k (a + b), l2² = 2k² (a² + b²).

    One entity takes its group out of one bin and puts it into another, as in
    :func:`moved_size_bins_sensitivity`: two answers about bins change by a each. If the bins lie in
    different blocks, two about blocks change by b each, otherwise none. Reached when k groups of
    one bin all move to the same bin of another block.
    """
    a, b = BLOCK_WEIGHTS
    return _for_units(Sensitivity(2 * (a + b), 2 * (a * a + b * b)), contributions)


def largest_size_sensitivity(*, max_quantity: int = 1, contributions: int = 1) -> Sensitivity:
    """The largest size per region, 0 where there is none (kuo2018 footnote 6): l1 = k z, l2² = (k
    z)².

    One size grows by q <= z, so the maximum of its region grows by 0 … z. Reached when all entities
    join the largest group.
    """
    _require_positive(max_quantity, "max_quantity")
    return _for_units(Sensitivity(max_quantity, max_quantity**2), contributions)


def histogram_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Counts of entities per bin or region: l1 = k, l2² = k².

    An entity lies in one bin and changes its count by 1. Reached when all k lie in the same bin.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def chain_sensitivity(
    n_regions: int, *, max_quantity: int = 1, contributions: int = 1
) -> Sensitivity:
    """The chain of fioretto2021 §9.2 over a level of ``n_regions`` = m regions: l1 = k z m, l2² =
    k² z m.

    Departs from the paper, which takes 1 (see the errata). The chain accumulates counts with sizes
    outside and regions inside: entry (s, r) counts the groups at all (s', r') up to it. Moving a
    group of region r from s to s + q lowers the entries from (s, r) up to, not including, (s + q,
    r): q m entries, each by 1.
    """
    _require_positive(n_regions, "n_regions")
    _require_positive(max_quantity, "max_quantity")
    return _for_units(
        Sensitivity(max_quantity * n_regions, max_quantity * n_regions), contributions
    )


def block_differences_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Left half minus right half of every block of one width, or the total of all bins (Haar
    wavelet): l1 = k, l2² = k².

    Blocks of one width do not overlap, so an entity lies in one of them, in one half: one
    difference changes by ±1. Reached when all k lie in the same half.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def linear_queries_sensitivity(coefficients: IntArray, *, contributions: int = 1) -> Sensitivity:
    """Whole-number combinations of bin counts, one per row of ``coefficients``: the largest column,
    in L1 and in squared L2.

    An entity in bin i changes the answers by column i. Norms of k columns add up, and are largest
    when all k are the largest column; the two norms may be reached at different columns.
    """
    columns = np.asarray(coefficients)
    if (
        columns.dtype != np.int64
        or columns.ndim != 2
        or columns.size == 0
        or np.abs(columns).max() >= 2**20
    ):
        raise RequestError(
            "Coefficients of queries are a matrix of whole numbers below 2^20, with at least one "
            "row."
        )
    if not np.any(columns):
        raise RequestError("Queries whose coefficients are all 0 ask nothing.")
    one_entity = Sensitivity(
        int(np.abs(columns).sum(axis=0).max()), int((columns**2).sum(axis=0).max())
    )
    return _for_units(one_entity, contributions)


def running_rows_sensitivity(factors: Factors, *, contributions: int = 1) -> Sensitivity:
    """Rows r_t Σ_s w_{t-s} d_s x_s of a stream, t = 0, 1, … up to as many steps as weights, all
    factors nonnegative: the largest column, l1 = k max_s d_s Σ_t r_t w_{t-s}, l2² = k² max_s d_s²
    Σ_t r_t² w_{t-s}².

    An entity that comes in step s changes row t >= s by r_t w_{t-s} d_s and no row before. Norms of
    k columns add up, and are largest when all k are the largest column; the two norms may be
    reached at different columns. An entity keeps its step in every row: rows of later steps must
    see the same past.
    """
    _require_factors(factors)
    columns, squares = factors.columns, factors.sums_of_squares
    # d Σ r w is below 2^50. d² Σ r² w² is not below 2^63: those that floating point cannot tell from
    # the largest are compared exactly.
    l1 = int((columns * factors.sums).max())
    rough = columns.astype(np.float64) ** 2 * squares
    largest = np.flatnonzero(rough >= (1 - 1e-9) * rough.max()).tolist()
    l2_squared = max(int(columns[s]) ** 2 * int(squares[s]) for s in largest)
    one_entity = Sensitivity(l1, l2_squared)
    return _for_units(one_entity, contributions)


def returning_rows_sensitivity(
    weights: IntArray, *, contributions: int, min_gap: int
) -> Sensitivity:
    """Rows Σ_s w_{t-s} x_s of a stream of n steps, weights nonnegative and never rising, where a
    unit has at most k entities, any two of them at least g >= 1 steps apart: the norms of v_t =
    Σ_{i<k} w_{t-ig}, of a unit that comes in steps 0, g, 2g …

    Let a unit come in steps s_0 < s_1 < … < s_{m-1}, m <= k. It changes the rows by the sum of
    columns s_a. All entries are nonnegative, so l1 is Σ_a Σ_{u < n-s_a} w_u, and l2² is the sum
    over all a, b of M(s_a, s_b), where M(i, j) = Σ_{u < n-j} w_u w_{u+j-i} for i <= j. With the gap
    j − i fixed M falls as j grows, having fewer terms, and with j fixed it falls as the gap grows,
    as weights never rise. As s_a >= a g and s_b − s_a >= (b − a) g, each term is at most that of
    steps 0, g, 2g … So are the terms of l1. Further entities add nonnegative terms, so k of them,
    or as many as there is room for, are the worst. Reached by that unit itself.
    """
    _require_positive(contributions, "contributions")
    _require_positive(min_gap, "min_gap")
    ones = np.ones_like(weights)
    _require_factors(Factors(weights, ones, ones))
    if np.any(np.diff(weights) > 0):
        raise RequestError("Weights of rows that a unit comes back to never rise.")
    # Steps 0, g, 2g … side by side: v_t is a sum over those before t, but for those too far back.
    width = min(min_gap, len(weights))
    upto = np.cumsum(np.pad(weights, (0, -len(weights) % width)).reshape(-1, width), axis=0)
    change = upto.copy()
    change[contributions:] -= upto[: max(len(upto) - contributions, 0)]
    change = change.ravel()[: len(weights)]
    return Sensitivity(int(change.sum()), sum(value * value for value in change.tolist()))


def _require_factors(factors: Factors) -> None:
    """Refuse factors whose products might not be worked out exactly."""
    weights, rows = factors.weights, factors.rows
    for factor, most in ((weights, 2**16), (rows, 2**8), (factors.columns, 2**18)):
        if (
            factor.dtype != np.int64
            or factor.shape != weights.shape
            or factor.ndim != 1
            or factor.size == 0
            or factor.min() < 0
            or factor.max() > most
        ):
            raise RequestError(
                "Weights of running rows are vectors of whole numbers from 0 to 2^16, of their "
                "rows to 2^8 and of their columns to 2^18, each with one entry per step."
            )
        if not np.any(factor):
            raise RequestError("Rows whose weights are all 0 ask nothing.")
    if not factors.fit:
        raise RequestError("Weights of running rows, times the largest row's, are below 2^32.")


def edge_degrees_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """The sorted degrees of an undirected graph whose protected entity is an edge: l1 = 2k, l2² =
    2k².

    An edge between two different nodes raises two degrees by 1 (hay2010 counts one end only).
    Sorting never increases the distance in either norm; before sorting two entries differ by 1. k
    edges may share a node, so L2 adds up by the triangle inequality.
    """
    return _for_units(Sensitivity(2, 2), contributions)


def edge_nodes_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """The number of nodes that have edges, where it is private: l1 = 2k, l2² = (2k)².

    An edge may be the only one of both its nodes, which come and go with it: the number changes by
    at most 2. The degrees of these nodes are then read as those of the M largest, filled up with
    zeros: a node that does not exist counts like one without edges, so
    :func:`edge_degrees_sensitivity` and :func:`sizes_sensitivity` hold for every M that follows
    from answers already given.
    """
    return _for_units(Sensitivity(2, 4), contributions)


def median_score_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """−|points below a cut − points above it|, the score of a private median: l1 = k per candidate,
    l2² = k².

    An entity lies on one side of the cut, so the difference changes by ±1 and its absolute value by
    at most 1. This bounds the change of each candidate's score, which is what the exponential
    mechanism needs, not that of all scores together.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def deviation_score_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Absolute deviations of bins from the medians of two parts, the score of a boundary: l1 = k
    per candidate, l2² = k².

    The deviations of a part are min over m of Σ |count − m|. An entity changes one count by 1, so
    for every m, hence for the best m, the sum of its part changes by at most 1. As for medians,
    this bounds the change of each candidate's score.
    """
    return _for_units(Sensitivity(1, 1), contributions)


def squares_score_sensitivity(largest: int, *, contributions: int = 1) -> Sensitivity:
    """Squared deviations of bins from the means of parts, rounded down part by part: l1 = k (2F −
    1) per candidate.

    Counts are cut off at ``largest`` = F >= 1, which is public or follows from answers already
    given. Of n bins with mean m, an entity that raises a count from x to x + 1 <= F changes Σ
    (count − mean)² by 2(x − m) + 1 − 1/n. The other n − 1 counts lie in 0 … F, so x − m lies
    between (x − F)(1 − 1/n) and x(1 − 1/n), and the change between (1 − 2F)(1 − 1/n) and (2F − 1)(1
    − 1/n). Two numbers that differ by at most the whole number 2F − 1 still do when both are
    rounded down. The entity lies in one part, so the cost of every partition, hence the least cost
    of a set of partitions, changes by at most 2F − 1. (Xu et al. 2012 state 2F + 1.) Rounded, it is
    reached: by one of F = 1, four bins, and two entities in them.
    """
    _require_positive(largest, "largest")
    return _for_units(Sensitivity(2 * largest - 1, (2 * largest - 1) ** 2), contributions)


def tiling_sensitivity(*, contributions: int = 1) -> Sensitivity:
    """Cost of one tiling of a tree of boxes minus that of another, as far as one choice depends on
    it: l1 = 2k, l2² = 4k².

    A tiling costs the absolute deviations of the cells of each of its boxes from their median,
    added up. An entity lies in one box of every tiling, so that the cost of each tiling changes by
    at most 1 (see :func:`deviation_score_sensitivity`) and a difference of two by at most 2;
    reached where a cell is above the median of one box and below that of another.

    Noise of scale 2k/ε on the cost of every box, single cells included, makes the choice of the
    cheapest tiling cost ε. Fix the cell of the entity, a tiling P, the box b of P with that cell,
    and the noise of all boxes but b. P is chosen where b is no dearer than the best tiling of its
    inside and, with b at its price, cheaper than every box around it: where the noise of b is at
    most some bound (or below it). Tilings with b change alike, those without it by at most 1, the
    cost of b by at most 1, so the bound moves by at most 2, and the probability of lying below it
    by a factor of at most exp(2 / scale). Entities follow one another, so k of them cost k times
    that. Costs may not be cut off at 0, nor single cells spared the noise: then one outcome can say
    something about all boxes around a cell at once.
    """
    return _for_units(Sensitivity(2, 4), contributions)


def descent_sensitivity(fanout: int, *, contributions: int = 1) -> Fraction:
    """Losses of all decisions on the way down a tree of boxes, in units of 1/scale: k (2β − 1)/(β −
    1) for a fanout β.

    PrivTree (Zhang, Xiao, Xie 2016, §3): a box at depth t with c entities is split if max(c − t δ,
    −δ) plus discrete Laplace noise of scale λ is above 0. Needs δ ≥ λ ln β and δ ≥ 1; any tree of
    nested boxes will do.

    Take k = 1, as entities follow one another, and b_t = c_t − t δ on the way to the cell of the
    entity; along it c_t never grows, so b_t falls by δ or more at every step. With the entity b_t
    is 1 larger, unless both are cut off at −δ. A decision loses at most 1/λ, and one with b_t ≥ 1
    at most exp((1 − b_t)/λ)/λ, as P(b + noise > 0) is 1 − q^b/(1 + q) for b ≥ 1, q = exp(−1/λ). Let
    u = b_f be the first b_t below 1 and 0 at least: its decision loses 1/λ at most, the next one
    u/λ, as it is cut off at −δ, those further down nothing, and those above at most Σ_j exp((1 − u
    − j δ)/λ)/λ. That is convex in u, and at u = 0 and u = 1 at most (1 + β/(β − 1))/λ, because
    exp(−δ/λ) ≤ 1/β and δ ≥ 1. If b_f is below 0 the next one is cut off wholly. The last box, which
    is not split, loses at most 1/λ as well. Whole numbers b_t leave u = 0 alone, but the bound
    needs that no more than real ones do.
    """
    _require_positive(contributions, "contributions")
    if fanout < 2:
        raise RequestError(f"A box is split into 2 or more, got {fanout}.")
    return Fraction(contributions * (2 * fanout - 1), fanout - 1)
