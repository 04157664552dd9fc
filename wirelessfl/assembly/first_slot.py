"""The first slot over the air before it is run: channels, combiner, and who sends where, for pictures."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InputError
from wirelessfl.radio import JAMMER, Moment, received_jamming_std
from wirelessfl.radio.propagation import ArrayGeometry
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.rehearsal import without_training
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.groups import GroupedPlan
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.trace import EventBatch


@dataclass(frozen=True, eq=False)
class FirstSlot:
    """Slot of n clients in F groups of subcarriers at the receiver with A antennas that serves most of them.

    Attributes:
        clients: (n,) numbers.
        weights: (F, A) combiner f of the first block.
        estimate: (n, F, A) channel estimates ĥ of the first block.
        mean_power: (n,) E|ĥ|² at one antenna.
        sends: (n, F) where each client sends in the first block.
        sent: (n, F) energy of an update at the clip over the budget, |α_i|²τ²/P_i; 0 where a client does not send.
        jamming: (F,) variance of the jamming over that of the receiver noise, behind the combiner; NaN without jammer.
        fade_threshold: g, of the deep-fade rule.
        geometry: places of the antennas; None where links come without directions.
        azimuth: (n,) directions of the clients from broadside, in radians; NaN without a geometry.
        jammer_azimuth: of an external jammer; NaN without one.
    """

    clients: NDArray[np.int64]
    weights: NDArray[np.complex128]
    estimate: NDArray[np.complex128]
    mean_power: NDArray[np.float64]
    sends: NDArray[np.bool_]
    sent: NDArray[np.float64]
    jamming: NDArray[np.float64]
    fade_threshold: float
    geometry: ArrayGeometry | None
    azimuth: NDArray[np.float64]
    jammer_azimuth: float

    @property
    def gain(self) -> NDArray[np.float64]:
        """Gain behind the combiner (n, F), |fᴴĥ|²/(‖f‖² E|ĥ|²): 1 in the mean behind one that knows no channel."""
        behind = np.abs(np.einsum("fa,nfa->nf", self.weights.conj(), self.estimate)) ** 2
        return np.asarray(behind / (np.sum(np.abs(self.weights) ** 2, axis=1) * self.mean_power[:, None]))


def first_slot(build: Callable[[], Simulation]) -> FirstSlot:
    """Slot of the first round in which somebody is there, of a simulation that is built twice and not trained.

    Args:
        build: a new simulation at every call.

    Raises:
        InputError: its uplink has no slot over the air, or nobody is there in the first round.
    """
    rehearsed, simulation = build(), build()
    uplink, network = simulation.deployment.uplink, simulation.deployment.network
    if not isinstance(uplink, OverTheAir):
        raise InputError("uplink.kind: no slot over the air to draw; allowed: over_the_air")
    clients, moment, plan = _first_clients(rehearsed)
    slot = uplink.announce(clients, moment, uplink.schedule.instants(len(clients)))
    station = int(np.bincount(slot.found.serving).argmax())
    mine = slot.found.serving == station
    source, own, shown = network.sources[station], slot.found.own.take(mine), clients[mine]
    azimuth, jammer = np.full(len(shown), math.nan), math.nan
    if source.array is not None:
        azimuth = source.array.directions(shown, moment)[0]
        if uplink.jams and not uplink.rotating_jammer and network.jammer.array is not None:
            jammer = float(network.jammer.array.directions(JAMMER, moment)[0][0])
    return FirstSlot(
        clients=shown,
        weights=slot.weights[station, 0],
        estimate=own.estimate[:, 0],
        mean_power=own.mean_estimate_power,
        sends=slot.sends[mine][:, 0],
        sent=_energy_over_budget(uplink, plan, shown),
        jamming=_jamming_over_noise(uplink, plan),
        fade_threshold=uplink.fade_threshold,
        geometry=None if source.array is None else source.array.geometry,
        azimuth=azimuth,
        jammer_azimuth=jammer,
    )


def _energy_over_budget(uplink: OverTheAir, plan: AirPlan | None, clients: NDArray[np.int64]) -> NDArray[np.float64]:
    # (n, F) of clients, in the first block; those that are not among the senders send nothing
    found = np.zeros((len(clients), uplink.gain_shape[1]))
    if plan is None:
        return found
    constants = (uplink.air, uplink.ranges, uplink.iq_packing, uplink.joules_per_unit)
    gain = np.abs(Transmitters(plan, uplink.policies, uplink.modulation, *constants).at_the_clip.tx_gain[:, 0])
    _, here, there = np.intersect1d(clients, plan.clients, return_indices=True)
    found[here] = (gain[there] * uplink.air.clip) ** 2 / plan.links.own.power_budget[there, None]
    return found


def _jamming_over_noise(uplink: OverTheAir, plan: AirPlan | None) -> NDArray[np.float64]:
    # (F,) at the only receiver, in the first block
    if plan is None or plan.jammer_behind is None or uplink.jamming is None:
        return np.full(uplink.gain_shape[1], math.nan)
    jammer = plan.jammer_behind.equivalent
    phase = np.broadcast_to(jammer.phase_error, jammer.channel.shape)
    std = received_jamming_std(plan.jammer_gain, jammer.channel, uplink.jamming.noise, phase)
    return np.asarray((std[0].reshape(-1) / plan.noise_std[0, 0]) ** 2)


def _first_clients(simulation: Simulation) -> tuple[NDArray[np.int64], Moment, AirPlan | None]:
    # Those whose channels are asked for in the first round, when, and the plan of its slot
    without_training(simulation)
    simulation.stop = replace(simulation.stop, rounds=1)
    found: list[tuple[NDArray[np.int64], Moment, AirPlan | None]] = []

    def keep(this: FinishedRound, _: EventBatch) -> None:
        plan = this.round.heard  # missing where all are in a deep fade
        own = plan if isinstance(plan, AirPlan) else plan.slots[0] if isinstance(plan, GroupedPlan) else None
        found.extend((this.clients[links.positions], this.round.moment, own) for links in this.round.links)

    simulation.run(keep)
    if not found or not len(found[0][0]):
        raise InputError("clients: nobody is there in the first round, whose slot is drawn")
    return found[0]
