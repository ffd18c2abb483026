"""What things are: hierarchies and counts by size as flat arrays. NumPy only."""
