"""Scope of an audit: what its game does not test, in plain phrases."""

import math
from collections.abc import Iterator

from wirelessfl.analysis.audit.choice import AIR, CROWD, JOINT, MODELS, STEPS, UPLOADS, Choice
from wirelessfl.analysis.audit.games import SlotGame
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.analysis.audit.noise_records import LONGEST
from wirelessfl.analysis.audit.rehearsal import Rehearsal
from wirelessfl.analysis.audit.reports import phrases
from wirelessfl.analysis.audit.worlds import tried_updates
from wirelessfl.learning.faults import BernoulliAvailability
from wirelessfl.learning.selection import SelectAll
from wirelessfl.simulation.uplinks import ChannelNoise, NoNoise


def not_tested(rehearsal: Rehearsal, choice: Choice, records: list[NoiseRecord]) -> Iterator[str]:
    """Plain phrases on the scenario, the game that was played on it, and the noise that was recorded."""
    if choice.view == UPLOADS:
        yield "any noise: this adversary sees what is sent without noise, and one observation reveals everything"
    else:
        yield "floating-point arithmetic: noise is taken as real numbers; leaks through the lowest bits are not seen"
        yield "the random generator: an adversary who knows the seed or breaks the generator can remove all noise"
    yield "side channels: times, sizes and numbers of messages, energy, and the trace, which holds private data"
    yield (
        "real data: one canary and zeros stand for all samples and updates, so that noise or clipping which depends on "
        "data in another way is not seen; what loading or code from outside computes from data before clipping is not "
        "looked at"
    )
    yield "senders, channels, scales and rounds that depend on data: those of a simulation without training are used"
    if math.isinf(rehearsal.ledger.epsilon_accounted()):
        yield "a guarantee: the accounted ε is infinite, and nothing can contradict it but the noise itself"
    if choice.view != UPLOADS:
        tried = tried_updates(rehearsal, choice.game) if isinstance(choice.game, SlotGame) else []
        clients = {int(reach.senders[place]) for reach, place in tried}
        but = f", except for the size of the updates of {len(clients)} clients as received" if clients else ""
        yield f"clients other than number {rehearsal.client}: they are assumed to be treated like it{but}"
    yield from (f"noise {record.source} {record.left_out}" for record in records if record.left_out)
    if choice.view != UPLOADS and rehearsal.learner.upload_dimension > LONGEST:
        yield f"noise on all coordinates at once: {LONGEST:,} of {rehearsal.learner.upload_dimension:,} are recorded"
    yield from _sampling(rehearsal, choice)
    yield from _uplink(rehearsal, choice)
    yield from phrases(rehearsal)
    faults, wait_for = rehearsal.parts.faults, rehearsal.parts.wait_for
    everybody = wait_for.fraction == 1.0 and wait_for.count is None and wait_for.deadline_s is None
    reached = isinstance(faults.availability, BernoulliAvailability) and faults.availability.p == 1.0
    stays = faults.crash_rate_per_s == 0 and faults.restart_probability == 0 and faults.battery_j is None
    if not (everybody and reached and stays):
        yield "participation: who is missing or late is assumed to depend on public data only"


def _sampling(rehearsal: Rehearsal, choice: Choice) -> Iterator[str]:
    if choice.view == MODELS and not isinstance(rehearsal.parts.selection.rule, SelectAll):
        yield (
            "the secrecy of the selection: how often a client is selected is measured, but not whether clients are "
            "selected independently, nor whether anything else reveals who was"
        )
        yield "the updates of other clients, which are zeros: which of them a quorum makes too late may reveal more"
    if choice.view in (STEPS, CROWD) and rehearsal.learner.training.sampling == "poisson":
        yield (
            "amplification by sampling: how often, and how independently from step to step, the canary is in a "
            "batch is measured, but not whether samples are drawn independently of each other, nor whether "
            "anything else reveals the batches"
        )
    elif choice.view in (STEPS, CROWD):
        yield "amplification by shuffling, which the ledger does not count: the adversary knows the batches"


def _uplink(rehearsal: Rehearsal, choice: Choice) -> Iterator[str]:
    view = rehearsal.parts.uplink.audit_view()
    if isinstance(view, ChannelNoise) and choice.view in (AIR, JOINT):
        if view.readings == 1:
            yield "the second quadrature of the reception: the game is played on the first, the ledger counts both"
        yield "other uses of the radio, such as pilots and control messages"
        if view.jamming is not None and rehearsal.ledger.statement.colluding:
            yield "the jammer: its noise is removed, because a colluding party may know it"
        elif view.jamming is not None:
            yield "the jammer's secrecy: it is assumed that nobody else knows or can remove its noise"
    if isinstance(view, ChannelNoise | NoNoise):
        yield from view.not_tested
