"""Sorted degree sequences: how many nodes of a graph have each degree. Start reading in
``kind.py``.
"""
