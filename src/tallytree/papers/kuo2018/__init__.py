"""Kuo et al. 2018: group sizes over a hierarchy, their tables beside ours."""
