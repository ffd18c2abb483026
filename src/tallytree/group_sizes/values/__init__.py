"""Tables of values: a door of its own to counts of groups in bins of sizes. Begin with ``kind``."""
