"""Links over simulated time: placement, large-scale gain, small-scale fading, and their state.

Each part is asked for some nodes at a moment and answers for these alone. Where the answer depends on an earlier one
(a correlated fade, a moving node, a shadow along its way), a ``NodeMemory`` holds one row for each node that was
ever asked; asking twice in a round gives the same answer.
"""

from wirelessfl.radio.propagation.antenna import AntennaGains, FlatGains, SelectiveGains
from wirelessfl.radio.propagation.array import (
    AntennaArray,
    ArrayGeometry,
    ExponentialCorrelation,
    IndependentAntennas,
    OneRing,
    SpatialCorrelation,
)
from wirelessfl.radio.propagation.correlation import ClarkeFading, GaussMarkovFading
from wirelessfl.radio.propagation.doppler import Doppler, GivenDoppler, MotionDoppler
from wirelessfl.radio.propagation.fading import BlockFading, DirectRay, Fading
from wirelessfl.radio.propagation.imported import (
    ImportedChannels,
    ImportedFading,
    ImportedGain,
    ImportedGains,
    JointImportedGains,
)
from wirelessfl.radio.propagation.joint import JointGains, joint_gains
from wirelessfl.radio.propagation.large_scale import DistanceGain, LargeScale, LargeScaleGains, UnitGain
from wirelessfl.radio.propagation.placement import Draws, Moment, Motion, Placement, Standing, Walking

__all__ = [
    "AntennaArray",
    "AntennaGains",
    "ArrayGeometry",
    "BlockFading",
    "ClarkeFading",
    "DirectRay",
    "DistanceGain",
    "Doppler",
    "Draws",
    "ExponentialCorrelation",
    "Fading",
    "FlatGains",
    "GaussMarkovFading",
    "GivenDoppler",
    "ImportedChannels",
    "ImportedFading",
    "ImportedGain",
    "ImportedGains",
    "IndependentAntennas",
    "JointGains",
    "JointImportedGains",
    "LargeScale",
    "LargeScaleGains",
    "Moment",
    "Motion",
    "MotionDoppler",
    "OneRing",
    "Placement",
    "SelectiveGains",
    "SpatialCorrelation",
    "Standing",
    "UnitGain",
    "Walking",
    "joint_gains",
]
