"""Kernels on boxes and bins: trees of boxes, their moments, and partitions."""
