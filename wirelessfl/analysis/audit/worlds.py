"""Checks beside the game: noise, reach and sampling of the canary in both worlds, and the reach of other clients.

A mechanism may treat some inputs, clients or steps otherwise than its record says, while a matched filter, which takes
the mean over all trials, sees little of it: noise that is smaller where there is a gradient, a clip that some clients
escape, batches that are not drawn independently. The rates of false alarms are exact or smaller:

- the noise of n outputs with at least the variance on record lies below a χ²(n) quantile no more often than that law
  says, with or without the canary;
- of n normal outputs that one canary moves equally far, none is further from their median than twice the normal
  quantile of α/8n (once for it, once for the median), in units of an upper confidence limit for the deviation;
- the number of events with the canary, and of trials in which an event does, are binomial (Massart 1990).

A game is played on one client. Others may be treated otherwise, not clipped or sent with more power than recorded: how
far their updates move what is heard is no matter of chance, and compared with the record.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wirelessfl.analysis.audit.games import Observations, SlotGame, Values, hearing_cost
from wirelessfl.analysis.audit.rehearsal import Rehearsal
from wirelessfl.analysis.audit.slots import Slot
from wirelessfl.privacy import AirRelease, ServerNoiseRelease
from wirelessfl.simulation.uplinks import ChannelNoise
from wirelessfl.streams import Streams

# Size and reach in two worlds each, the former with the canary and in all events, and two of the sampling.
_TESTS = 8
# Of a canary that is larger beside the noise, the rounding of numbers of 32 bits hides the noise.
_CLEAREST = 1e4
# Outputs of one event with the canary, below which those of all events are taken together.
_FEWEST = 10
# By how much an update may reach further than recorded, relative, as updates are numbers of 32 bits.
_SLACK = 1e-3
# What trying updates may take on a common processor in seconds, and how many are tried in any case.
_SECONDS, _TRIED = 1.0, 16


def world_faults(observations: Observations, false_alarm: float) -> list[str]:
    """Differences between worlds, trials or events that the record rules out, in plain sentences.

    Args:
        observations: of a game.
        false_alarm: the probability that a sound mechanism is said to do so.
    """
    alpha, std = false_alarm / _TESTS, observations.recorded_std
    found: list[str] = []
    if std is not None and np.all(std > 0):
        found += [*_noise_of_worlds(observations, std, alpha), *_unequal_reach(observations, std, alpha)]
    return [*found, *_dependent_sampling(observations, alpha)] if observations.independent else found


def _measurable(observations: Observations, recorded_std: Values) -> NDArray[np.bool_]:
    # (n, E) events that are released in both worlds, and whose noise is not rounded away beside the canary.
    here = np.ones_like(observations.included) & (observations.shift <= _CLEAREST * recorded_std)
    return here if observations.silent is None else here & np.logical_not(observations.silent.any(axis=0))


def _noise_of_worlds(observations: Observations, recorded_std: Values, alpha: float) -> Iterator[str]:
    released = _measurable(observations, recorded_std)
    worlds = ("with the canary", observations.plus), ("in the other world", observations.minus)
    for place, (words, world) in enumerate(worlds):
        moved = np.where(observations.included, observations.shift, 0.0) / recorded_std
        moved = moved * (place == 0 or observations.exchange)
        for part in (released, released & observations.included):
            outputs, amplitude = (world / recorded_std)[part], moved[part]
            power = float(amplitude @ amplitude)
            if power > 0:  # what a regression on the canary leaves is noise
                outputs = outputs - amplitude * (amplitude @ outputs) / power
            degrees = len(outputs) - (power > 0)
            size = float(outputs @ outputs)
            if degrees > 0 and stats.chi2.logcdf(size, degrees) < math.log(alpha):
                yield (
                    f"The noise {words} is smaller than recorded: {size / degrees:.3g} of its variance is there, in "
                    f"{len(outputs)} outputs."
                )
                break


def _unequal_reach(observations: Observations, recorded_std: Values, alpha: float) -> Iterator[str]:
    released = _measurable(observations, recorded_std)
    included = observations.included & released
    middle = 0.5 * (observations.plus + observations.minus) * math.sqrt(2)
    noise = middle if observations.exchange else observations.minus
    together = bool(np.any(included.sum(axis=0) < _FEWEST))
    events = [slice(None)] if together else [slice(event, event + 1) for event in range(included.shape[1])]
    worlds = (("", observations.plus), (" of opposite sign", observations.minus))
    for words, world in worlds if observations.exchange else worlds[:1]:
        far, most = 0, 0.0
        for event in events:
            part, scale = included[:, event], np.broadcast_to(recorded_std[event], included[:, event].shape)
            if np.count_nonzero(part) < 2:
                continue
            amplitude = np.broadcast_to(observations.shift[event], part.shape)[part] / scale[part]
            outputs = world[:, event][part] / scale[part]
            known = (noise[:, event] / recorded_std[event])[released[:, event]]
            # What the standard deviation of normal outputs does not exceed, but with that probability.
            far_off = float(stats.chi2.ppf(alpha / (4 * len(events)), len(known) - 1))
            limit = float(np.std(known, ddof=1)) * math.sqrt((len(known) - 1) / far_off)
            quantile = float(stats.norm.isf(alpha / (8 * len(events) * len(outputs))))
            # Of equal amplitudes the median is no further off than any output; of others, by their ratio.
            centre = np.median(outputs / amplitude) * amplitude if amplitude.min() > 0 else np.median(outputs)
            ratio = float(amplitude.max() / amplitude.min()) if amplitude.min() > 0 else 1.0
            beyond = np.abs(outputs - centre) - (1 + ratio) * quantile * limit
            far += int(np.count_nonzero(beyond > 0))
            most = max(most, float(np.abs(outputs - centre).max()))
        if far:
            yield (
                f"The canary{words} does not change all outputs equally: {far} of {np.count_nonzero(included)} are "
                f"up to {most:.3g} standard deviations of the recorded noise away from the others. Some are not "
                "clipped, or under other noise."
            )


def _dependent_sampling(observations: Observations, alpha: float) -> Iterator[str]:
    included, rate = observations.included, observations.sample_rate
    (trials, events), hits = included.shape, included.sum(axis=0)
    unlikely = stats.binom.sf(hits - 1, trials, rate)
    worst = int(np.argmin(unlikely))
    if unlikely[worst] * events < alpha:
        yield (
            f"The canary is sampled more often than recorded, at the rate {rate:.3g}: in {hits[worst]} of {trials} "
            f"trials in event {worst + 1}."
        )
    law = stats.binom.cdf(np.arange(events + 1), events, rate)
    found = np.cumsum(np.bincount(included.sum(axis=1), minlength=events + 1)) / trials
    distance = float(np.abs(found - law).max())
    if distance > math.sqrt(math.log(2 / alpha) / (2 * trials)):
        yield (
            "The canary is not sampled independently in every event: the number of events that hold it has a "
            f"distribution {distance:.3g} away from the binomial one."
        )


@dataclass(frozen=True, eq=False)
class Reach:
    """A slot and its record.

    Attributes:
        slot: the slot; whose canary it holds does not matter.
        bound: (k,) the largest norm that each sender's update may have in what is heard, in units of recorded noise.
    """

    slot: Slot
    bound: Values

    @property
    def senders(self) -> NDArray[np.int64]:
        """(k,) numbers of the clients."""
        return np.asarray(self.slot.this.clients[self.slot.plan.senders])


def _recorded_reaches(rehearsal: Rehearsal, game: SlotGame) -> Iterator[Reach]:
    # Slots whose record bounds every sender's update.
    #
    # Real-valued jamming and jammers that collude are left out: then noise that a reception is measured by is not that
    # of the record. So is Haar noise, whose record weighs coefficients.
    view = rehearsal.parts.uplink.audit_view()
    jamming = view.jamming if isinstance(view, ChannelNoise) else None
    if jamming is not None and (rehearsal.ledger.statement.colluding or jamming.noise == "real"):
        return
    for this, plan in ((this, plan) for this, planned in rehearsal.slots for plan in planned.superpositions):
        slot, clients = Slot(this, plan, None), this.clients[plan.senders]
        for release in this.releases:
            if isinstance(release, AirRelease) and release.caveat is None:
                bound = np.full(len(clients), np.inf)  # of clients without a record nothing is claimed
                recorded = np.isin(clients, release.clients)
                places = np.searchsorted(release.clients, clients[recorded])
                bound[recorded] = (release.received_bound / np.asarray(release.accounted_noise_std))[places]
                yield Reach(slot, bound)
            elif isinstance(release, ServerNoiseRelease) and release.clip is not None and game.white:
                largest = release.clip * rehearsal.ledger.facts.largest_weight / release.sample_rate
                yield Reach(slot, np.full(len(plan.senders), largest / release.noise_std))


def tried_updates(rehearsal: Rehearsal, game: SlotGame) -> list[tuple[Reach, int]]:
    """Slots, and places of senders in them, that are tried: every client once if possible, then in other rounds."""
    places, times = [], dict[int, int]()
    for reach in _recorded_reaches(rehearsal, game):
        for place, client in enumerate(reach.senders.tolist()):
            times[client] = times.get(client, 0) + 1
            places.append((times[client], reach, place))
    view = rehearsal.parts.uplink.audit_view()
    readings = view.readings if isinstance(view, ChannelNoise) else 1
    most = max(_TRIED, int(_SECONDS / hearing_cost(rehearsal.learner.upload_dimension * readings, False)))
    first = sorted(range(len(places)), key=lambda number: places[number][0])[:most]
    return [places[number][1:] for number in sorted(first)]


def reach_faults(rehearsal: Rehearsal, game: SlotGame) -> list[str]:
    """Sentence on clients whose update reaches further than recorded, if there are any; no matter of chance.

    Under the same noise two receptions differ in the update alone.
    """
    pilot, tried = Streams(game.streams.torch_seed("reach")), tried_updates(rehearsal, game)
    found, last, nothing = list[tuple[float, str]](), None, np.zeros(0)
    for reach, place in tried:
        index = reach.slot.this.index
        if reach is not last:
            nothing, last = game.hear(pilot, reach.slot, None), reach
        heard = game.hear(pilot, reach.slot._replace(position=place), game.probe.of(index, 1, 1))
        size, bound = float(np.linalg.norm(heard - nothing)), float(reach.bound[place])
        if size > (1 + _SLACK) * bound + 4 * np.finfo(np.float64).eps * float(np.linalg.norm(nothing)):
            found.append((size / bound, f"that of client {reach.senders[place]} in round {index}"))
    if not found:
        return []
    factor, name = max(found)
    return [
        f"In {len(found)} of {len(tried)} cases an update changes the received value by more than recorded: {name} by "
        f"{factor:.3g} times as much."
    ]
