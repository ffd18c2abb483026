"""Uncertainty of box queries on a tree of boxes after least squares, and their answers without it.

A query is a box with real-valued ends. A leaf that it cuts counts by the fraction w of its volume
that lies inside. Let s_v be the best estimate of node v from the counts at and below it and q_v the
same of what the query takes of v. Upwards, with S = Σ Var(s_c), K = Σ Cov(q_c, s_c) and U = Σ
Var(q_c) over the children, a count of v with variance V updates the pair like a Kalman filter:
Cov(q_v, s_v) = K V / (S + V), Var(q_v) = U − K² / (S + V). A node wholly inside has q = s, one
wholly outside q = 0, so only nodes cut by the border are visited.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import as_input, run_in_chunks, serial
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.box_tree import BoxTree


@serial
def _overlap(low, high, node, query_low, query_high, query):
    """Fraction of a node's volume that lies inside a query."""
    fraction = 1.0
    for axis in range(low.shape[1]):
        first = max(float(low[node, axis]), query_low[query, axis])
        last = min(float(high[node, axis]), query_high[query, axis])
        if last <= first:
            return 0.0
        fraction *= (last - first) / (high[node, axis] - low[node, axis])
    return fraction


@serial
def _uncertainty(boxes, noise, depth, query_low, query_high, found, n_cut, begin, end):
    low, high, starts, leaves = boxes
    own, from_below, below, values, loose, edge = noise
    out, by_area, inside_boxes = found
    node, child = np.empty(depth + 1, np.int64), np.empty(depth + 1, np.int64)
    covariance, variance = np.empty(depth + 1), np.empty(depth + 1)
    for query in range(begin, end):
        inside = _overlap(low, high, 0, query_low, query_high, query)
        if inside >= 1.0 or leaves[0]:
            out[query] = inside * inside * from_below[0]
            by_area[query] = inside * values[0] if inside < 1.0 else 0.0
            inside_boxes[query] = inside * (1.0 - inside) * (loose[0] + edge[0] * edge[0])
            n_cut[query] = 1 if 0.0 < inside < 1.0 else 0
            continue
        top, cut, leaves_cut, unknown, border = 0, 0.0, 0, 0.0, 0.0
        node[0], child[0], covariance[0], variance[0] = 0, starts[0], 0.0, 0.0
        while top >= 0:
            v = node[top]
            if child[top] < starts[v + 1]:
                c = child[top]
                child[top] += 1
                w = _overlap(low, high, c, query_low, query_high, query)
                if w >= 1.0 or leaves[c]:
                    covariance[top] += w * from_below[c]
                    variance[top] += w * w * from_below[c]
                    if 0.0 < w < 1.0:
                        cut += w * values[c]
                        leaves_cut += 1
                        unknown += w * (1.0 - w) * loose[c]
                        border += np.sqrt(w * (1.0 - w)) * edge[c]
                elif w > 0.0:
                    top += 1
                    node[top], child[top], covariance[top], variance[top] = c, starts[c], 0.0, 0.0
                continue
            k, u = covariance[top], variance[top]
            if own[v] < np.inf:
                total = below[v] + own[v]
                u = max(0.0, u - k * k / total)
                k = k * own[v] / total
            top -= 1
            if top >= 0:
                covariance[top] += k
                variance[top] += u
            else:
                out[query], by_area[query], n_cut[query] = u, cut, leaves_cut
                inside_boxes[query] = unknown + border * border


@serial
def _fewest(
    low, high, starts, own, values, depth, query_low, query_high, out, out_variance, begin, end
):
    node, child = np.empty(depth + 2, np.int64), np.empty(depth + 2, np.int64)
    for query in range(begin, end):
        total, variance = 0.0, 0.0
        top = 0
        # A frame of one node stands above the root.
        node[0], child[0] = -1, 0
        while top >= 0:
            v = node[top]
            last = 1 if v < 0 else starts[v + 1]
            if child[top] == last:
                top -= 1
                continue
            c = child[top]
            child[top] += 1
            w = _overlap(low, high, c, query_low, query_high, query)
            if w <= 0.0:
                continue
            is_leaf = starts[c] == starts[c + 1]
            if is_leaf or (w >= 1.0 and own[c] < np.inf):
                total += w * values[c]
                variance += w * w * own[c]
            else:
                top += 1
                node[top], child[top] = c, starts[c]
        out[query], out_variance[query] = total, variance


def box_uncertainty(
    tree: BoxTree,
    leaves: BoolArray,
    noise: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    query_low: FloatArray,
    query_high: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Variance of the least-squares answer to each query, the part of it that comes from leaves it
    cuts, their number, and the variance of what is not known inside those leaves, Σ w(1 − w)·loose
    + (Σ √(w(1 − w))·edge)².

    Parameters
    ----------
    tree, leaves
        The boxes, and which of them tile the map.
    noise
        Variance of each node's own count (infinite: none), variance of its best estimate from the
        counts at and below it, its published count, ``loose``, the variance of what lies inside a
        part w of it over w(1 − w), and ``edge``, the part of that error which all boxes along a
        border share, over √(w(1 − w)).
    query_low, query_high
        One row per query, in cells of the grid.
    """
    own, from_below, values, loose, edge = noise
    below = np.zeros(tree.n_nodes)
    np.add.at(below, tree.parent[1:], from_below[1:])
    found = tuple(np.empty(len(query_low)) for _ in range(3))
    n_cut = np.empty(len(query_low), dtype=np.int64)
    boxes = (tree.low, tree.high, tree.child_starts, as_input(leaves, np.int64))
    reals = tuple(
        as_input(part, np.float64) for part in (own, from_below, below, values, loose, edge)
    )
    low, high = as_input(query_low, np.float64), as_input(query_high, np.float64)
    depth = int(tree.depth[-1])
    run_in_chunks(
        lambda a, b: _uncertainty(boxes, reals, depth, low, high, found, n_cut, a, b),
        len(n_cut),
        smallest=256,
    )
    out, by_area, inside_boxes = found
    return out, by_area, n_cut, inside_boxes


def fewest_boxes(
    tree: BoxTree,
    values: FloatArray,
    variances: FloatArray,
    query_low: FloatArray,
    query_high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Each query as the sum of the fewest measured boxes, without inference; answers and their
    variances.

    ``values`` and ``variances`` are (n_nodes,), ``query_low`` and ``query_high`` (n_queries,
    n_dimensions), the results (n_queries,).
    """
    out, out_variance = np.empty(len(query_low)), np.empty(len(query_low))
    own, noisy = as_input(variances, np.float64), as_input(values, np.float64)
    low, high = as_input(query_low, np.float64), as_input(query_high, np.float64)
    depth = int(tree.depth[-1])
    run_in_chunks(
        lambda a, b: _fewest(
            tree.low,
            tree.high,
            tree.child_starts,
            own,
            noisy,
            depth,
            low,
            high,
            out,
            out_variance,
            a,
            b,
        ),
        len(out),
        smallest=256,
    )
    return out, out_variance
