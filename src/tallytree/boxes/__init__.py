"""Trees and grids of boxes: measured, estimated, released and asked; what maps and histograms of
several columns share.
"""
