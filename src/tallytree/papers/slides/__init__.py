"""The slides on private maps: grids and trees, their figures beside ours."""
