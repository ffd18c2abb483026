"""Maps of points: counts of boxes that answer any rectangle. Start reading in ``kind.py``, then
``publish.py``.
"""
