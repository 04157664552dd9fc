"""Whether the jammer's power is enough, as far as that can be said before the run (RADIO.md)."""

from __future__ import annotations

import numpy as np

from wirelessfl.errors import InfeasibleError
from wirelessfl.radio import Rayleigh, jammer_energy, jammer_gain_for_noise, shortfall_probability
from wirelessfl.radio.units import linear_to_db
from wirelessfl.scenario.uplink import Jammer
from wirelessfl.simulation.selection import Selection
from wirelessfl.simulation.uplinks import OverTheAir, Uplink

_DRAWS = 100_000
"""Channel draws for a law without a closed form: the share is known to ±0.4 % at worst, at 99 %."""


def jammer_shortfall(uplink: Uplink, selection: Selection) -> tuple[float, float]:
    """How often in a round the jammer lacks the power that is needed, and the energy E₁ needed at |h_CJ| = 1.

    Rayleigh fading has the closed form Pr(short) = 1 − exp(−E₁/P_CJ); other laws are drawn. With the exact calibration,
    or a power control whose α_u changes, the need of round 1 stands for all rounds.

    Returns:
        The probability, and E₁ in units of the normalised noise; both 0 where no jamming is needed.
    """
    if not isinstance(uplink, OverTheAir) or uplink.jamming is None:
        return 0.0, 0.0
    network = uplink.network
    clients = selection.select(network.registry.count, 1, network.streams)
    links = network.links(clients, 1)
    plan = uplink.policy.plan(links, 1, uplink.air)
    heard = links.take(~plan.silent)
    needed = uplink.jamming.calibration.required_noise_std(uplink.policy, plan, heard)
    gain = jammer_gain_for_noise(needed, plan.server_gain, uplink.air.channel_noise_std)
    energy = jammer_energy(gain, uplink.num_symbols, uplink.jamming.noise)
    budget = jammer_energy(uplink.jamming.gain_limit, uplink.num_symbols, uplink.jamming.noise)
    if gain == 0.0 or np.isinf(budget):
        return 0.0, energy
    if isinstance(network.fading, Rayleigh):
        return shortfall_probability(energy, budget), energy
    nodes = np.arange(_DRAWS, dtype=np.int64)
    power = np.abs(network.fading.draw(network.streams.nodes("shortfall", 0, nodes))) ** 2
    return float(np.mean(power * budget < energy)), energy


def check_jammer_power(jammer: Jammer, uplink: OverTheAir, selection: Selection) -> None:
    """Refuse a jammer that is too weak too often.

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
