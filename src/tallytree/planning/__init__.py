"""Theory: error formulas, budget allocation and plans, from public inputs only."""
