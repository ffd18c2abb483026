"""Qardaji, Yang and Li 2013: hierarchies for range queries, their tables and figures beside ours."""
