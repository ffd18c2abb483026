"""Tables by attributes: their shares of the budget, and sums that agree over all of them."""
