"""Releases in the formats of others: spreadsheets, statistical cubes, data packages, maps. From
released numbers alone.
"""
