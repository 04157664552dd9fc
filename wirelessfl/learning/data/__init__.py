"""Datasets: real ones from files as published, and synthetic ones."""

from wirelessfl.learning.data.digits import load_digits
from wirelessfl.learning.data.examples import Dataset, Examples, stratified_split
from wirelessfl.learning.data.synthetic import (
    LogNormalSizes,
    SharedSource,
    SkewedSources,
    SyntheticLaw,
    load_synthetic,
)

__all__ = [
    "Dataset",
    "Examples",
    "LogNormalSizes",
    "SharedSource",
    "SkewedSources",
    "SyntheticLaw",
    "load_digits",
    "load_synthetic",
    "stratified_split",
]
