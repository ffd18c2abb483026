"""The kinds of release, one file each, and the verbs that every kind has: load, verify, ask, evaluate, plan, report."""
