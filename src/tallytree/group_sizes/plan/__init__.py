"""Planning of group sizes: the first look, the split over levels, errors and memory, from public
inputs only.
"""
