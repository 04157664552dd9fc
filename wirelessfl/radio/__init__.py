"""The radio: fading, channel knowledge, power control, jamming and superposition, as functions of arrays.

Arrays (n,) run over the clients active in a round. Nothing here knows a clock, a file or a model.
"""

from wirelessfl.radio.agreement import Calibration, ExactCalibration, Jamming, TheoremCalibration
from wirelessfl.radio.budget import zcdp_budget
from wirelessfl.radio.correlation import clarke_fading, clarke_gains, gauss_markov, jakes_correlation
from wirelessfl.radio.cotaf import Cotaf
from wirelessfl.radio.cross_layer import CrossLayer, server_gain_for_epsilon
from wirelessfl.radio.csi import estimate_channel, mean_estimate_power
from wirelessfl.radio.fading import FadingModel, Nakagami, Rayleigh, Recorded, Rician, Static
from wirelessfl.radio.full_power import FullPower
from wirelessfl.radio.jamming import (
    accounted_noise_std,
    effective_noise_std,
    jammer_energy,
    jammer_gain_exact,
    jammer_gain_for_noise,
    jammer_gain_limit,
    jammer_gain_theorem,
    received_jamming_std,
    required_noise_std_exact,
    required_noise_std_theorem,
    server_gain_for_noise,
    shortfall_probability,
)
from wirelessfl.radio.links import Links
from wirelessfl.radio.minimum_mse import MinimumMse
from wirelessfl.radio.power_control import (
    AdaptivePowerControl,
    AirInterface,
    PowerControl,
    Transmission,
    TransmitPlan,
    clamped_inversion,
    received_bound,
    server_gain_for_received_limit,
)
from wirelessfl.radio.privacy_for_free import (
    PrivacyBudget,
    PrivacyForFree,
    StaticPrivacyForFree,
    privacy_for_free_budget,
    privacy_for_free_epsilon,
)
from wirelessfl.radio.superposition import Superposition, superpose
from wirelessfl.radio.tr38901 import tr38901_los_probability, tr38901_path_loss_db
from wirelessfl.radio.truncated_inversion import TruncatedInversion

__all__ = [
    "AdaptivePowerControl",
    "AirInterface",
    "Calibration",
    "Cotaf",
    "CrossLayer",
    "ExactCalibration",
    "FadingModel",
    "FullPower",
    "Jamming",
    "Links",
    "MinimumMse",
    "Nakagami",
    "PowerControl",
    "PrivacyBudget",
    "PrivacyForFree",
    "Rayleigh",
    "Recorded",
    "Rician",
    "Static",
    "StaticPrivacyForFree",
    "Superposition",
    "TheoremCalibration",
    "Transmission",
    "TransmitPlan",
    "TruncatedInversion",
    "accounted_noise_std",
    "clamped_inversion",
    "clarke_fading",
    "clarke_gains",
    "effective_noise_std",
    "estimate_channel",
    "gauss_markov",
    "jakes_correlation",
    "jammer_energy",
    "jammer_gain_exact",
    "jammer_gain_for_noise",
    "jammer_gain_limit",
    "jammer_gain_theorem",
    "mean_estimate_power",
    "privacy_for_free_budget",
    "privacy_for_free_epsilon",
    "received_bound",
    "received_jamming_std",
    "required_noise_std_exact",
    "required_noise_std_theorem",
    "server_gain_for_epsilon",
    "server_gain_for_noise",
    "server_gain_for_received_limit",
    "shortfall_probability",
    "superpose",
    "tr38901_los_probability",
    "tr38901_path_loss_db",
    "zcdp_budget",
]
