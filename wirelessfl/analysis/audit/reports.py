"""The game on reported losses: of one sample, or of all of a client, they are as large as can be, or nothing.

What becomes of them is left to the code that every run uses: the clip of each sample's loss, their mean, its noise.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from typing_extensions import override

from wirelessfl.analysis.audit.games import Advance, Game, Observations, Values
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.analysis.audit.noise_records import kept_coordinates, spread
from wirelessfl.analysis.audit.rehearsal import Rehearsal
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.losses import drawn_samples
from wirelessfl.learning.population import Population, Shards
from wirelessfl.learning.selection import LossReports
from wirelessfl.simulation.learner import Learner
from wirelessfl.streams import Streams

SEEN = "the losses that the client reports for the selection"
CANARY = "its losses are as large as their clip allows, or nothing"
# Of a loss of zero: the other class is so much less likely that numbers of 32 bits hold nothing of it.
_SURE = 200.0
# Of a loss far beyond every clip, and the largest of 32 bits that leaves room for sums.
_REACH, _LARGEST = 1e6, 1e30
# Seconds of one report on a common processor, as measured.
_REPORT_SECONDS = 1e-4
# Seeds, rounds and clients in which the noise of reports is recorded, at most.
_SEEDS, _ROUNDS, _CLIENTS = 40, 19, 10_000
# By how much a report may move further than charged, relative, as losses are numbers of 32 bits.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class CanarySamples(Population):
    """Samples of one client, each with one feature: how large its loss is.

    Attributes:
        features: (n,) float32.
    """

    features: torch.Tensor

    @property
    @override
    def sizes(self) -> NDArray[np.int64]:
        return np.array([len(self.features)])

    @property
    @override
    def feature_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    @override
    def num_classes(self) -> int:
        return 2

    @property
    @override
    def test(self) -> Examples:
        return Examples(self.features[:0, None], torch.zeros(0, dtype=torch.int64))

    @override
    def shards(self, clients: NDArray[np.int64]) -> Shards:
        count, targets = len(self.features), torch.zeros(len(self.features), dtype=torch.int64)
        index = torch.arange(count).expand(len(clients), count)
        return Shards(self.features[:, None], targets, index, torch.full((len(clients),), count))


@dataclass(frozen=True, eq=False)
class ReportGame(Game):
    """The adversary sees the noisy losses that a client reports.

    Attributes:
        learner: makes and noises the losses in a run.
        reports: which losses, and their noise.
        client: whose.
        samples: n_i.
        canary: which of its samples has a loss; None for all of them.
        recorded_std: standard deviation of the noise on record in each round in which the client reports.
        charged: by how many of these deviations a report may move at most, as the ledger counts it in that round.
        streams: randomness of the audit.
    """

    learner: Learner
    reports: LossReports
    client: int
    samples: int
    canary: int | None
    recorded_std: dict[int, float]
    charged: dict[int, float]
    streams: Streams

    @property
    def rounds(self) -> list[int]:
        """Rounds in which the canary is among the samples whose losses are reported."""
        return [index for index in self.recorded_std if self._counts(index)]

    @property
    def cost(self) -> float:
        """Seconds of both worlds of a trial."""
        return 2 * len(self.rounds) * _REPORT_SECONDS

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        secrets = [Streams(self.streams.torch_seed("trial", 0, trial)) for trial in range(trials)]
        rounds, seen = self.rounds, np.zeros((2, trials, len(self.rounds)))
        for event, index in enumerate(rounds):
            for world, loss in enumerate((self._reach, 0.0)):
                statistic = self._statistic(index, loss)
                seen[world, :, event] = [self._report(index, statistic, secret) for secret in secrets]
            advance(1 / len(rounds))
        shift = np.array([self._shift(index, self._reach) for index in rounds])
        return Observations(
            *(seen[0], seen[1], shift, False, 1.0, np.ones(seen.shape[1:], dtype=np.bool_), True),
            separable=True,
            recorded_std=np.ones(len(rounds)),
        )

    def faults(self) -> list[str]:
        """Sentence on reports that move further than charged, if there are any; no matter of chance."""
        found = [
            (abs(self._shift(index, loss)) / self.charged[index], index)
            for index in self.rounds
            for loss in (self._reach, math.nan)
        ]
        beyond = [(factor, index) for factor, index in found if not factor <= 1 + _SLACK]
        if not beyond:
            return []
        factor, index = max(beyond)
        return [
            f"In {len({number for _, number in beyond})} of {len(self.rounds)} rounds a reported loss moves by more "
            f"than is charged for it: that of client {self.client} in round {index} by {factor:.3g} times as much."
        ]

    def noise(self) -> NoiseRecord:
        """The noise of reports of several seeds, rounds and clients, whose place is that of coordinates."""
        clients, rounds = kept_coordinates(len(self.learner.population.sizes), _CLIENTS), list(self.recorded_std)
        chosen, found, events = spread(rounds, _ROUNDS), list[Values](), list[tuple[int, int]]()
        for seed in range(_SEEDS):
            seeded = Streams(self.streams.torch_seed("noise", 0, seed))
            for index in chosen:
                noise = self.reports.noised(np.zeros(len(clients)), seeded.nodes("selection_noise", index, clients))
                found.append(noise / self.recorded_std[index])
                events.append((seed, index))
        labels = dict(zip(("seed", "round"), np.array(events, dtype=np.int64).T, strict=True))
        left_out = f"in every event: {len(chosen)} of {len(rounds)} rounds are recorded"
        return NoiseRecord(
            "of the reported losses (of clients as coordinates)",
            np.stack(found),
            labels,
            gaussian=True,
            left_out=left_out if len(chosen) < len(rounds) else "",
        )

    @property
    def _reach(self) -> float:
        # A loss far beyond the clip
        return min(_REACH * max(1.0, self.reports.clip), _LARGEST)

    @cached_property
    def _model(self) -> FlatModel:
        return FlatModel(lambda: nn.Linear(1, 2), (1,), 2)

    def _counts(self, index: int) -> bool:
        # Whether the canary is in the mini-batch of a round, if there is one; the adversary knows it
        if self.canary is None or self.reports.statistic != "batch_mean":
            return True
        size, streams = self.learner.training.batch_size, self.learner.streams
        drawn = drawn_samples(self.samples, self.client, size, index, streams)
        return drawn is None or self.canary in drawn

    def _statistic(self, index: int, loss: float) -> Values:
        # (1,) what the client makes of losses that are ``loss`` for the canary and 0 for other samples
        if self.reports.statistic == "training_mean":  # of local steps, on each of which any sample has an influence
            return np.array([loss])
        features = torch.zeros(self.samples)
        features[slice(None) if self.canary is None else self.canary] = loss
        known = replace(self.learner, model=self._model, population=CanarySamples(features))
        weights = np.array([-1.0, 0.0, _SURE, 0.0], dtype=np.float32)
        return known.statistics(weights, np.array([self.client]), index, self.reports)

    def _report(self, index: int, statistic: Values, streams: Streams) -> float:
        # In units of the noise on record
        stream = streams.nodes("selection_noise", index, np.array([self.client]))
        return float(self.reports.noised(statistic, stream)[0]) / self.recorded_std[index]

    def _shift(self, index: int, loss: float) -> float:
        # By how much a loss moves the report: under the same noise two reports differ in it alone
        pilot = Streams(self.streams.torch_seed("pilot"))
        there, nothing = (self._report(index, self._statistic(index, value), pilot) for value in (loss, 0.0))
        return there - nothing


def report_game(rehearsal: Rehearsal, canary: int | None, streams: Streams) -> ReportGame | None:
    """The game on the losses that the client of a rehearsal reports; None where it reports none.

    Args:
        rehearsal: the scenario without its training.
        canary: the sample that another game of the same view is about; None where any will do.
        streams: randomness of the audit.
    """
    if not rehearsal.reports:
        return None
    ledger, learner = rehearsal.ledger, rehearsal.learner
    charged = {}
    for release in rehearsal.reports:
        spending = release.accounted(ledger.facts, ledger.statement)
        place = 0 if spending.everyone else int(np.flatnonzero(release.clients == rehearsal.client)[0])
        charged[release.round_index] = math.sqrt(float(spending.mu_squared[place]))
    game = ReportGame(
        learner=learner,
        reports=rehearsal.parts.selection.reports,
        client=rehearsal.client,
        samples=int(learner.population.sizes[rehearsal.client]),
        canary=None if ledger.statement.unit == "client" else canary or 0,
        recorded_std={release.round_index: release.noise.noise_std for release in rehearsal.reports},
        charged=charged,
        streams=streams,
    )
    return game if canary is not None or game.canary is None else replace(game, canary=_most_reported(game))


def _most_reported(game: ReportGame) -> int:
    # The sample that is in the most mini-batches
    if game.reports.statistic != "batch_mean":
        return 0
    size, streams, times = game.learner.training.batch_size, game.learner.streams, np.zeros(game.samples)
    for index in game.recorded_std:
        drawn = drawn_samples(game.samples, game.client, size, index, streams)
        times[slice(None) if drawn is None else drawn] += 1
    return int(np.argmax(times))


def beside(updates: Observations, reports: Observations) -> Observations:
    """Both parts of a view whose events are known, as events of one game."""
    middle = 0.5 * reports.shift * updates.exchange  # of an exchange both worlds are equally far from it

    def both(one: Values, other: Values) -> Values:
        return np.concatenate([one, other], axis=-1)

    known = updates.recorded_std is not None and reports.recorded_std is not None
    silent, never = updates.silent, np.zeros((2, *reports.included.shape), dtype=np.bool_)
    return replace(
        updates,
        plus=both(updates.plus, reports.plus - middle),
        minus=both(updates.minus, reports.minus - middle),
        shift=both(updates.shift, reports.shift),
        included=np.concatenate([updates.included, reports.included], axis=-1),
        separable=updates.separable and reports.separable,
        silent=None if silent is None else np.concatenate([silent, never], axis=-1),
        recorded_std=both(updates.recorded_std, reports.recorded_std) if known else None,  # type: ignore[arg-type]
    )


def phrases(rehearsal: Rehearsal) -> Iterator[str]:
    """What of the selection by losses the audit does not test, in plain phrases."""
    if rehearsal.reports:
        yield (
            "what the selection by reported losses tells: who reports and takes part in which round is taken from a "
            "simulation without training"
        )
    elif rehearsal.parts.selection.reads_losses:
        yield "losses that clients report for the selection: the noise on them, and what the selection by them tells"
