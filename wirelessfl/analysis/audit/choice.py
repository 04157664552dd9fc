"""Which game the adversary of a scenario's statement plays: the strongest that it can.

A canary is one sample's gradient where the ledger counts on every sample's share being bounded, else a whole update.
It is looked for in all noised sums of the client's local steps, or in what the uplink makes of its upload.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

import numpy as np
import torch
from typing_extensions import override

from wirelessfl.analysis.audit.attendance import Attendance
from wirelessfl.analysis.audit.canaries import REACH, canary_direction, clearest_sample, whole_update
from wirelessfl.analysis.audit.costs import slot_cost, step_cost
from wirelessfl.analysis.audit.counts import CountGame, releases_counts
from wirelessfl.analysis.audit.games import (
    LEAST_NOISE,
    Advance,
    FixedUpload,
    Game,
    KnownSlots,
    Observations,
    SecretSlots,
    Slot,
    SlotGame,
    Uploads,
)
from wirelessfl.analysis.audit.known import require_known_gradients, require_known_releases, require_known_selection
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.analysis.audit.noise_records import local_noise, slot_noise
from wirelessfl.analysis.audit.rehearsal import Rehearsal
from wirelessfl.analysis.audit.steps import CanaryClient, StepGame, TrainedUploads
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning.selection import SelectAll
from wirelessfl.privacy import ZcdpRelease
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.uplinks import ChannelNoise, NoNoise, NotAuditable, ServerNoise, SlotPlan
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.streams import Streams

AIR = "the sum that the server receives over the air in every round"
MODELS = "the released models"
STEPS = "every noised sum of clipped gradients of the client"
CROWD = "every noised sum of clipped gradients, added up over the clients that a secure sum hides among each other"
UPLOADS = "the client's upload, which carries no noise of its own"


@dataclass(frozen=True)
class BareGame(Game):
    """What is seen carries no noise: one look tells the worlds apart."""

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        # The canary's upload, and its absence.
        advance(1.0)
        plus, minus = np.ones((trials, 1)), np.zeros((trials, 1))
        return Observations(plus, minus, np.ones(1), False, 1.0, plus > 0, gaussian=True)


class Choice(NamedTuple):
    """A game in code and in words.

    Attributes:
        game: the game.
        canary: what the two worlds differ in.
        view: what the adversary sees.
        cost: seconds that one trial of both worlds takes on a common processor, by counting operations.
        noises: records the noise that the game is played under.
        counts: the game on the counts that an adaptive clipping norm releases, or None.
    """

    game: Game
    canary: str
    view: str
    cost: float
    noises: Callable[[], Iterator[NoiseRecord]]
    counts: CountGame | None = None


def choose_game(rehearsal: Rehearsal) -> Choice:
    """The strongest game that the adversary of the ledger's statement can play against its worst client.

    Raises:
        InfeasibleError: there is no game for this scenario.
    """
    require_known_releases(rehearsal.releases)
    adversary, view = rehearsal.ledger.statement.adversary, rehearsal.uplink.audit_view()
    streams = Streams(rehearsal.learner.streams.torch_seed("audit"))
    match view:
        case NotAuditable():
            raise InfeasibleError(f"this scenario cannot be audited: {view.reason}")
        case ChannelNoise() if adversary != "individual":
            return _on_the_air(rehearsal, view, streams)
        case ServerNoise() if adversary == "observer":
            return _on_models(rehearsal, view, streams)
        case ChannelNoise() | ServerNoise() | NoNoise():
            return _on_uploads(rehearsal, streams)
        case _:
            assert_never(view)


def _on_the_air(rehearsal: Rehearsal, air: ChannelNoise, streams: Streams) -> Choice:
    statement, learner = rehearsal.ledger.statement, rehearsal.learner
    replaced = statement.adjacency == "replace"
    client, exchange, words = None, replaced, _gradient_words(replaced)
    uploads: Uploads
    if learner.private is not None and learner.private.adds_noise:
        client = _canary_client(rehearsal, streams)
        uploads = TrainedUploads(client, random=True)
    elif statement.unit == "sample" and air.gradient_step is not None:
        uploads = TrainedUploads(_canary_client(rehearsal, streams), random=False)
    else:
        uploads, exchange = _whole_updates(learner, False), statement.exchange
        words = _update_words(statement.unit, replaced)
    game = _air_game(rehearsal, air, uploads, exchange, streams)
    cost = slot_cost(game, learner.upload_dimension, False) + (0.0 if client is None else step_cost(client, 1))
    return Choice(game, words, AIR, cost, lambda: _air_noises(rehearsal, game, client))


def _air_noises(rehearsal: Rehearsal, game: SlotGame, client: CanaryClient | None) -> Iterator[NoiseRecord]:
    yield slot_noise(game, haar_noise=False, exact=False)
    if client is not None:
        yield from _local_noises(rehearsal, client, CountGame(client, False) if releases_counts(client) else None)


def _on_models(rehearsal: Rehearsal, server: ServerNoise, streams: Streams) -> Choice:
    # On the released models; who was selected is as secret as the ledger takes it to be.
    require_known_selection(rehearsal.selection.rule)
    statement, haar_noise = rehearsal.ledger.statement, server.central.wavelet is not None
    uploads = _whole_updates(rehearsal.learner, haar_noise)
    known = isinstance(rehearsal.selection.rule, SelectAll)
    slots = _known_slots(rehearsal) if known else _secret_slots(rehearsal, server)
    noisy = all(server.central.noise_std(round_index) > LEAST_NOISE for round_index in slots.rounds)
    game = SlotGame(
        *(server.listen, slots, uploads, uploads, statement.exchange, server.central.sample_rate, True, streams),
        white=noisy and not haar_noise,
    )
    return Choice(
        game,
        _update_words(statement.unit, statement.adjacency == "replace"),
        MODELS,
        slot_cost(game, rehearsal.learner.upload_dimension, haar_noise),
        lambda: iter([slot_noise(game, haar_noise, exact=True)] if noisy else []),
    )


def _known_slots(rehearsal: Rehearsal) -> KnownSlots:
    slots: dict[int, Slot] = {}
    for this, plan in rehearsal.slots:
        place = np.flatnonzero(this.clients[plan.senders] == rehearsal.client)
        if len(place):
            slots[this.index] = Slot(this, plan, int(place[0]))
    if not slots:
        raise InfeasibleError("nobody is heard in any round: there is nothing to audit")
    return KnownSlots(slots)


def _secret_slots(rehearsal: Rehearsal, server: ServerNoise) -> SecretSlots:
    return SecretSlots(
        plan=server.plan,
        selection=rehearsal.selection,
        registered=rehearsal.ledger.facts.num_clients,
        client=rehearsal.client,
        rounds=list(range(1, rehearsal.num_rounds + 1)),
        heard=Attendance.of(rehearsal.parts, rehearsal.learner).heard,
        always=server.always,
    )


def _on_uploads(rehearsal: Rehearsal, streams: Streams) -> Choice:
    # On what the client sends, with the noise of its own local steps if there is any.
    statement, learner = rehearsal.ledger.statement, rehearsal.learner
    replaced = statement.adjacency == "replace"
    if learner.private is None or not learner.private.adds_noise:
        return Choice(BareGame(), _update_words(statement.unit, replaced), UPLOADS, 0.0, lambda: iter(()))
    client, crowd = _canary_client(rehearsal, streams), _crowd(rehearsal)
    unproven = learner.private.gradients.clipping.law().unproven is not None
    counts = CountGame(client, replaced) if releases_counts(client) else None
    return Choice(
        StepGame(client, replaced, crowd, unproven),
        _gradient_words(replaced),
        STEPS if crowd == 1 else CROWD,
        step_cost(client, crowd) * (1 if counts is None else 2),
        lambda: _local_noises(rehearsal, client, counts),
        counts,
    )


def _local_noises(rehearsal: Rehearsal, client: CanaryClient, counts: CountGame | None) -> Iterator[NoiseRecord]:
    yield local_noise(client, rehearsal.local_records())
    if counts is not None:
        yield counts.noise()


def _air_game(rehearsal: Rehearsal, air: ChannelNoise, uploads: Uploads, exchange: bool, streams: Streams) -> SlotGame:
    slots = _known_slots(rehearsal).slots
    if rehearsal.ledger.statement.colluding > 0:
        slots = {index: slot._replace(plan=_without_jamming(slot.plan)) for index, slot in slots.items()}
    if isinstance(uploads, TrainedUploads) and not uploads.random:
        slots = {index: slot for index, slot in slots.items() if uploads.client.uses_canary(index)}
    return SlotGame(
        listen=air.listen,
        slots=KnownSlots(slots),
        uploads=uploads,
        probe=_whole_updates(rehearsal.learner, haar_noise=False),
        exchange=exchange,
        sample_rate=1.0,
        gaussian=not (isinstance(uploads, TrainedUploads) and uploads.random),
        streams=streams,
    )


def _without_jamming(plan: SlotPlan) -> SlotPlan:
    # A slot as it looks to one who was told the jammer's noise, and takes it off.
    return replace(plan, jammer=None, jammer_gain=0.0) if isinstance(plan, AirPlan) else plan


def _whole_updates(learner: Learner, haar_noise: bool) -> FixedUpload:
    # Updates far outside every clip, after the engine's own clip; and none.
    update = REACH * canary_direction(learner.upload_dimension, haar_noise)
    return FixedUpload({sign: whole_update(learner.training, sign * update) for sign in (1, 0, -1)})


def _canary_client(rehearsal: Rehearsal, streams: Streams) -> CanaryClient:
    learner, rounds = rehearsal.learner, rehearsal.rounds
    private = learner.private
    assert private is not None, "gradient canaries are for private training"
    require_known_gradients(private.gradients)
    parameters = torch.from_numpy(rehearsal.state.parameters)
    samples = int(learner.population.sizes[rehearsal.client])
    secret = private.adds_noise and learner.training.sampling == "poisson" and learner.training.batch_size < samples
    transforms = {
        index: private.transform(learner.model, parameters, rehearsal.state, index, learner.plan) for index in rounds
    }
    return CanaryClient(
        training=learner.training,
        transforms=transforms,
        learning_rates={index: _learning_rate(learner, index) for index in rounds},
        parts=learner.model.sizes,
        client=rehearsal.client,
        samples=samples,
        canary=0 if secret else clearest_sample(learner.training, learner.streams, rounds, rehearsal.client, samples),
        secret_batches=secret,
        public=learner.streams,
        streams=streams,
    )


def _learning_rate(learner: Learner, round_index: int) -> float:
    begun = [first for first in learner.lr_schedule if first <= round_index]
    return learner.training.learning_rate * (learner.lr_schedule[max(begun)] if begun else 1.0)


def _crowd(rehearsal: Rehearsal) -> int:
    # How many clients' noises the ledger counts together, because a secure sum hides which is whose.
    hiding = [
        release.hiding_clients(rehearsal.ledger.statement)[rehearsal.place_in(release)]
        for release in rehearsal.releases
        if isinstance(release, ZcdpRelease)
    ]
    return int(max(hiding, default=1))


def _gradient_words(replaced: bool) -> str:
    if replaced:
        return "one sample's gradient is exchanged for its opposite, both as long as the clip allows"
    return "one sample's gradient, as long as the clip allows, is there or not"


def _update_words(unit: str, replaced: bool) -> str:
    if unit == "sample":
        return "one sample swings the client's whole update from one side of the clipping ball to the other"
    if replaced:
        return "the client's whole update is exchanged for its opposite, both as long as the clip allows"
    return "the client's whole update, as long as the clip allows, is there or not"
