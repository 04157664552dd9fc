"""The power that a cooperative jammer needs, before the run: how often it is too little."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.assembly.jammer_rehearsal import (
    REHEARSED,
    against_all_antennas,
    loud_slots,
    share_behind_combiners,
)
from wirelessfl.conformance import given, returned
from wirelessfl.errors import InfeasibleError
from wirelessfl.memory import forgotten
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.radio import (
    AntennaGains,
    BlockFading,
    ChannelSource,
    ExactCalibration,
    ExactStepCalibration,
    FadingModel,
    ImportedGains,
    Instants,
    Jamming,
    Moment,
    Rayleigh,
    Recorded,
    TransmitPlan,
    jammer_energy,
    jammer_gain_for_noise,
    linear_to_db,
    shortfall_probability,
)
from wirelessfl.radio.propagation.fading import AT_START
from wirelessfl.scenario.jammer import Jammer
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.uplinks import OverTheAir, Uplink
from wirelessfl.simulation.uplinks.air.plan import noise_behind, read_behind
from wirelessfl.streams import NodeStream, Streams

_START = Moment(1, 0.0)
# Channel draws for a law without a closed form: the share is known to ±0.4 % at worst, at 99 %
_DRAWS = 100_000
# Slots drawn where a channel is estimated several times in each: the share is known to ±3 % at worst, at 99 %
_SLOTS = 2000
# Clients whose path gains stand for all of those that may jam
_ROTATING = 1000


def jammer_shortfall(uplink: Uplink, selection: ClientSelection) -> tuple[float, float]:
    """Probability that the jammer lacks the power needed in a round, and the energy E₁ needed at |h_CJ| = 1.

    A Rayleigh link has the closed form Pr(short) = 1 − exp(−E₁/(P_CJ β_CJ)), β_CJ its path gain, and from N antennas
    that of a gamma law; other laws are drawn, and so are slots with an estimate for each piece, in which the weakest
    of them counts.
    With the exact calibration, a power control whose α_u changes or a jammer that moves, the first round in which
    clients send stands for all rounds; where none of those planned ahead is one, all clients without their silence.
    Against several antennas rounds are rehearsed: E₁ is then that at |f^H h_CJ| = 1 behind the combiner.

    Returns:
        The probability, and E₁ in units of the normalised noise; both 0 where no jamming is needed.
    """
    if not isinstance(uplink, OverTheAir) or uplink.jamming is None:
        return 0.0, 0.0
    network, jamming = uplink.network, uplink.jamming
    if uplink.receiver.antennas > 1:
        with forgotten(network.memories()):
            rehearsed = against_all_antennas(uplink, jamming, selection)
        if rehearsed is not None:
            return rehearsed
    with forgotten(network.memories()):
        clients, instants, gain = _first_need(uplink, jamming, selection)
    energy = jammer_energy(gain, uplink.num_symbols, jamming.noise)
    budget = jammer_energy(jamming.gain_limit, uplink.num_symbols, jamming.noise)
    if gain == 0.0 or np.isinf(budget):
        return 0.0, energy
    with forgotten(network.memories()):
        if uplink.receiver.antennas > 1:
            return share_behind_combiners(uplink, jamming, selection), energy
        rotating = ((network.clients,), clients[:_ROTATING])
        antennas, nodes = rotating if uplink.rotating_jammer else (network.jammer_antennas, np.zeros(1, np.int64))
        return _probability_short(antennas, nodes, energy / budget, network.streams, instants.estimates), energy


def _first_need(
    uplink: OverTheAir, jamming: Jamming, selection: ClientSelection
) -> tuple[NDArray[np.int64], Instants, float]:
    # The clients of the first round in which some send, the instants of their slot and α_CJ at |h_CJ| = 1. Where none
    # send in any of the rounds that are planned ahead, all clients as if none was silent. Clocks stand still: a channel
    # that remembers cannot go back to the start.
    def need(clients: NDArray[np.int64], number: int, silence: bool) -> tuple[Instants, float, bool]:
        instants = uplink.schedule.instants(len(clients) + int(not uplink.rotating_jammer))
        together = uplink.sharing_a_slot(clients, number)
        slots = [_gain_needed(uplink, jamming, some, Moment(number, 0.0), instants, silence) for some in together]
        return instants, max(gain for gain, _ in slots), any(sends for _, sends in slots)

    for number in range(1, REHEARSED + 1):
        clients = selection.select(Moment(number, 0.0))
        if len(clients):
            instants, gain, sends = need(clients, number, silence=True)
            if sends or gain > 0:
                return clients, instants, gain
    everyone = np.arange(min(uplink.network.registry.count, _ROTATING), dtype=np.int64)
    instants, gain, _ = need(everyone, REHEARSED + 1, silence=False)
    return everyone, instants, gain


def _gain_needed(
    uplink: OverTheAir,
    jamming: Jamming,
    clients: NDArray[np.int64],
    moment: Moment,
    instants: Instants,
    silence: bool,
) -> tuple[float, bool]:
    # α_CJ at |h_CJ| = 1, with the silence of clients or without, and whether some send.
    found = uplink.network.slot_links(clients, moment, instants)
    weights = uplink.receiver.combine(found, 1, uplink.air)
    links, (policy,) = found.combined(weights[None]).rows(), uplink.policies
    read = read_behind(uplink.air_of_all_rows, noise_behind(uplink.receiver, weights[None], uplink.air))
    plan = given("power_control", policy, "plan", policy.plan(links, 1, read), TransmitPlan)
    heard = links.take(~plan.silent) if silence else links
    needed = jamming.calibration.required_noise_std(policy, plan, heard)
    return jammer_gain_for_noise(needed, plan.server_gain, read.channel_noise_std), not plan.silent.all()


def _probability_short(
    antennas: Sequence[ChannelSource],
    nodes: NDArray[np.int64],
    needed: float,
    streams: Streams,
    estimates: NDArray[np.float64],
) -> float:
    # Pr(Σ_n |h_n|²/N below `needed` at one of the (R,) times of estimates) of nodes with N antennas each, the mean over
    # the nodes that may jam.
    source = antennas[0]
    large = source.large_scale.gains(nodes, _START)
    probability = np.empty(len(nodes))
    for in_sight in (False, True):
        these = large.line_of_sight == in_sight
        power = needed / large.path_gain[these]
        ends = [each.antennas[0] for each in antennas]
        antenna, times = ends[0], AT_START if len(estimates) == 1 else estimates
        if isinstance(antenna, ImportedGains):  # its gains are all there are, whatever the time
            probability[these] = _share_of(antenna.least_powers(), power)
        elif antenna.groups == 1 and (times is AT_START or isinstance(source.fading, BlockFading)):
            probability[these] = _share_below(antenna.law_of(in_sight), power, streams, len(ends))
        elif these.any():
            probability[these] = _share_of(_least_powers(ends, in_sight, times), power)
    return float(probability.mean())


def _share_of(powers: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.float64]:
    # (n,) the share of powers below each limit
    return np.searchsorted(np.sort(powers), limit) / len(powers)


def _least_powers(
    antennas: Sequence[AntennaGains], in_sight: bool, estimates: NDArray[np.float64]
) -> NDArray[np.float64]:
    # (n,) the least Σ_n |gain|²/N over a slot and the band of links: by the weakest estimate the jammer sets its gain.
    links, sight = np.arange(_SLOTS, dtype=np.int64), np.full(_SLOTS, in_sight)
    powers = [np.abs(antenna.over(links, sight, _START, estimates)) ** 2 for antenna in antennas]
    return np.asarray((sum(powers[1:], powers[0]) / len(powers)).min(axis=(1, 2)))


def _share_below(law: FadingModel, power: NDArray[np.float64], streams: Streams, antennas: int) -> NDArray[np.float64]:
    # (n,) Pr(Σ_n |gain|²/N < power) of N independent gains under a law of mean power 1.
    if isinstance(law, Rayleigh):
        if antennas > 1:
            return np.asarray(special.gammainc(antennas, antennas * power))
        return np.array([shortfall_probability(value, 1.0) for value in power.tolist()])
    draws = streams.nodes("shortfall", 1, np.arange(antennas * _DRAWS, dtype=np.int64))
    gains = law.gains[np.isfinite(law.gains)] if isinstance(law, Recorded) else _drawn(law, draws)
    powers = (np.abs(gains) ** 2).reshape(antennas, -1).mean(axis=0)
    return np.searchsorted(np.sort(powers), power) / len(powers)


def _drawn(law: FadingModel, draws: NodeStream) -> NDArray[np.complex128]:
    return returned("fading", law, "draw", law.draw(draws), draws.nodes.shape, kind=np.number, finite=True)


def check_jammer_power(jammer: Jammer, uplink: OverTheAir, selection: ClientSelection, delta: float) -> None:
    """Refusal of a jammer that is too weak too often.

    Raises:
        InfeasibleError: above ``max_shortfall``; where no power would be enough, it names the least ε that can be met.
    """
    probability, energy = jammer_shortfall(uplink, selection)
    least = math.nan
    if probability > jammer.max_shortfall and uplink.receiver.antennas > 1:
        least = _least_epsilon(jammer, uplink, selection, delta)
    if least >= jammer.epsilon * (1 - 1e-9):
        antennas = "" if jammer.antennas == 1 else f" of {jammer.antennas} antennas"
        met = _rounded_up(least)
        raise InfeasibleError(
            f"uplink.jammer.epsilon: found {jammer.epsilon:g} with {uplink.receiver.antennas} antennas, whose receiver "
            f"nulls the jammer{antennas}: in {probability:.1%} of {REHEARSED} rounds what it hears of a client beside "
            "the jamming is louder than this target allows, however strong the jamming; allowed is "
            f"{jammer.max_shortfall:.1%} (uplink.jammer.max_shortfall), which holds from epsilon {met:g} on. Raise "
            "epsilon or uplink.jammer.antennas, lower uplink.power_control.server_gain or uplink.receiver.antennas"
        )
    if probability > jammer.max_shortfall:
        needed_db = linear_to_db(energy / uplink.air.dimension)
        raise InfeasibleError(
            f"uplink.jammer.power_db: found {jammer.power_db} dB, too little for ε = "
            f"{jammer.epsilon:g} in {probability:.1%} of the rounds; allowed: at most {jammer.max_shortfall:.1%} "
            f"(uplink.jammer.max_shortfall). At |h| = 1 the jammer needs {needed_db:.1f} dB, in a fade more; "
            "raise power_db or epsilon, or lower the server gain"
        )


def _least_epsilon(jammer: Jammer, uplink: OverTheAir, selection: ClientSelection, delta: float) -> float:
    # The ε below which too many rehearsed rounds are louder than any jamming hides; 0 where jamming
    # hides everybody, NaN for a calibration that does not look at all antennas. The loudness of a slot is relative to
    # the budget μ*.
    jamming = uplink.jamming
    if jamming is None or not isinstance(jamming.calibration, ExactCalibration | ExactStepCalibration):
        return math.nan
    with forgotten(uplink.network.memories()):
        slots = loud_slots(uplink, jamming, selection) or []
    floors = sorted((s.antennas.loudest(s.loudness, uplink.air.channel_noise_std) for s in slots), reverse=True)
    given_up = math.floor(jammer.max_shortfall * len(floors))
    floor = floors[given_up] if given_up < len(floors) else 0.0
    return float(gaussian_epsilon(jamming.calibration.gdp_mu * floor, delta)) if floor > 0 else 0.0


def _rounded_up(epsilon: float) -> float:
    # To three digits
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return math.ceil(epsilon / step) * step
