"""Outlines of regions: read, matched with the regions of a release, thinned for a page. Public,
never confidential.
"""
