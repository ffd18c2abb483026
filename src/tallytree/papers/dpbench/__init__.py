"""DPBench 2016: its histograms and measures, theirs beside ours."""
