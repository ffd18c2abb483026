"""Range histograms: strategies, their inference and their queries. Sees noisy or public values only."""
