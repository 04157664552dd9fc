"""Robust rules, one file each: the aggregate of single updates, some of which may be anything."""

from wirelessfl.learning.robust.base import Combined, RobustRule, RowRule
from wirelessfl.learning.robust.bulyan import Bulyan
from wirelessfl.learning.robust.collected import CollectedRows
from wirelessfl.learning.robust.geometric_median import GeometricMedian
from wirelessfl.learning.robust.krum import Krum, MultiKrum
from wirelessfl.learning.robust.mean import Mean
from wirelessfl.learning.robust.median import Median
from wirelessfl.learning.robust.norm_clip import NormClip
from wirelessfl.learning.robust.trimmed_mean import TrimmedMean

__all__ = [
    "Bulyan",
    "CollectedRows",
    "Combined",
    "GeometricMedian",
    "Krum",
    "Mean",
    "Median",
    "MultiKrum",
    "NormClip",
    "RobustRule",
    "RowRule",
    "TrimmedMean",
]
