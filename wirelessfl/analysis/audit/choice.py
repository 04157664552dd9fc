"""Choice of the game for a scenario: the strongest that the adversary of its statement can play.

A canary is one sample's gradient where the ledger counts on every sample's share being bounded, else a whole update.
It is looked for in all noised sums of the client's local steps, or in what the uplink makes of its upload.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, assert_never

import numpy as np
import torch
from typing_extensions import override

from wirelessfl.analysis.audit.canaries import REACH, canary_direction, clearest_sample, whole_update
from wirelessfl.analysis.audit.clients import CanaryClient, TrainedUploads, WholeClient
from wirelessfl.analysis.audit.games import LEAST_NOISE, Advance, FixedUpload, Game, Observations, SlotGame, Uploads
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.analysis.audit.noise_records import local_noise, slot_noise
from wirelessfl.analysis.audit.rehearsal import NOBODY, Rehearsal, require_known, require_known_releases
from wirelessfl.analysis.audit.reports import ReportGame, report_game
from wirelessfl.analysis.audit.slots import KnownSlots, SecretSlots, Slot
from wirelessfl.analysis.audit.steps import CountGame, StepGame, count_game
from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning.selection import SelectAll
from wirelessfl.privacy import ZcdpRelease
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.uplinks import ChannelNoise, NoNoise, NotAuditable, ServerNoise, SlotPlan
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.streams import Streams

AIR = "the sum that the server receives over the air in every round"
JOINT = "the released models and what the observer's own antennas receive in every round"
MODELS = "the released models"
STEPS = "every noised sum of clipped gradients of the client"
CROWD = "every noised sum of clipped gradients, added up over the clients that a secure sum hides among each other"
UPLOADS = "the client's upload, which carries no noise of its own"
# What the two worlds differ in: a gradient or the whole update of the unit, exchanged for its opposite or left out.
_SWING = "one sample swings the client's whole update from one side of the clipping ball to the other"
_CANARIES = {
    ("gradient", True): "one sample's gradient is exchanged for its opposite, both as long as the clip allows",
    ("gradient", False): "one sample's gradient, as long as the clip allows, is there or not",
    ("sample", True): _SWING,
    ("sample", False): _SWING,
    ("client", True): "the client's whole update is exchanged for its opposite, both as long as the clip allows",
    ("client", False): "the client's whole update, as long as the clip allows, is there or not",
}


@dataclass(frozen=True)
class BareGame(Game):
    """Game on an upload without noise: one trial distinguishes the worlds."""

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
        sample: which sample of the client the canary is, where batches are known; None where any will do.
        reports: the game on the losses that the client reports for the selection, or None.
    """

    game: Game
    canary: str
    view: str
    cost: float
    noises: Callable[[], Iterator[NoiseRecord]]
    counts: CountGame | None = None
    sample: int | None = None
    reports: ReportGame | None = None


def choose_game(rehearsal: Rehearsal) -> Choice:
    """The strongest game that the adversary of the ledger's statement can play against its worst client.

    Noisy losses, which every adversary is taken to see, are a part of the view, but for one who needs none.

    Raises:
        InfeasibleError: there is no game for this scenario.
    """
    choice = _on_updates(rehearsal)
    streams = Streams(rehearsal.learner.streams.torch_seed("audit"))
    reports = None if choice.view == UPLOADS else report_game(rehearsal, choice.sample, streams)
    if reports is None:
        return choice
    noises = choice.noises
    return choice._replace(
        reports=reports, cost=choice.cost + reports.cost, noises=lambda: chain(noises(), [reports.noise()])
    )


def _on_updates(rehearsal: Rehearsal) -> Choice:
    require_known_releases(rehearsal.releases)
    adversary, view = rehearsal.ledger.statement.adversary, rehearsal.parts.uplink.audit_view()
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
    replaced, noisy = statement.adjacency == "replace", learner.private is not None and learner.private.adds_noise
    by_gradients = noisy or (statement.unit == "sample" and air.gradient_step is not None)
    vectors = learner.upload_dimension // learner.dimension
    words = f"this scenario cannot be audited: the audit has no game for a sample behind {vectors} vectors in an upload"
    precondition(vectors == 1 or not by_gradients, words, InfeasibleError)
    client = _canary_client(rehearsal, streams) if by_gradients else None
    whole, slots = _whole_updates(learner, haar_noise=False), _known_slots(rehearsal).slots
    if statement.colluding > 0:
        slots = {index: slot._replace(plan=_without_jamming(slot.plan)) for index, slot in slots.items()}
    if client is not None and not noisy:
        slots = {index: slot for index, slot in slots.items() if client.uses_canary(index)}
    game = SlotGame(
        listen=air.listen,
        slots=KnownSlots(slots),
        uploads=whole if client is None else TrainedUploads(client, random=noisy),
        probe=whole,
        exchange=statement.exchange if client is None else replaced,
        sample_rate=1.0,
        gaussian=not noisy,
        streams=streams,
    )
    trained = client if noisy else None
    return Choice(
        game,
        _CANARIES[statement.unit if client is None else "gradient", replaced],
        JOINT if air.joint else AIR,
        game.cost(learner.upload_dimension * air.readings, False) + (0.0 if trained is None else trained.cost(1)),
        lambda: _air_noises(rehearsal, game, trained),
        sample=_known_sample(client),
    )


def _air_noises(rehearsal: Rehearsal, game: SlotGame, client: CanaryClient | None) -> Iterator[NoiseRecord]:
    yield slot_noise(game, haar_noise=False, exact=False)
    if client is not None:
        yield from _local_noises(rehearsal, client, count_game(client, False))


def _on_models(rehearsal: Rehearsal, server: ServerNoise, streams: Streams) -> Choice:
    # On the released models; who was selected is as secret as the ledger takes it to be.
    rule, learner = rehearsal.parts.selection.rule, rehearsal.learner
    require_known("selection", rule)
    statement, haar_noise = rehearsal.ledger.statement, server.central.wavelet is not None
    all_rounds = list(range(1, rehearsal.num_rounds + 1))
    uploads: Uploads = _whole_updates(learner, haar_noise)
    if server.central.clip is None and server.central.descent is not None:  # clipped gradients alone bound an update
        uploads = TrainedUploads(_whole_client(rehearsal, all_rounds, haar_noise, streams), random=False)
    slots = (
        _known_slots(rehearsal)
        if isinstance(rule, SelectAll)
        else SecretSlots(server, rehearsal.parts, learner, rehearsal.client, all_rounds)
    )
    noisy = all(server.central.noise_std(round_index) > LEAST_NOISE for round_index in slots.rounds)
    game = SlotGame(
        *(server.listen, slots, uploads, uploads, statement.exchange, server.central.sample_rate, True, streams),
        white=noisy and not haar_noise,
    )
    return Choice(
        game,
        _CANARIES[statement.unit, statement.adjacency == "replace"],
        MODELS,
        game.cost(learner.upload_dimension, haar_noise),
        lambda: iter([slot_noise(game, haar_noise, exact=True)] if noisy else []),
    )


def _known_slots(rehearsal: Rehearsal) -> KnownSlots:
    planned = {this.index: Slot.of(this, plan, rehearsal.client) for this, plan in rehearsal.slots}
    heard = {index: slot for index, slot in planned.items() if slot.position is not None}
    precondition(heard, NOBODY, InfeasibleError)
    return KnownSlots(heard)


def _on_uploads(rehearsal: Rehearsal, streams: Streams) -> Choice:
    # On what the client sends, with the noise of its own local steps if there is any.
    #
    # A trusted server charges for rounds in which nobody sends anything too.
    precondition(any(rehearsal.client in release.clients for release in rehearsal.releases), NOBODY, InfeasibleError)
    statement, learner = rehearsal.ledger.statement, rehearsal.learner
    replaced = statement.adjacency == "replace"
    if learner.private is None or not learner.private.adds_noise:
        return Choice(BareGame(), _CANARIES[statement.unit, replaced], UPLOADS, 0.0, lambda: iter(()))
    client, crowd = _canary_client(rehearsal, streams), _crowd(rehearsal)
    counts = count_game(client, replaced)
    return Choice(
        StepGame(client, replaced, crowd, learner.private.gradients.clipping.law().unproven is not None),
        _CANARIES["gradient", replaced],
        STEPS if crowd == 1 else CROWD,
        client.cost(crowd) * (1 if counts is None else 2),
        lambda: _local_noises(rehearsal, client, counts),
        counts,
        _known_sample(client),
    )


def _known_sample(client: CanaryClient | None) -> int | None:
    return None if client is None or client.secret_batches else client.canary


def _local_noises(rehearsal: Rehearsal, client: CanaryClient, counts: CountGame | None) -> Iterator[NoiseRecord]:
    yield local_noise(client, rehearsal.local_records())
    if counts is not None:
        yield counts.noise()


def _without_jamming(plan: SlotPlan) -> SlotPlan:
    # A slot as it looks to one who was told the jammer's noise, and takes it off.
    if not isinstance(plan, AirPlan):
        raise InfeasibleError(
            f"this scenario cannot be audited: the audit has no game for a jammer in a {type(plan).__name__}"
        )
    return replace(plan, jammer=None, jammer_gain=0.0)


def _whole_updates(learner: Learner, haar_noise: bool) -> FixedUpload:
    # Updates far outside every clip, after the engine's own clip; and none.
    update = REACH * canary_direction(learner.upload_dimension, haar_noise)
    return FixedUpload({sign: whole_update(learner.training, sign * update) for sign in (1, 0, -1)})


def _canary_client(rehearsal: Rehearsal, streams: Streams) -> CanaryClient:
    learner, private = rehearsal.learner, rehearsal.learner.private
    assert private is not None, "gradient canaries are for private training"
    samples = int(learner.population.sizes[rehearsal.client])
    secret = private.adds_noise and learner.training.sampling == "poisson" and learner.training.batch_size < samples
    known = (learner.training, learner.streams, rehearsal.rounds, rehearsal.client, samples)
    common = _training_facts(rehearsal, rehearsal.rounds, streams)
    return CanaryClient(**common, canary=0 if secret else clearest_sample(*known), secret_batches=secret)


def _whole_client(rehearsal: Rehearsal, rounds: list[int], haar_noise: bool, streams: Streams) -> WholeClient:
    common = _training_facts(rehearsal, rounds, streams)
    return WholeClient(**common, canary=0, secret_batches=False, server_haar_noise=haar_noise)


def _training_facts(rehearsal: Rehearsal, rounds: list[int], streams: Streams) -> dict[str, Any]:
    # What a canary's client trains with, whatever the canary is
    learner, private = rehearsal.learner, rehearsal.learner.private
    assert private is not None
    require_known("clipping rule", private.gradients.clipping)
    require_known("noise mechanism", private.gradients.noise)
    parameters = torch.from_numpy(rehearsal.state.parameters)
    return {
        "training": learner.training,
        "transforms": {
            index: private.transform(learner.model, parameters, rehearsal.state, index, learner.plan)
            for index in rounds
        },
        "learning_rates": {index: learner.learning_rate(index) for index in rounds},
        "parts": learner.model.sizes,
        "client": rehearsal.client,
        "samples": int(learner.population.sizes[rehearsal.client]),
        "public": learner.streams,
        "streams": streams,
    }


def _crowd(rehearsal: Rehearsal) -> int:
    # How many clients' noises the ledger counts together, because a secure sum hides which is whose.
    hiding = [
        release.hiding_clients(rehearsal.ledger.statement)[rehearsal.place_in(release)]
        for release in rehearsal.releases
        if isinstance(release, ZcdpRelease)
    ]
    return int(max(hiding, default=1))
