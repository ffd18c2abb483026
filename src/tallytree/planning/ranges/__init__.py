"""Planning of histograms and grids: workloads, strategies and their exact errors, from public inputs only."""
