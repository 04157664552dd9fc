"""Rehearsed slots of a jammer against several antennas: how loud clients are, and how often its power is too little."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import (
    AntennaLinks,
    ExactCalibration,
    ExactStepCalibration,
    ImportedFading,
    Instants,
    JammerLink,
    Jamming,
    Moment,
    jammer_energy,
    jammer_gain_for_noise,
)
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AnnouncedSlot, read_behind

REHEARSED = 50
"""Rounds that are planned ahead where a jammer has to hide clients from several antennas."""
# Channels of the jammer behind the combiner of each of them: the share is known to ±4 % at worst, at 99 %, as far as
# the combiners of so many rounds stand for all
_DRAWS = 20
# Periods of the Doppler shift between two rehearsed rounds, where a channel keeps less than 0.05 of its correlation
_PERIODS = 50.4
# Clients that stand for all
_ASKED = 1000


@dataclass(frozen=True, eq=False)
class LoudSlot:
    """A rehearsed slot against all antennas.

    Attributes:
        antennas: links to each of them.
        loudness: (m,) that is to be at most 1 behind a whitening filter.
    """

    antennas: AntennaLinks
    loudness: NDArray[np.float64]


def against_all_antennas(
    uplink: OverTheAir, jamming: Jamming, selection: ClientSelection
) -> tuple[float, float] | None:
    """The share of rehearsed rounds in which the jammer cannot hide the clients from all antennas, and its energy.

    The energy is that of the middle round, infinite where no power is enough. None for a calibration that does not look
    at all antennas.
    """
    slots = loud_slots(uplink, jamming, selection)
    if slots is None:
        return None
    needed = [slot.antennas.hiding_gain(slot.loudness, uplink.air.channel_noise_std) for slot in slots]
    if not needed:
        return 0.0, 0.0
    share = float(np.mean(np.isinf(needed) | (np.array(needed) > jamming.gain_limit * (1 + 1e-12))))
    return share, jammer_energy(float(np.median(needed)), uplink.num_symbols, jamming.noise)


def loud_slots(uplink: OverTheAir, jamming: Jamming, selection: ClientSelection) -> list[LoudSlot] | None:
    """The slots of rehearsed rounds; None for a calibration that does not look at all antennas."""
    calibration, slots = jamming.calibration, list[LoudSlot]()
    if not isinstance(calibration, ExactCalibration | ExactStepCalibration):
        return None
    for slot, (jammer,) in _rehearsed(uplink, selection, calibration.rounds, 1):
        for station, plan in slot.transmit.items():
            loudness = jamming.loudness(uplink.policies[station], plan, slot.rows, slot.sends)
            if loudness is None:
                return None
            slots.append(LoudSlot(slot.each_antenna(jammer), loudness))
    return slots


def share_behind_combiners(uplink: OverTheAir, jamming: Jamming, selection: ClientSelection) -> float:
    """The share of rehearsed rounds in which too little of the jamming arrives behind the combiner.

    Correlated antennas, lines of sight and beams that differ between groups of subcarriers have no law of their own.
    The gains that power control sets are those of round 1.
    """
    short, count = 0, 0
    for slot, jammers in _rehearsed(uplink, selection, 1, _DRAWS):
        for station, plan in slot.transmit.items():
            read_std = read_behind(uplink.air, slot.noise_std[station]).channel_noise_std
            required = jamming.calibration.required_noise_std(uplink.policies[station], plan, slot.rows)
            at_one = jammer_gain_for_noise(required, plan.server_gain, read_std)
            behind = (jammer.combined(slot.weights[station]).equivalent for jammer in jammers)
            short += sum(at_one > jamming.gain_limit * abs(link.weakest_estimate) * (1 + 1e-12) for link in behind)
            count += len(jammers)
    return short / count if count else 0.0


def _rehearsed(
    uplink: OverTheAir, selection: ClientSelection, rounds: int, draws: int
) -> Iterator[tuple[AnnouncedSlot, list[JammerLink]]]:
    # Slots as they are announced, each beside channels of the jammer in its round and in those after it. Power control
    # plans for so many rounds over and over: it may know nothing of those beyond the run.
    draws = 1 if isinstance(uplink.network.clients.fading, ImportedFading) else draws
    for number, moments, clients in _rounds_with_clients(uplink, selection, draws):
        instants, jams = uplink.schedule.instants(len(clients) + int(not uplink.rotating_jammer)), None
        if uplink.rotating_jammer:
            jams, clients = np.split(np.roll(clients, -number), [1])
        jammers = [_jammer(uplink, jams, moment, instants) for moment in moments[:1]]
        slots = [
            uplink.announce(some, moments[0], instants, (number - 1) % rounds + 1)
            for some in uplink.sharing_a_slot(np.sort(clients), moments[0].round_index)
        ]
        jammers += [_jammer(uplink, jams, moment, instants) for moment in moments[1:]]
        for slot in slots:
            yield slot, jammers


def _rounds_with_clients(
    uplink: OverTheAir, selection: ClientSelection, draws: int
) -> Iterator[tuple[int, list[Moment], NDArray[np.int64]]]:
    # Number and moments of the rounds with clients, and who is selected at the first moment; all clients in one more
    # round where none has any. Time runs on, as channels that remember cannot go back.
    step_s, selected = _apart_s(uplink), False

    def moments(number: int) -> list[Moment]:
        return [Moment(at + 1, step_s * at) for at in range((number - 1) * draws, number * draws)]

    for number in range(1, REHEARSED + 1):
        own = moments(number)
        clients = selection.select(own[0])
        if len(clients):
            selected = True
            yield number, own, clients
    if not selected:
        everyone = np.arange(min(uplink.network.registry.count, _ASKED), dtype=np.int64)
        yield REHEARSED + 1, moments(REHEARSED + 1), everyone


def _jammer(uplink: OverTheAir, jams: NDArray[np.int64] | None, moment: Moment, instants: Instants) -> JammerLink:
    if jams is None:
        return uplink.network.jammer_link(moment, instants)
    return JammerLink.of([uplink.network.slot_links(jams, moment, instants)])


def _apart_s(uplink: OverTheAir) -> float:
    # Seconds between rehearsed rounds. Draws of their own differ between rounds, gains of a file between its snapshots,
    # and those that go by simulated time after many periods of the Doppler shift.
    source, registry = uplink.network.clients, uplink.network.registry
    if isinstance(source.fading, ImportedFading):
        return source.fading.channels.spacing_s(REHEARSED)
    if not source.fading.varies:
        return 0.0
    shift = source.fading.shift_hz(np.arange(min(registry.count, _ASKED)), Moment(1, 0.0))
    moving = shift[shift > 0]
    return float(_PERIODS / np.median(moving)) if len(moving) else 0.0
