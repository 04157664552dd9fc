"""Privacy: what a run releases, what the papers claim for it, and what holds."""

from wirelessfl.privacy.accountants import composed_epsilon
from wirelessfl.privacy.calibration import (
    dp_sgd_epsilon,
    dp_sgd_noise_multiplier,
    jammer_calculator,
    noise_std_exact,
    noise_std_theorem,
    zcdp_calculator,
)
from wirelessfl.privacy.clipping_laws import (
    ClippingLaw,
    DynamicClip,
    FixedClip,
    MooClip,
    PerLayerClip,
    QuantileClip,
    UnknownClip,
)
from wirelessfl.privacy.concentrated import tail_bound_cost, tail_bound_epsilon, zcdp_epsilon, zcdp_rho
from wirelessfl.privacy.gaussian import EPSILON_CAP, gaussian_delta, gaussian_epsilon, gaussian_mu
from wirelessfl.privacy.ledger import ENDED_BY_ITS_OUTPUTS, SCOPE, Ledger, recompute
from wirelessfl.privacy.noise_laws import HaarNoise, NoiseLaw, WhiteNoise
from wirelessfl.privacy.releases import (
    AirRelease,
    BareRelease,
    DpSgdRelease,
    Release,
    SecureSum,
    ServerNoiseRelease,
    UnvouchedRelease,
    ZcdpRelease,
    client_values,
    release_from_values,
    round_values,
    settings,
)
from wirelessfl.privacy.spending import Caveat, SampledGaussian, SampledSteps, Spending
from wirelessfl.privacy.statement import PrivacyFacts, Statement
from wirelessfl.privacy.wavelet import (
    element_noise_variance,
    haar,
    haar_weights,
    inverse_haar,
    lemma_1_variance,
)

__all__ = [
    "ENDED_BY_ITS_OUTPUTS",
    "EPSILON_CAP",
    "SCOPE",
    "AirRelease",
    "BareRelease",
    "Caveat",
    "ClippingLaw",
    "DpSgdRelease",
    "DynamicClip",
    "FixedClip",
    "HaarNoise",
    "Ledger",
    "MooClip",
    "NoiseLaw",
    "PerLayerClip",
    "PrivacyFacts",
    "QuantileClip",
    "Release",
    "SampledGaussian",
    "SampledSteps",
    "SecureSum",
    "ServerNoiseRelease",
    "Spending",
    "Statement",
    "UnknownClip",
    "UnvouchedRelease",
    "WhiteNoise",
    "ZcdpRelease",
    "client_values",
    "composed_epsilon",
    "dp_sgd_epsilon",
    "dp_sgd_noise_multiplier",
    "element_noise_variance",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "haar",
    "haar_weights",
    "inverse_haar",
    "jammer_calculator",
    "lemma_1_variance",
    "noise_std_exact",
    "noise_std_theorem",
    "recompute",
    "release_from_values",
    "round_values",
    "settings",
    "tail_bound_cost",
    "tail_bound_epsilon",
    "zcdp_calculator",
    "zcdp_epsilon",
    "zcdp_rho",
]
