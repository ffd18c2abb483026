"""How many groups have each size, at every level. Start reading in ``kind.py``, then
``publish.py``.
"""
