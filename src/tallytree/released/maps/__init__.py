"""Released maps: counts of boxes, their tables and checks, and the manifest."""
