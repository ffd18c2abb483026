"""Kernels of the document's mechanisms: chains, trees of costs and multipliers."""
