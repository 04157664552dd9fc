"""Noise, clips and gains at the ends of the range of numbers of 32 bits: no warning, and no verdict by rounding.

What the ledger promises is about real numbers. A mechanism that does what its record states is never refuted because a
number of 32 bits is too coarse for its noise, whether that is far smaller or far larger than what it hides.
"""

from __future__ import annotations

import math

import pytest

import wirelessfl as wfl
from wirelessfl.analysis.audit.audit import Audit, audit_scenario
from wirelessfl.errors import InfeasibleError

NOISE = "training.privacy.noise_multiplier"
CLIP = "training.privacy.clip"
QUANTILE = "training.privacy.clipping={name: quantile}"


def audit(name: str, *overrides: str) -> Audit:
    scenario = wfl.load_scenario(name, overrides=["rounds=2", "data.limit=300", *overrides])
    return audit_scenario(scenario, 12)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("moo-private", (f"{NOISE}=9223372036854775808",)),
        ("moo-private", (f"{NOISE}=1e38", QUANTILE)),
        ("dp-sgd", (f"{NOISE}=1e20",)),
        ("dp-sgd", (f"{NOISE}=1e38",)),
        ("zcdp", ("training.privacy.noise_std=1e38",)),
    ],
)
def test_noise_that_drowns_the_canary_shows_nothing(name: str, overrides: tuple[str, ...]) -> None:
    found = audit(name, *overrides)
    assert not found.contradicts_ledger and found.noise_faults == []
    assert found.evidence.epsilon_gaussian == found.evidence.threshold.epsilon == 0


@pytest.mark.parametrize(
    ("name", "override"),
    [
        ("moo-private", f"{NOISE}=1e-20"),
        ("dp-sgd", f"{NOISE}=1e-40"),
        ("dp-sgd", f"{NOISE}=1e-300"),
        ("dp-sgd-wavelet", f"{NOISE}=1e-300"),
        ("dp-fedavg-wavelet", f"{NOISE}=1e-300"),
        ("dynamic-dp-sgd", "training.privacy.clipping.multiplier_ratio=1e-300"),
        ("zcdp", "training.privacy.noise_std=1e-20"),
        ("zcdp-secagg-adult", "training.privacy.noise_std=1e-300"),
    ],
)
def test_noise_that_rounding_removes_leaves_an_infinite_epsilon(name: str, override: str) -> None:
    found = audit(name, override)
    assert found.epsilon_accounted == found.epsilon_empirical == math.inf
    assert not found.contradicts_ledger and found.noise_faults == []
    smallest = float(override.rpartition("=")[2]) < 1e-38 and name != "dp-fedavg-wavelet"
    assert any("numbers of 32 bits" in words for words in found.not_tested) is smallest


@pytest.mark.parametrize(
    ("name", "override"),
    [
        ("dp-sgd", f"{CLIP}=1e-300"),
        ("dp-sgd", f"{CLIP}=1e-30"),
        ("moo-private", f"{CLIP}=1e30"),
        ("dynamic-dp-sgd", "training.privacy.clipping.clip_ratio=1e-300"),
        ("quickstart", "uplink.clip=1e30"),
        ("quickstart", "uplink.snr_db=-300"),
    ],
)
def test_clips_and_links_at_the_ends_of_their_range_stand(name: str, override: str) -> None:
    found = audit(name, override)
    assert math.isfinite(found.epsilon_accounted)
    assert not found.contradicts_ledger and found.epsilon_empirical <= found.epsilon_accounted


def test_a_canary_is_beyond_the_clip_however_large_that_is() -> None:
    small, large = audit("dp-sgd"), audit("dp-sgd", f"{CLIP}=1e9")
    assert large.epsilon_empirical == pytest.approx(small.epsilon_empirical, rel=1e-3) and small.epsilon_empirical > 1


@pytest.mark.parametrize("value", ["lr: 1e-30", "lr: 1e10", "count_noise_std: 1e-30", "count_noise_std: 1e30"])
def test_counts_that_the_norm_does_not_tell_are_refused(value: str) -> None:
    with pytest.raises(InfeasibleError, match="the released counts cannot be computed"):
        audit("moo-private", f"training.privacy.clipping={{name: quantile, {value}}}")
