"""The table of all kinds of release, and the verbs that every kind has: load, verify, ask,
evaluate, plan, report.
"""
