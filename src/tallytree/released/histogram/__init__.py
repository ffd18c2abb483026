"""Released range histograms: counts per bin, their tables and the manifest."""
