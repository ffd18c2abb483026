"""A stream as a picture: bars."""

from __future__ import annotations

from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg
from tallytree.streams.release import StreamRelease


def plot_stream(release: StreamRelease) -> Picture:
    """Counts so far after each step, with intervals."""
    answers = release.step_answers()
    names = [str(release.steps.name(step)) for step in range(release.n_steps)]
    ends = answers.low.tolist(), answers.high.tolist()
    return Picture(bars_svg(Bars("Counts so far", "step", names, release.counts.tolist(), *ends)))
