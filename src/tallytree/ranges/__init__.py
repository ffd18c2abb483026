"""Histograms that answer any range. Start reading in ``kind.py``, then ``publish.py``."""
