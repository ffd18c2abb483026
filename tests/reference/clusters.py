"""Clusters of cells, one cell at a time."""


def clustered(noisy, cluster, noise_free):
    """The mean of every cell's cluster, and the sums of clusters, of counts without noise."""
    members = {}
    for cell, one in enumerate(cluster):
        members.setdefault(one, []).append(cell)
    sums = {one: sum(noise_free[cell] for cell in cells) for one, cells in members.items()}
    ordered = sorted(members, key=lambda one: -max(noisy[cell] for cell in members[one]))
    return [sums[one] / len(members[one]) for one in cluster], [sums[one] for one in ordered]
