"""Mechanisms for maps and lines that others published and no default chooses: DAWA, AHP, PrivTree
and their kin.
"""
