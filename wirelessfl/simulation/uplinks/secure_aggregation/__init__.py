"""Secure aggregation message by message: the server learns the sum of the updates and no single one (DESIGN.md §6)."""

from wirelessfl.simulation.uplinks.secure_aggregation.pairwise_prf import PairwisePrf
from wirelessfl.simulation.uplinks.secure_aggregation.shares import SecretSharing
from wirelessfl.simulation.uplinks.secure_aggregation.uplink import SecureUplink

__all__ = [
    "PairwisePrf",
    "SecretSharing",
    "SecureUplink",
]
