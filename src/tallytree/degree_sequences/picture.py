"""A degree sequence as a picture: bars."""

from __future__ import annotations

import numpy as np

from tallytree.degree_sequences.release import DegreeSequence
from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg


def plot_degrees(sequence: DegreeSequence) -> Picture:
    """How many nodes have each degree."""
    degree, count = np.unique(sequence.degrees, return_counts=True)
    return Picture(
        bars_svg(
            Bars("Nodes by degree", "degree", [str(one) for one in degree.tolist()], count.tolist())
        )
    )
