"""Privacy: what a run releases, what the papers claim for it, and what holds."""

from __future__ import annotations

from wirelessfl.privacy.concentrated import tail_bound_epsilon, zcdp_epsilon, zcdp_rho
from wirelessfl.privacy.gaussian import EPSILON_CAP, gaussian_delta, gaussian_epsilon, gaussian_mu
from wirelessfl.privacy.ledger import SCOPE, Ledger, recompute
from wirelessfl.privacy.releases import AirRelease, BareRelease, Release
from wirelessfl.privacy.spending import Caveat
from wirelessfl.privacy.statement import PrivacyFacts, Statement

__all__ = [
    "EPSILON_CAP",
    "SCOPE",
    "AirRelease",
    "BareRelease",
    "Caveat",
    "Ledger",
    "PrivacyFacts",
    "Release",
    "Statement",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "recompute",
    "tail_bound_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]
