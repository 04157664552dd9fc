"""How far the update of every client moves what is heard, beside what the record says of it.

A game is played on one client. Others may be treated otherwise: not clipped, or sent with more power than recorded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.analysis.audit.costs import hearing_cost
from wirelessfl.analysis.audit.games import Slot, SlotGame, Values, hear
from wirelessfl.analysis.audit.rehearsal import Rehearsal
from wirelessfl.privacy import AirRelease, ServerNoiseRelease
from wirelessfl.simulation.uplinks import ChannelNoise
from wirelessfl.streams import Streams

# Relative; updates are numbers of 32 bits.
_SLACK = 1e-3
# What it may take on a common processor, and how many updates are tried in any case.
_SECONDS, _FEWEST = 1.0, 16


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


def recorded_reaches(rehearsal: Rehearsal, game: SlotGame) -> Iterator[Reach]:
    """Slots whose record bounds every sender's update.

    Real-valued jamming and jammers that collude are left out: then noise that a reception is measured by is not that
    of the record. So is Haar noise, whose record weighs coefficients.
    """
    view, statement = rehearsal.uplink.audit_view(), rehearsal.ledger.statement
    jamming = view.jamming if isinstance(view, ChannelNoise) else None
    if jamming is not None and (statement.colluding or jamming.noise == "real"):
        return
    for this, plan in rehearsal.slots:
        slot = Slot(this, plan, None)
        for release in this.releases:
            if isinstance(release, AirRelease) and release.caveat is None:
                yield Reach(slot, release.received_bound / np.asarray(release.accounted_noise_std))
            elif isinstance(release, ServerNoiseRelease) and release.clip is not None and game.white:
                largest = release.clip * rehearsal.ledger.facts.largest_weight / release.sample_rate
                bound = largest / release.noise_std
                yield Reach(slot, np.full(len(plan.senders), bound))


def tried_updates(rehearsal: Rehearsal, game: SlotGame) -> list[tuple[Reach, int]]:
    """Slots, and places of senders in them, that are tried: every client once if possible, then in other rounds."""
    places, times = [], dict[int, int]()
    for reach in recorded_reaches(rehearsal, game):
        for place, client in enumerate(reach.senders.tolist()):
            times[client] = times.get(client, 0) + 1
            places.append((times[client], reach, place))
    most = max(_FEWEST, int(_SECONDS / hearing_cost(rehearsal.learner.upload_dimension, False)))
    first = sorted(range(len(places)), key=lambda number: places[number][0])[:most]
    return [places[number][1:] for number in sorted(first)]


def reach_faults(rehearsal: Rehearsal, game: SlotGame) -> list[str]:
    """What is said of clients whose update reaches further than recorded; no matter of chance.

    Under the same noise two receptions differ in the update alone.
    """
    pilot = Streams(game.streams.torch_seed("reach"))
    found: list[tuple[float, str]] = []
    tried, last = tried_updates(rehearsal, game), None
    nothing = np.zeros(0)
    for reach, place in tried:
        if reach is not last:
            nothing, last = _heard(game, pilot, reach.slot, 0), reach
        size = float(np.linalg.norm(_heard(game, pilot, reach.slot._replace(position=place), 1) - nothing))
        rounding = 4 * np.finfo(np.float64).eps * float(np.linalg.norm(nothing))
        if size > (1 + _SLACK) * reach.bound[place] + rounding:
            name = f"that of client {reach.senders[place]} in round {reach.slot.this.index}"
            found.append((size / float(reach.bound[place]), name))
    if not found:
        return []
    factor, name = max(found)
    return [
        f"In {len(found)} of {len(tried)} cases tried an update moves what is heard further than recorded: {name} by "
        f"{factor:.3g} times as much."
    ]


def _heard(game: SlotGame, pilot: Streams, slot: Slot, sign: int) -> Values:
    return hear(game.listen, pilot, slot, game.probe.of(slot.this.index, sign, 1), 0)
