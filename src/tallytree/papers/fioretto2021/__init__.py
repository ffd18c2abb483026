"""Fioretto, Van Hentenryck and Zhu 2021: optimal trees of counts, the chain, and their tables."""
