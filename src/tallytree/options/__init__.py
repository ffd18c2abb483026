"""Every option of every kind of release, declared once: name, type, default and what it means.

Command line, TOML files, Python keywords and manifests follow from these classes.
"""

from tallytree.options.base import Options, option
from tallytree.options.degrees import DegreesOptions
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.histogram import HistogramOptions
from tallytree.options.maps import MapOptions, MethodOptions
from tallytree.options.reading import ReadOptions
from tallytree.options.stream import StreamOptions

__all__ = [
    "DegreesOptions",
    "HistogramOptions",
    "MapOptions",
    "MethodOptions",
    "Options",
    "ReadOptions",
    "ReleaseOptions",
    "StreamOptions",
    "option",
]
