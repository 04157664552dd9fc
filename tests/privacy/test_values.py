"""Releases survive the way into a trace and back; the ledger recomputed from it is the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.privacy.rounds import air_release, facts_of
from wirelessfl.privacy import (
    BareRelease,
    Caveat,
    DpSgdRelease,
    DynamicClip,
    HaarNoise,
    MooClip,
    PerLayerClip,
    QuantileClip,
    Release,
    SecureSum,
    ServerNoiseRelease,
    Statement,
    UnknownClip,
    ZcdpRelease,
    client_values,
    recompute,
    release_from_values,
    round_values,
    settings,
)
from wirelessfl.privacy.releases import (
    PARTS,
    RELEASES,
    LocalPlans,
    LossNoise,
    LossRelease,
    LossReport,
    NoAmplification,
    RobustRelease,
    UnvouchedRelease,
    WaveformRelease,
)

FACTS = facts_of([40, 60])
EVERYONE = np.array([0, 1])
BATCH = np.array([10, 12])
STEPS = np.array([2, 3])
EXAMPLES: list[Release] = [
    air_release(
        FACTS, EVERYONE, 3, limit=[0.1, 0.9], csi_ratio=np.array([1.1, 0.9]), rule="gradient_step", batch_size=BATCH
    ),
    air_release(FACTS, [], 4),
    air_release(FACTS, [1], theorem="privacy_for_free", backoff_is_public=False, caveat=Caveat.REALISED_NORMS),
    air_release(FACTS, EVERYONE, accounted_noise_std=np.array([0.01, 0.02])),
    WaveformRelease.of(air_release(FACTS, EVERYONE), "non_negative"),
    BareRelease(2, EVERYONE),
    LossReport(2, EVERYONE),
    RobustRelease(2, EVERYONE),
    LossReport(2, EVERYONE, everyone=True),
    LossRelease(2, EVERYONE, LossNoise(0.5, 3.0, "batch_mean", 4, 2), plans=LocalPlans((2, 9), (2, 4), (1, 3))),
    LossRelease(2, EVERYONE[:0], LossNoise(0.5, 3.0, "rms"), everyone=True),
    UnvouchedRelease(2, EVERYONE, "my_module:Mechanism"),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, "shuffle", HaarNoise(64, "weighted"), QuantileClip(2.0)),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, clipping=PerLayerClip((0.5, 0.25))),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, clipping=DynamicClip()),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, clipping=UnknownClip()),
    DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, clipping=MooClip("private")),
    ServerNoiseRelease(5, EVERYONE, 1.0, 0.5, None, 0.2, "uniform"),
    ServerNoiseRelease(5, EVERYONE, 1.0, 0.5, 1.5, 0.2, "poisson"),
    ServerNoiseRelease(5, EVERYONE, 1.0, 0.5, 1.5, 0.2, "poisson", clipped="gradients"),
    ServerNoiseRelease(5, EVERYONE[:0], 1.0, 0.5, 1.5, 0.2, "poisson", unamplified=NoAmplification.QUORUM),
    ZcdpRelease(1, EVERYONE, 1.0, 0.2, BATCH, STEPS, secure_sum=SecureSum(9, 7, 4, "integer")),
]


def there_and_back(release: Release) -> Release:
    """Through values as a trace holds them: floats only, and JSON."""
    per_client = {name: np.asarray(column, np.float64) for name, column in client_values(release).items()}
    return release_from_values(
        settings(release), release.round_index, release.clients, round_values(release), per_client
    )


@pytest.mark.parametrize("release", EXAMPLES, ids=lambda release: type(release).__name__)
def test_a_release_comes_back_as_it_was(release: Release) -> None:
    again = there_and_back(release)
    assert type(again) is type(release)
    for name, value in vars(release).items():
        found = getattr(again, name)
        np.testing.assert_array_equal(found, value) if isinstance(value, np.ndarray) else None
        assert isinstance(value, np.ndarray) or found == value
        assert not isinstance(value, np.ndarray) or value.size == 0 or found.dtype == value.dtype


@pytest.mark.parametrize("unit", ["sample", "client"])
def test_the_ledger_is_recomputable_with_another_delta_and_accountant(unit: str) -> None:
    rounds = [air_release(FACTS, EVERYONE, m, limit=[0.1, 0.9]) for m in range(3)]
    for delta, accountant in ((1e-6, "pld"), (1e-3, "rdp"), (1e-3, "zcdp"), (1e-3, "gdp")):
        statement = Statement(delta, unit=unit, accountant=accountant)  # type: ignore[arg-type]
        expected = recompute(rounds, FACTS, statement).client_epsilons()
        found = recompute([there_and_back(release) for release in rounds], FACTS, statement).client_epsilons()
        np.testing.assert_array_equal(found, expected)


def test_equal_settings_are_equal_strings() -> None:
    first, second = (air_release(FACTS, EVERYONE, m, limit=0.1 * (m + 1)) for m in range(2))
    assert settings(first) == settings(second)
    assert settings(first) != settings(air_release(FACTS, EVERYONE, rule="gradient_step"))


def test_every_kind_has_an_example() -> None:
    assert {type(release) for release in EXAMPLES} == set(RELEASES)
    text = " ".join(settings(release) for release in EXAMPLES)
    assert all(f'"{part.__name__}"' in text for part in PARTS)


@pytest.mark.parametrize(
    "text", ['{"kind": "Mystery"}', "{}", '{"kind": "DpSgdRelease", "noise": {"kind": "os.system"}}']
)
def test_foreign_settings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        release_from_values(text, 0, EVERYONE, {}, {})


def test_records_of_earlier_traces_come_back() -> None:
    """With fields that had one value in all of them, and where a shuffled order was told from one that goes on."""
    text = settings(DpSgdRelease(0, EVERYONE, 1.1, BATCH, STEPS, clipping=DynamicClip()))
    old = text.replace('{"kind": "DynamicClip"', '{"nominal_multiplier": 1.5, "kind": "DynamicClip"')
    assert old != text
    old = old.replace('"sampling": "poisson"', '"sampling": "reshuffle", "caveat": null')
    columns = {"batch_size": BATCH, "steps": STEPS}
    release = release_from_values(old, 0, EVERYONE, {"noise_multiplier": 1.1, "steps_before": 0.0}, columns)
    assert isinstance(release, DpSgdRelease) and release.clipping == DynamicClip()
    assert release.sampling == "shuffle"
    text = settings(EXAMPLES[-1]).replace('"survivors"', '"masks_reused": false, "survivors"')
    text = text.replace('"linear_upload"', '"reshuffled": true, "linear_upload"')
    upload = release_from_values(text, 1, EVERYONE, round_values(EXAMPLES[-1]), client_values(EXAMPLES[-1]))
    assert settings(upload) == settings(EXAMPLES[-1])


@pytest.mark.parametrize(
    "field", [f'"{name}": {value}' for name, value in {"reshuffled": "false", "caveat": '"UNCLIPPED"'}.items()]
)
def test_records_of_earlier_traces_whose_former_fields_say_something_are_refused(field: str) -> None:
    """What an order that goes on across rounds costs, or a guarantee that is void, is not what is accounted today."""
    text = settings(EXAMPLES[-1]).replace("{", f"{{{field}, ", 1)
    with pytest.raises(TypeError, match=field.split('"')[1]):
        release_from_values(text, 1, EVERYONE, round_values(EXAMPLES[-1]), client_values(EXAMPLES[-1]))
