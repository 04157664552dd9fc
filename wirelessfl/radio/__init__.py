"""The radio: channels, power control, jamming, superposition and digital links, as functions of arrays.

Arrays (n,) run over the clients active in a round. Nothing here knows a clock, a file or a model.
"""

from wirelessfl.radio.access import MultipleAccess, Ofdma, Tdma
from wirelessfl.radio.agreement import Calibration, ExactCalibration, ExactStepCalibration, Jamming, TheoremCalibration
from wirelessfl.radio.cell_links import CellLinks
from wirelessfl.radio.conformance import check_fading_model, check_power_control
from wirelessfl.radio.correlation import clarke_fading, clarke_gains, gauss_markov, jakes_correlation
from wirelessfl.radio.cotaf import Cotaf
from wirelessfl.radio.cross_layer import CrossLayer
from wirelessfl.radio.csi import estimate_channel, mean_estimate_power
from wirelessfl.radio.expected_norms import ExpectedNorms, MeasuredNorms
from wirelessfl.radio.fading import FadingModel, Nakagami, Rayleigh, Recorded, Rician, SpecularFading, Static
from wirelessfl.radio.full_power import FullPower
from wirelessfl.radio.gbma import Gbma
from wirelessfl.radio.geometry import hexagonal_sites, nearest_site, uniform_disc
from wirelessfl.radio.impairments import carrier_offsets
from wirelessfl.radio.inverse_power import mean_inverse_power
from wirelessfl.radio.jamming import (
    accounted_noise_std,
    effective_noise_std,
    jammer_energy,
    jammer_gain_for_noise,
    jammer_gain_limit,
    received_jamming_std,
    required_noise_std_exact,
    server_gain_for_noise,
    shortfall_probability,
)
from wirelessfl.radio.late_arrival import LateArrival
from wirelessfl.radio.links import Links
from wirelessfl.radio.lower_gain import LowerGain
from wirelessfl.radio.minimum_mse import MinimumMse
from wirelessfl.radio.mobility import RandomWaypoint
from wirelessfl.radio.numerology import OfdmNumerology
from wirelessfl.radio.pathloss import (
    free_space_path_loss_db,
    path_gain,
)
from wirelessfl.radio.peak_power import limit_amplitude
from wirelessfl.radio.pieces import (
    coherence_time,
    coordinate_ranges,
    energy_shares,
    longest_piece,
    pieces_needed,
    self_distortion,
)
from wirelessfl.radio.placement import GivenPositions, PlacementLaw, UniformDisc, UniformHexagons
from wirelessfl.radio.power_control import (
    AdaptivePowerControl,
    AirInterface,
    AveragePowerControl,
    NormScaledPowerControl,
    PowerControl,
    Transmission,
    TransmitPlan,
    at_the_clip,
    clamped_inversion,
    follows_own_norms,
    is_non_expansive,
    is_peak_limited,
    received_bound,
    server_gain_for_received_limit,
)
from wirelessfl.radio.privacy_for_free import (
    PrivacyBudget,
    PrivacyForFree,
    StaticPrivacyForFree,
)
from wirelessfl.radio.propagation.path_loss import LogDistance, PathLossModel, Tr38901
from wirelessfl.radio.quantiser import StochasticQuantiser
from wirelessfl.radio.rate_margin import channel_given_estimate, outage_power
from wirelessfl.radio.rates import (
    ShortPackets,
    link_snr,
    rayleigh_outage_probability,
    shannon_rate,
    snr_of_power,
)
from wirelessfl.radio.slot_links import (
    SlotLinks,
    SlotTransmission,
    credited_over_pieces,
    largest_csi_ratio,
    received_amplitude,
    transmit_over_pieces,
    worst_over_pieces,
)
from wirelessfl.radio.spatial import PairedFields, ornstein_uhlenbeck
from wirelessfl.radio.superposition import Superposition, superpose
from wirelessfl.radio.tr38901 import tr38901_los_probability, tr38901_path_loss_db
from wirelessfl.radio.truncated_inversion import TruncatedInversion
from wirelessfl.radio.upload import AdaptiveRate, FixedRate, Upload
from wirelessfl.radio.weakest_inversion import WeakestInversion

__all__ = [
    "AdaptivePowerControl",
    "AdaptiveRate",
    "AirInterface",
    "AveragePowerControl",
    "Calibration",
    "CellLinks",
    "Cotaf",
    "CrossLayer",
    "ExactCalibration",
    "ExactStepCalibration",
    "ExpectedNorms",
    "FadingModel",
    "FixedRate",
    "FullPower",
    "Gbma",
    "GivenPositions",
    "Jamming",
    "LateArrival",
    "Links",
    "LogDistance",
    "LowerGain",
    "MeasuredNorms",
    "MinimumMse",
    "MultipleAccess",
    "Nakagami",
    "NormScaledPowerControl",
    "OfdmNumerology",
    "Ofdma",
    "PairedFields",
    "PathLossModel",
    "PlacementLaw",
    "PowerControl",
    "PrivacyBudget",
    "PrivacyForFree",
    "RandomWaypoint",
    "Rayleigh",
    "Recorded",
    "Rician",
    "ShortPackets",
    "SlotLinks",
    "SlotTransmission",
    "SpecularFading",
    "Static",
    "StaticPrivacyForFree",
    "StochasticQuantiser",
    "Superposition",
    "Tdma",
    "TheoremCalibration",
    "Tr38901",
    "Transmission",
    "TransmitPlan",
    "TruncatedInversion",
    "UniformDisc",
    "UniformHexagons",
    "Upload",
    "WeakestInversion",
    "accounted_noise_std",
    "at_the_clip",
    "carrier_offsets",
    "channel_given_estimate",
    "check_fading_model",
    "check_power_control",
    "clamped_inversion",
    "clarke_fading",
    "clarke_gains",
    "coherence_time",
    "coordinate_ranges",
    "credited_over_pieces",
    "effective_noise_std",
    "energy_shares",
    "estimate_channel",
    "follows_own_norms",
    "free_space_path_loss_db",
    "gauss_markov",
    "hexagonal_sites",
    "is_non_expansive",
    "is_peak_limited",
    "jakes_correlation",
    "jammer_energy",
    "jammer_gain_for_noise",
    "jammer_gain_limit",
    "largest_csi_ratio",
    "limit_amplitude",
    "link_snr",
    "longest_piece",
    "mean_estimate_power",
    "mean_inverse_power",
    "nearest_site",
    "ornstein_uhlenbeck",
    "outage_power",
    "path_gain",
    "pieces_needed",
    "rayleigh_outage_probability",
    "received_amplitude",
    "received_bound",
    "received_jamming_std",
    "required_noise_std_exact",
    "self_distortion",
    "server_gain_for_noise",
    "server_gain_for_received_limit",
    "shannon_rate",
    "shortfall_probability",
    "snr_of_power",
    "superpose",
    "tr38901_los_probability",
    "tr38901_path_loss_db",
    "transmit_over_pieces",
    "uniform_disc",
    "worst_over_pieces",
]
