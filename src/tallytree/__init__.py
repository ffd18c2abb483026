"""Differentially private tables of counts over a hierarchy that add up."""

from tallytree.ingest.read import read
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.hierarchy import Hierarchy
from tallytree.publish.group_sizes import release
from tallytree.release.evaluation import evaluate
from tallytree.release.loading import load_release as load
from tallytree.release.loading import verify_release as verify
from tallytree.release.release import Release

__all__ = ["ConfidentialCounts", "Hierarchy", "Release", "evaluate", "load", "read", "release", "verify"]
