"""Slow, obvious twins for degree sequences: all graphs of a few nodes."""

from itertools import combinations, product

import numpy as np


def all_degree_sequences(n_nodes):
    """Sorted degrees of every simple graph of ``n_nodes`` nodes, each once."""
    pairs = list(combinations(range(n_nodes), 2))
    found = set()
    for chosen in product([0, 1], repeat=len(pairs)):
        degrees = [0] * n_nodes
        for (a, b), present in zip(pairs, chosen):
            degrees[a] += present
            degrees[b] += present
        found.add(tuple(sorted(degrees)))
    return np.array(sorted(found))
