"""Differentially private local training: clipping rules and noise mechanisms inside the cohort engine."""

from wirelessfl.learning.private.central import CentralNoise
from wirelessfl.learning.private.descent import DescentBound, descent_bound
from wirelessfl.learning.private.transform import (
    PrivateGradients,
    layer_of_parameters,
    proxy_median_norm,
    resumed_state,
    without_noise,
)

__all__ = [
    "CentralNoise",
    "DescentBound",
    "PrivateGradients",
    "descent_bound",
    "layer_of_parameters",
    "proxy_median_norm",
    "resumed_state",
    "without_noise",
]
