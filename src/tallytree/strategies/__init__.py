"""How ranges are asked and answered: strategies, their exact errors, their estimates. Sees noisy or
public values only.
"""
