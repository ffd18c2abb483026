"""Kernels of the staircase of a region: its tiles, the curve behind them, and curves of parents and
children.
"""
