"""Whether the jammer's power is enough, as far as that can be said before the run (RADIO.md)."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError
from wirelessfl.memory import forgotten
from wirelessfl.radio import (
    FadingModel,
    Jamming,
    Rayleigh,
    Recorded,
    jammer_energy,
    jammer_gain_for_noise,
    shortfall_probability,
)
from wirelessfl.radio.network import ChannelSource
from wirelessfl.radio.propagation import BlockFading, Fading, Moment
from wirelessfl.radio.slot_schedule import Instants
from wirelessfl.radio.units import linear_to_db
from wirelessfl.scenario.uplink import Jammer
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.uplinks import OverTheAir, Uplink
from wirelessfl.streams import Streams

_START = Moment(1, 0.0)
# Channel draws for a law without a closed form: the share is known to ±0.4 % at worst, at 99 %
_DRAWS = 100_000
# Slots drawn where a channel is estimated several times in each: the share is known to ±3 % at worst, at 99 %
_SLOTS = 2000
# Clients whose path gains stand for all of those that may jam
_ROTATING = 1000


def jammer_shortfall(uplink: Uplink, selection: ClientSelection) -> tuple[float, float]:
    """How often in a round the jammer lacks the power that is needed, and the energy E₁ needed at |h_CJ| = 1.

    A Rayleigh link has the closed form Pr(short) = 1 − exp(−E₁/(P_CJ β_CJ)), β_CJ its path gain; other laws are drawn,
    and so are slots with an estimate for each piece, in which the weakest of them counts.
    With the exact calibration, a power control whose α_u changes or a jammer that moves, round 1 stands for all rounds.

    Returns:
        The probability, and E₁ in units of the normalised noise; both 0 where no jamming is needed.
    """
    if not isinstance(uplink, OverTheAir) or uplink.jamming is None:
        return 0.0, 0.0
    network, jamming = uplink.network, uplink.jamming
    with forgotten(network.memories()):
        clients = selection.select(1, network.streams)
        instants = uplink.schedule.instants(len(clients) + int(not uplink.rotating_jammer))
        gain = _gain_needed(uplink, jamming, clients, instants)
        energy = jammer_energy(gain, uplink.num_symbols, jamming.noise)
        budget = jammer_energy(jamming.gain_limit, uplink.num_symbols, jamming.noise)
        if gain == 0.0 or np.isinf(budget):
            return 0.0, energy
        if uplink.rotating_jammer:
            source, nodes = network.clients, clients[:_ROTATING]
        else:
            source, nodes = network.jammer, np.zeros(1, np.int64)
        return _probability_short(source, nodes, energy / budget, network.streams, instants.estimates), energy


def _gain_needed(uplink: OverTheAir, jamming: Jamming, clients: NDArray[np.int64], instants: Instants) -> float:
    # α_CJ of the first round at |h_CJ| = 1.
    links = uplink.network.slot_links(clients, _START, instants).rows()
    (policy,) = uplink.policies
    plan = policy.plan(links, 1, uplink.air_of_all_rows)
    needed = jamming.calibration.required_noise_std(policy, plan, links.take(~plan.silent))
    return jammer_gain_for_noise(needed, plan.server_gain, uplink.air.channel_noise_std)


def _probability_short(
    source: ChannelSource,
    nodes: NDArray[np.int64],
    needed: float,
    streams: Streams,
    estimates: NDArray[np.float64],
) -> float:
    # Pr(|h|² below `needed` at one of the (R,) times of estimates), the mean over the nodes that may jam.
    large = source.large_scale.gains(nodes, _START)
    probability = np.empty(len(nodes))
    for in_sight in (False, True):
        these = large.line_of_sight == in_sight
        power = needed / large.path_gain[these]
        if len(estimates) == 1 or isinstance(source.fading, BlockFading):
            probability[these] = _share_below(source.fading.law_of(in_sight), power, streams)
        elif these.any():
            least = _least_powers(source.fading, in_sight, estimates)
            probability[these] = np.searchsorted(np.sort(least), power) / len(least)
    return float(probability.mean())


def _least_powers(fading: Fading, in_sight: bool, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    # (n,) the least |gain|² over a slot of links of a law: by the weakest estimate the jammer sets its gain.
    links = np.arange(_SLOTS, dtype=np.int64)
    gains = fading.over(links, np.full(_SLOTS, in_sight), _START, estimates)
    return np.asarray((np.abs(gains) ** 2).min(axis=1))


def _share_below(law: FadingModel, power: NDArray[np.float64], streams: Streams) -> NDArray[np.float64]:
    # (n,) Pr(|gain|² < power) under a law of mean power 1.
    if isinstance(law, Rayleigh):
        return np.array([shortfall_probability(value, 1.0) for value in power.tolist()])
    if isinstance(law, Recorded):
        gains = law.gains[np.isfinite(law.gains)]
    else:
        gains = law.draw(streams.nodes("shortfall", 1, np.arange(_DRAWS, dtype=np.int64)))
    return np.searchsorted(np.sort(np.abs(gains) ** 2), power) / len(gains)


def check_jammer_power(jammer: Jammer, uplink: OverTheAir, selection: ClientSelection) -> None:
    """Refusal of a jammer that is too weak too often.

    Raises:
        InfeasibleError: above ``max_shortfall``.
    """
    probability, energy = jammer_shortfall(uplink, selection)
    if probability > jammer.max_shortfall:
        needed_db = linear_to_db(energy / uplink.air.dimension)
        raise InfeasibleError(
            f"uplink.jammer.power_db: found {jammer.power_db} dB, with which the jammer falls short of ε = "
            f"{jammer.epsilon:g} in {probability:.1%} of the rounds; allowed is {jammer.max_shortfall:.1%} "
            f"(uplink.jammer.max_shortfall). At |h| = 1 it needs {needed_db:.1f} dB, in a fade more; "
            "raise power_db or epsilon, or lower the server gain"
        )
