"""Intervals of released group sizes: from copies of the noise, and from known errors."""
