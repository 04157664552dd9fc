"""Hidden weights in the run: what is public about them, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, small
from tests.simulation.uplinks.cells import play
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.digital import build_encoding
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.digital_links import Link
from wirelessfl.scenario import Scenario
from wirelessfl.secagg import MaskedInput, SecAggServer


def hidden(**keys: Any) -> Scenario:
    """The small scenario with hidden weights: six clients, 120 samples in unequal shares."""
    uplink = {"kind": "secure_aggregation", "hide_weights": True, **keys}
    return small(uplink=uplink, data__partition={"scheme": "sizes"}, rounds=1)


def test_what_the_encoding_reveals_is_the_sum_alone() -> None:
    """Clients that hold other shares of the same data have the same encoding."""
    scenario = hidden()
    network = build_simulation(scenario, PLAN).deployment.network
    assert len(set(network.registry.samples.tolist())) > 1

    def encoding(samples: list[int]) -> Any:
        registry = replace(network.registry, samples=np.array(samples))
        return build_encoding(scenario, scenario.uplink, replace(network, registry=registry), 10)  # type: ignore[arg-type]

    assert network.registry.total_samples == 120
    assert encoding([20] * 6) == encoding([115, 1, 1, 1, 1, 1]) == encoding(network.registry.samples.tolist())
    assert encoding([20] * 6).max_weight == 120


def test_the_server_is_told_a_sum_of_weights_that_no_single_weight_is_read_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrives in the place of n_i is another number in every round, while n_i is not; the sum is Σ n_i."""
    arrived: list[int] = []
    receive = SecAggServer.receive

    def listening(self: SecAggServer, message: Any) -> None:
        if isinstance(message, MaskedInput) and message.sender == 2:
            arrived.append(int(message.values[-1]))
        receive(self, message)

    monkeypatch.setattr(SecAggServer, "receive", listening)
    scenario = hidden(protocol="secagg")
    played = play(scenario.model_copy(update={"rounds": 5}), links=[Link(1e-9)] * 6)
    assert len(set(arrived)) == 5 and int(played.samples[2]) not in arrived
    uplink: Any = played.simulation.deployment.uplink
    inputs = [uplink.encoding.encode(np.zeros(10, "f4"), int(n), np.random.default_rng(0)) for n in played.samples]
    total = uplink.encoding.ring.zeros(uplink.encoding.length)
    for vector in inputs:
        total += vector
    assert total[-1] == 120


def test_a_bound_that_may_be_known_makes_finer_steps() -> None:
    largest = int(build_simulation(hidden(), PLAN).deployment.network.registry.samples.max())
    assert largest < 120
    scenario = hidden(max_samples=largest)
    network = build_simulation(scenario, PLAN).deployment.network
    encoding: Any = build_encoding(scenario, scenario.uplink, network, 10)  # type: ignore[arg-type]
    assert encoding.max_weight == largest
    with pytest.raises(ScenarioError, match=rf"max_samples: found {largest - 1}, and a client with {largest} samples"):
        build_simulation(hidden(max_samples=largest - 1), PLAN)


def test_sums_of_weights_that_could_overflow_are_refused() -> None:
    """Six clients of up to 120 samples: 720 needs 11 bits with a sign, although updates alone would do with 4."""
    build_simulation(hidden(bits=11), PLAN)
    build_simulation(small(uplink={"kind": "secure_aggregation", "bits": 4}), PLAN)
    for bits in (4, 10):
        with pytest.raises(ScenarioError, match=r"uplink\.bits: .* overflow"):
            build_simulation(hidden(bits=bits), PLAN)


def test_a_bound_without_hidden_weights_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"uplink\.max_samples: found 200 with hide_weights: false"):
        small(uplink={"kind": "secure_aggregation", "max_samples": 200})
