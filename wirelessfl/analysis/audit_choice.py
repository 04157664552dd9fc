"""Which game the adversary of a scenario's statement plays: the strongest that it can.

A canary is one sample's gradient where the ledger counts on every sample's share being bounded, else a whole update.
It is looked for in all noised sums of the client's local steps, or in what the uplink makes of its upload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import torch

from wirelessfl.analysis.audit_canaries import REACH, canary_direction, clearest_sample, whole_update
from wirelessfl.analysis.audit_games import (
    Advance,
    FixedUpload,
    KnownSlots,
    Observations,
    SecretSlots,
    Slot,
    SlotGame,
    Slots,
    Uploads,
)
from wirelessfl.analysis.audit_rehearsal import Rehearsal
from wirelessfl.analysis.audit_steps import CanaryClient, StepGame, TrainedUploads
from wirelessfl.privacy import ZcdpRelease
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.selection import SelectAll
from wirelessfl.simulation.uplinks import OverTheAir, SlotPlan, TrustedServer
from wirelessfl.simulation.uplinks.over_the_air import AirPlan
from wirelessfl.streams import Streams

AIR = "the sum that the server receives over the air in every round"
MODELS = "the released models"
STEPS = "every noised sum of clipped gradients of the client"
CROWD = "every noised sum of clipped gradients, added up over the clients that a secure sum hides among each other"
UPLOADS = "the client's upload, which carries no noise of its own"


class Game(Protocol):
    """A distinguishing game."""

    def play(self, trials: int, advance: Advance) -> Observations:
        """Both worlds, ``trials`` times; ``advance`` hears how much of it is done."""
        ...


@dataclass(frozen=True)
class BareGame:
    """What is seen carries no noise: one look tells the worlds apart."""

    def play(self, trials: int, advance: Advance) -> Observations:
        """The canary's upload, and its absence."""
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
    """

    game: Game
    canary: str
    view: str
    cost: float


def choose_game(rehearsal: Rehearsal) -> Choice:
    """The strongest game that the adversary of the ledger's statement can play against its worst client."""
    statement, learner, uplink = rehearsal.ledger.statement, rehearsal.learner, rehearsal.uplink
    streams = Streams(learner.streams.torch_seed("audit"))
    air = uplink if isinstance(uplink, OverTheAir) and statement.adversary != "individual" else None
    replaced = statement.adjacency == "replace"
    if learner.private is not None and learner.private.adds_noise:
        client = _canary_client(rehearsal, streams)
        if air is not None:
            game = _air_game(rehearsal, air, TrainedUploads(client, random=True), replaced, streams)
            return Choice(game, _gradient_words(replaced), AIR, _slot_cost(game) + _step_cost(client, 1))
        crowd = _crowd(rehearsal)
        unproven = learner.private.gradients.clipping.law().unproven is not None
        steps = StepGame(client, replaced, crowd, unproven)
        return Choice(steps, _gradient_words(replaced), STEPS if crowd == 1 else CROWD, _step_cost(client, crowd))
    if air is not None and statement.unit == "sample" and air.gradient_step is not None:
        uploads = TrainedUploads(_canary_client(rehearsal, streams), random=False)
        game = _air_game(rehearsal, air, uploads, replaced, streams)
        return Choice(game, _gradient_words(replaced), AIR, _slot_cost(game))
    words = _update_words(statement.unit, replaced)
    if air is not None:
        game = _air_game(rehearsal, air, _whole_updates(learner, False), statement.exchange, streams)
        return Choice(game, words, AIR, _slot_cost(game))
    if isinstance(uplink, TrustedServer) and statement.adversary == "observer":
        game = _server_game(rehearsal, uplink, statement.exchange, streams)
        return Choice(game, words, MODELS, _slot_cost(game))
    return Choice(BareGame(), words, UPLOADS, 0.0)


def _air_game(rehearsal: Rehearsal, air: OverTheAir, uploads: Uploads, exchange: bool, streams: Streams) -> SlotGame:
    """The game on slots over the air, with the channels and the senders of the scenario."""
    colluding = rehearsal.ledger.statement.colluding > 0
    slots: dict[int, Slot] = {}
    for this, plan in rehearsal.slots:
        place = np.flatnonzero(this.clients[plan.senders] == rehearsal.client)
        if len(place):
            slots[this.index] = Slot(this, _without_jamming(plan) if colluding else plan, int(place[0]))
    if isinstance(uploads, TrainedUploads) and not uploads.random:
        slots = {index: slot for index, slot in slots.items() if uploads.client.uses_canary(index)}
    return SlotGame(
        uplink=air,
        slots=KnownSlots(slots),
        uploads=uploads,
        probe=_whole_updates(rehearsal.learner, haar_noise=False),
        exchange=exchange,
        sample_rate=1.0,
        gaussian=not (isinstance(uploads, TrainedUploads) and uploads.random),
        streams=streams,
    )


def _without_jamming(plan: SlotPlan) -> SlotPlan:
    """A slot as it looks to one who was told the jammer's noise, and takes it off."""
    return replace(plan, jammer=None, jammer_gain=0.0) if isinstance(plan, AirPlan) else plan


def _server_game(rehearsal: Rehearsal, uplink: TrustedServer, exchange: bool, streams: Streams) -> SlotGame:
    """The game on released models; who was selected is as secret as the ledger takes it to be."""
    uploads = _whole_updates(rehearsal.learner, uplink.central.wavelet is not None)
    slots: Slots
    if isinstance(rehearsal.selection, SelectAll):
        slots = KnownSlots(
            {
                this.index: Slot(this, plan, int(np.flatnonzero(this.clients[plan.senders] == rehearsal.client)[0]))
                for this, plan in rehearsal.slots
                if rehearsal.client in this.clients[plan.senders]
            }
        )
    else:
        rounds = list(range(1, rehearsal.num_rounds + 1))
        slots = SecretSlots(uplink, rehearsal.selection, uplink.registry.count, rehearsal.client, rounds)
    rate = uplink.central.sample_rate
    return SlotGame(uplink, slots, uploads, uploads, exchange, rate, gaussian=True, streams=streams)


def _whole_updates(learner: Learner, haar_noise: bool) -> FixedUpload:
    """Updates far outside every clip, after the engine's own clip; and none."""
    update = REACH * canary_direction(learner.dimension, haar_noise)
    return FixedUpload({sign: whole_update(learner.training, sign * update) for sign in (1, 0, -1)})


def _canary_client(rehearsal: Rehearsal, streams: Streams) -> CanaryClient:
    learner, rounds = rehearsal.learner, rehearsal.rounds
    private = learner.private
    assert private is not None, "gradient canaries are for private training"
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
    """How many clients' noises the ledger counts together, because a secure sum hides which is whose."""
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


# Seconds on one core of a common server, as measured: a slot or local step, and each element of it.
_SLOT_SECONDS, _STEP_SECONDS = 3.2e-4, 1e-5
_SLOT_ELEMENT_SECONDS, _HAAR_SLOT_ELEMENT_SECONDS = 2.5e-8, 1e-7
_STEP_ELEMENT_SECONDS, _HAAR_STEP_ELEMENT_SECONDS = 1e-8, 2.8e-8


def _slot_cost(game: SlotGame) -> float:
    haar = isinstance(game.uplink, TrustedServer) and game.uplink.central.wavelet is not None
    element = _HAAR_SLOT_ELEMENT_SECONDS if haar else _SLOT_ELEMENT_SECONDS
    dimension = game.probe.blocks[0].updates.shape[1]
    return 2 * len(game.slots.rounds) * (_SLOT_SECONDS + dimension * element)


def _step_cost(client: CanaryClient, crowd: int) -> float:
    element = _HAAR_STEP_ELEMENT_SECONDS if client.haar_noise else _STEP_ELEMENT_SECONDS
    return 2 * crowd * client.num_steps * (_STEP_SECONDS + client.dimension * element)
