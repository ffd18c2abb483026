"""Release folders on disk: atomic writing, manifests, checksums. Knows nothing about what the
tables mean.
"""
