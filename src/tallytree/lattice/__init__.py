"""Tables by attributes, whatever they count: their shares of a budget, least squares on them, whole
numbers.
"""
