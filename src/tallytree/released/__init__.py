"""The released tables: query, verify, save, load, evaluate."""
