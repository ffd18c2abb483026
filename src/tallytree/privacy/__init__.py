"""Budgets, sensitivities, exact noise and its randomness: the sole room that draws random numbers."""
