"""Differentially private tables of counts over a hierarchy that add up."""
