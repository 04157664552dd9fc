"""Releases of a round, one frozen record a mechanism: its published and its accounted cost are its methods.

To add a mechanism, write one record here that satisfies ``Release`` and list it in ``values.RELEASES``.
"""

from wirelessfl.privacy.releases.air import AirRelease
from wirelessfl.privacy.releases.base import (
    BareRelease,
    LossReport,
    Release,
    RobustRelease,
    UnvouchedRelease,
    of_clients,
)
from wirelessfl.privacy.releases.local import DpSgdRelease, SecureSum, ZcdpRelease
from wirelessfl.privacy.releases.losses import LocalPlans, LossNoise, LossRelease
from wirelessfl.privacy.releases.server_noise import NoAmplification, ServerNoiseRelease
from wirelessfl.privacy.releases.values import (
    PARTS,
    RELEASES,
    client_values,
    release_from_values,
    round_values,
    settings,
)
from wirelessfl.privacy.releases.waveform import WaveformRelease

__all__ = [
    "PARTS",
    "RELEASES",
    "AirRelease",
    "BareRelease",
    "DpSgdRelease",
    "LocalPlans",
    "LossNoise",
    "LossRelease",
    "LossReport",
    "NoAmplification",
    "Release",
    "RobustRelease",
    "SecureSum",
    "ServerNoiseRelease",
    "UnvouchedRelease",
    "WaveformRelease",
    "ZcdpRelease",
    "client_values",
    "of_clients",
    "release_from_values",
    "round_values",
    "settings",
]
