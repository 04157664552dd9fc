"""Members from outside that give what does not fit in a run: refused in words, not cast, broadcast or ignored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from tests.simulation.outside import Halving, Silent
from tests.simulation.scenarios import run, small
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning import (
    AlgorithmFacts,
    ClientRows,
    FedAvg,
    LocalObjective,
    LocalOutcome,
    Partition,
    RoundFacts,
    ServerState,
)
from wirelessfl.learning.compression import NoCodec, Payload
from wirelessfl.learning.conformance import check_algorithm, check_codec, check_server_optimizer
from wirelessfl.learning.partition import check_shares
from wirelessfl.learning.server_optimizers import ServerSgd
from wirelessfl.privacy.clipping import Clipped, ClippingRule, ClippingState, Samples, Step
from wirelessfl.radio.modulation import Analog
from wirelessfl.streams import Streams

HERE = __name__
LATER = torch.zeros(3)


@dataclass(frozen=True)
class Forgetful(FedAvg):
    """An algorithm whose rows, memory or model change on the way."""

    fault: str

    @override
    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=self.fault.startswith("rows"))

    @override
    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(prox_mu=-1.0 if self.fault == "mu" else 0.0)

    @override
    def start(self, parameters: Tensor) -> ServerState:
        return ServerState(parameters.double() if self.fault == "start" else parameters, {"seen": torch.zeros(2)})

    @override
    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        count = {"rows: one": 1, "rows: more": len(clients) + 1}.get(self.fault, len(clients))
        return ClientRows(clients, {"kept": torch.zeros(count, 2)} if self.facts().client_side else {})

    @override
    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        return replace(rows, values={"kept": rows.values["kept"].to(torch.int64)}) if "int" in self.fault else rows

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        seen = server.memory["seen"]
        memory: Mapping[str, Tensor] = {
            "memory: more": {"seen": seen, "later": LATER},
            "memory: none": {},
            "memory: longer": {"seen": LATER},
            "memory: double": {"seen": seen.double()},
        }.get(self.fault, {"seen": seen})
        if self.fault == "exit":
            sys.exit(0)
        if self.fault == "close":
            raise GeneratorExit("closed")
        if self.fault == "stop":
            raise StopIteration
        return ServerState(server.parameters + aggregate[0], memory)


@dataclass(frozen=True)
class Growing(ServerSgd):
    """A server optimizer that remembers more than it began with."""

    @override
    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        return update, {**memory, "later": LATER}


@dataclass(frozen=True)
class There:
    """Availability in another form than truth values of the clients asked for."""

    fault: str

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> Any:
        there = clients % 2 == 0
        given = {"numbers": there.astype(np.int64), "clients": clients[there], "one": True, "list": there.tolist()}
        return given[self.fault]


class Complex(NoCodec):
    """A codec that decodes complex numbers."""

    @override
    def decode(self, payload: Payload) -> Any:
        return payload.content + 1j


@dataclass(frozen=True)
class Norms(Analog):
    """A modulation that says wrong norms of its symbols."""

    factor: float

    @override
    def encode(self, updates: Any, norms: NDArray[np.float64], clip: float) -> tuple[Any, NDArray[np.float64]]:
        return updates, self.factor * norms / norms * clip


@dataclass(frozen=True)
class Uneven(Halving):
    """A clipping rule whose weights or sensitivities are of one sample or client alone."""

    fault: str = ""

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        clipped = super().clip(samples, state, step)
        if self.fault == "weights":
            return replace(clipped, weights=clipped.weights[:, :1])
        return replace(clipped, sensitivity=clipped.sensitivity[:1])


@dataclass(frozen=True)
class Losing(ClippingRule):
    """A clipping rule that does not give back what a client keeps."""

    clip_norm: float
    given: Sequence[str] = ()

    @property
    @override
    def lasting(self) -> tuple[str, ...]:
        return ("norm",)

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {"norm": torch.full((clients,), self.clip_norm)}

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        sensitivity = state["norm"].to(samples.squared_norms)
        weights = (sensitivity[:, None] / samples.norms()).clamp(max=1.0).nan_to_num(nan=0.0)
        return Clipped(weights, sensitivity, {name: state[name][:1] for name in self.given})

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        return state


class OneMultiplier(Silent):
    """A mechanism that gives one multiplier for all clients."""

    @override
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return super().add(total, sensitivity, step)[:1]


def algorithm(fault: str) -> dict[str, Any]:
    return {"training__algorithm": {"name": f"{HERE}:Forgetful", "options": {"fault": fault}}}


def clipping(name: str, **options: Any) -> dict[str, Any]:
    rule = {"name": f"{HERE}:{name}", "options": options}
    return {"training__privacy": {"mechanism": "gaussian", "clipping": rule}}


def there(fault: str) -> dict[str, Any]:
    return {"faults__availability": {"model": f"{HERE}:There", "options": {"fault": fault}}}


def norms(factor: float) -> dict[str, Any]:
    modulation = {"scheme": f"{HERE}:Norms", "options": {"factor": factor}}
    return {"uplink": {"kind": "over_the_air", "modulation": modulation}}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (algorithm("start"), r"algorithm.name: Forgetful gives .*float64.*; allowed: .*float32"),
        (algorithm("memory: more"), r"algorithm.name: Forgetful gives .*'later'"),
        (algorithm("memory: none"), r"algorithm.name: Forgetful gives .*allowed: .*'seen'"),
        (algorithm("memory: longer"), r"'seen': \(\(3,\).*allowed: .*'seen': \(\(2,\)"),
        (algorithm("memory: double"), r"'seen': \(\(2,\), torch.float64.*allowed"),
        (algorithm("rows: one"), r"Forgetful keeps {'kept': \(\(1, 2\), 'float32'\)}; allowed: .*\(\(0, 2\)"),
        (algorithm("rows: more"), r"Forgetful keeps .*allowed: .*\(\(0, 2\)"),
        (algorithm("rows: int"), r"Forgetful keeps .*'int64'.*allowed: .*'float32'"),
        ({"training__server_optimizer": {"name": f"{HERE}:Growing"}}, r"Growing gives .*'later'.*; allowed: {"),
        (there("numbers"), "There.available returned .*, needs .* truth values"),
        (there("clients"), "There.available returned .*, needs .* truth values"),
        (there("one"), "There.available returned a bool, needs .* truth values"),
        (there("list"), "There.available returned .*, needs .* truth values"),
        ({"uplink": {"kind": "digital", "codec": {"name": f"{HERE}:Complex"}}}, "in complex64; allowed: .* float32"),
        (norms(2.0), "Norms.encode returned numbers from 2.0 to 2.0, needs numbers from 0 to 1"),
        (norms(-1.0), "Norms.encode returned numbers from -1.0 to -1.0"),
        (clipping("Uneven", fault="weights"), r"Uneven.clip returned \(4, 1\), needs"),
        (clipping("Uneven", fault="sensitivity"), r"Uneven.clip returned \(1,\), needs"),
        (clipping("Losing"), r"Losing.learn \(norm\) returned a NoneType"),
        (clipping("Losing", given=["norm"]), r"Losing.learn \(norm\) returned \(1,\), needs"),
        (
            {"training__privacy": {"mechanism": f"{HERE}:OneMultiplier", "options": {"multiplier": 1.0}}},
            r"OneMultiplier.add returned \(1,\), needs",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_the_run(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        run(small(**{"uplink": {"kind": "ideal"}, **overrides}))


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: check_algorithm(Forgetful("rows: one")), "first_rows gives rows {'kept': 1} for 5 clients"),
        (lambda: check_algorithm(Forgetful("memory: double")), "step gives a memory .*float64.*begun as"),
        (lambda: check_algorithm(Forgetful("mu")), "client gives prox_mu -1.0"),
        (lambda: check_algorithm(Forgetful("memory: more")), "step gives a memory of other names"),
        (lambda: check_server_optimizer(Growing()), "step gives a memory of other names"),
        (lambda: check_codec(Complex()), "decode gives complex64"),
    ],
)
def test_the_check_of_the_family_names_it(check: Callable[[], None], words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check()


def test_offsets_of_a_partition_are_whole_numbers() -> None:
    with pytest.raises(ValueError, match=r"offsets \[0\. 1\. 2\.\] \(float64\)"):
        check_shares(Partition(np.arange(3.0), np.arange(2)), 2, 2)  # type: ignore[arg-type]
