"""Slots with antennas and groups of subcarriers: what the vector radio costs over one antenna and one gain.

Timed are the reception (superposition, noise, energies, records), and the slot with its channels, combiners and power
control, in processor time, on which other programs of the machine have less influence. Updates are there already.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measurement import Case, Sample
from wirelessfl.assembly import build_simulation
from wirelessfl.learning import CohortBlock, ExecutionPlan
from wirelessfl.scenario import parse_scenario
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir

GROUP = "vector radio"
BLOCK = 10
SCALAR = "one antenna, one gain"
RADIOS: dict[str, dict[str, Any]] = {
    SCALAR: {},
    "64 antennas": {"uplink.receiver": {"antennas": 64, "combiner": "random"}},
    "64 groups": {"channel.fading": {"model": "tdl", "groups": 64}},
}
SCENARIO = """
name: vector-radio
seed: 1
rounds: 100
data: {{limit: 1000}}
model: {{name: mlp, hidden: [{hidden}]}}
clients: {{count: {clients}}}
uplink: {{kind: over_the_air, power_control: {{policy: cross_layer, server_gain: 100}}}}
"""


@dataclass(frozen=True)
class SlotTimes:
    """Processor seconds of slots: (n,) announced and received, and (n,) received alone."""

    whole: NDArray[np.float64]
    reception: NDArray[np.float64]


def slot_rate(clients: int, hidden: int, slots: int) -> Sample:
    """Receptions a processor second with one antenna and one gain: the median, on one thread."""
    return Sample(1.0 / float(np.median(_in_turns([SCALAR], clients, hidden, slots)[SCALAR].reception)))


def slot_ratio(radio: str, whole: bool, clients: int, hidden: int, slots: int) -> Sample:
    """Processor time of a slot over that of one with one antenna and one gain: the median of slots in turns.

    Args:
        radio: which.
        whole: whether channels, combiners and power control count too, or the reception alone.
        clients: K.
        hidden: units of the model.
        slots: how many of each.
    """
    times = _in_turns([SCALAR, radio], clients, hidden, slots)
    one, other = ((times[name].whole if whole else times[name].reception) for name in (SCALAR, radio))
    return Sample(float(np.median(other / one)))


def _in_turns(radios: Sequence[str], clients: int, hidden: int, slots: int) -> dict[str, SlotTimes]:
    # Slot by slot, one radio after the other
    torch.set_num_threads(1)
    uplinks = {radio: _uplink(radio, clients, hidden) for radio in radios}
    updates = torch.randn(clients, uplinks[radios[0]].air.dimension, generator=torch.Generator().manual_seed(0))
    updates /= updates.norm(dim=1, keepdim=True)
    instants = {radio: np.zeros((slots, 3)) for radio in radios}
    for number in range(slots):
        this = Round(number + 1, np.arange(clients))
        for radio, uplink in uplinks.items():
            begun = time.process_time()
            plan = uplink.plan(this, np.arange(clients), None)
            planned = time.process_time()
            uplink.receive(this, plan, _blocks(updates))
            instants[radio][number] = begun, planned, time.process_time()
    return {radio: SlotTimes(at[:, 2] - at[:, 0], at[:, 2] - at[:, 1]) for radio, at in instants.items()}


def _uplink(radio: str, clients: int, hidden: int) -> OverTheAir:
    scenario = parse_scenario(SCENARIO.format(clients=clients, hidden=hidden), "vector-radio", RADIOS[radio])
    uplink = build_simulation(scenario, ExecutionPlan(device="cpu", threads=1, chunk=BLOCK)).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    return uplink


def _blocks(updates: torch.Tensor) -> Iterator[CohortBlock]:
    for first in range(0, len(updates), BLOCK):
        rows = updates[first : first + BLOCK]
        norms = np.ones(len(rows))
        yield CohortBlock(np.arange(first, first + len(rows)), rows, norms, norms, norms)


def vector_cases(*, quick: bool) -> list[Case]:
    """Slots with one antenna, with many, and with many groups of subcarriers."""
    sizes = clients, hidden, _ = (10, 20, 2) if quick else (50, 1330, 15)
    size = f"{clients} × {75 * hidden + 10:,}"
    ratios = [
        Case(GROUP, f"{radio}, {part}, {size}", "× one antenna", partial(slot_ratio, radio, whole, *sizes))
        for radio in RADIOS
        if radio != SCALAR
        for part, whole in (("reception", False), ("with channels and gains", True))
    ]
    return [Case(GROUP, f"{SCALAR}, reception, {size}", "slots/CPU s", partial(slot_rate, *sizes)), *ratios]
