"""Noise mechanisms: what is added to clipped sums, at the clients and at the server. Importing this needs torch."""

from wirelessfl.privacy.mechanisms.base import (
    LocalSteps,
    MechanismFacts,
    NoiseMechanism,
    PerSampleGradients,
    divisible,
    is_divisible,
    standard_normals,
)
from wirelessfl.privacy.mechanisms.conformance import check_noise_mechanism
from wirelessfl.privacy.mechanisms.gaussian import GaussianMechanism, MeanGaussianMechanism
from wirelessfl.privacy.mechanisms.haar import HaarMechanism, clip_by_haar_norm
from wirelessfl.privacy.mechanisms.haar_norms import haar_squared_norms
from wirelessfl.privacy.releases.server_noise import (
    haar_server_noise,
    server_noise_std,
    server_weights,
    white_server_noise,
)

__all__ = [
    "GaussianMechanism",
    "HaarMechanism",
    "LocalSteps",
    "MeanGaussianMechanism",
    "MechanismFacts",
    "NoiseMechanism",
    "PerSampleGradients",
    "check_noise_mechanism",
    "clip_by_haar_norm",
    "divisible",
    "haar_server_noise",
    "haar_squared_norms",
    "is_divisible",
    "server_noise_std",
    "server_weights",
    "standard_normals",
    "white_server_noise",
]
