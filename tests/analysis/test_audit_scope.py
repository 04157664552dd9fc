"""What an audit says that it does not test."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis import audit_examples as examples
from tests.analysis.audit_examples import audited, built, local, trusted

SCOPES: dict[str, tuple[Any, str, str]] = {
    "over the air": (examples.whole_update, "second quadrature", "secrecy of the selection"),
    "jammed": (examples.jammed, "jammer's secrecy", "amplification"),
    "DP-SGD": (local, "amplification by sampling", "second quadrature"),
    "DP-SGD, shuffled": (lambda: local(privacy={"sampling": "shuffle"}), "amplification by shuffling", "by sampling"),
    "DP-FedAvg, Poisson": (
        lambda: trusted(clients__selection={"scheme": "poisson", "rate": 0.3}),
        "secrecy of the selection",
        "jammer",
    ),
    "secure aggregation": (
        lambda: local("zcdp", uplink={"kind": "secure_aggregation"}),
        "cryptography of secure aggregation",
        "digital links",
    ),
    "dropouts": (
        lambda: local(faults__availability={"model": "bernoulli", "p": 0.9}),
        "participation",
        "cryptography",
    ),
    "nothing at all": (lambda: built(uplink={"kind": "ideal"}), "accounted ε is infinite", "floating-point"),
}


@pytest.mark.parametrize(("build", "named", "foreign"), SCOPES.values(), ids=SCOPES.keys())
def test_what_is_not_tested_is_said_of_the_scenario_at_hand(build: Any, named: str, foreign: str) -> None:
    phrases = audited(build(), 10).not_tested
    assert sum(named in phrase for phrase in phrases) == 1
    assert not any(foreign in phrase for phrase in phrases)
    assert any("side channels" in phrase for phrase in phrases)


@pytest.mark.slow
def test_what_noise_is_not_recorded_is_said() -> None:
    few, many = (audited(local(rounds=rounds, training__epochs=3), 10).not_tested for rounds in (3, 20))
    assert not any("are recorded" in phrase for phrase in few)
    assert sum("10 of 20 rounds are recorded" in phrase for phrase in many) == 1
    for build, measured in ((local, False), (examples.whole_update, True)):
        (phrase,) = (phrase for phrase in audited(build(), 10).not_tested if "clients other than" in phrase)
        assert ("the updates of 6 clients" in phrase) == measured
