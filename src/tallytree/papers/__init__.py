"""One folder per document: its mechanisms that no default chooses, and its tables and figures,
theirs beside ours.
"""
