"""What every kind of release shares: folder, manifest, keeping, queries, checks, evaluation, report
and export.
"""
