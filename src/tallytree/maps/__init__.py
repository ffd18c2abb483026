"""Maps: grids and trees of boxes grown from noisy answers, and what they answer. Sees noisy or public values only."""
