"""The same release over subtrees on a Spark cluster: its tables are those of one machine, from the
same key.

Rows are counted, answers computed and noise drawn on the executors, which write what they make
where they share a folder with the driver. The driver sees what is public (regions, numbers of
groups) and what is noisy, never an exact count. Noise is a function of the release key, level,
region and query, so that a task that is retried, speculated or recomputed draws the same noise and
releases nothing new.
"""
