"""The beginning of a round: pilots, the query of candidates and the selection; and the losses that are reported."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import LocalTraining
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.roles import claimed_loss
from wirelessfl.learning.selection import LossReports, Selection
from wirelessfl.privacy import LocalPlans, LossNoise, LossRelease, LossReport, Release, UnvouchedRelease
from wirelessfl.radio.propagation import Moment
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import seconds, ticks
from wirelessfl.simulation.records import Before, Round
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.trace import EventKind, Role, Status

BITS_PER_LOSS = 32
"""A reported loss; a control message, which takes no time."""


def selected_round(cell: Cell, selection: ClientSelection, index: int) -> Generator[simpy.Event, Any, Round]:
    """A round with the clients that are selected for it.

    Gains are those of the instant at which the round begins: pilots come before the query, and take their time.
    """
    network, medium, moment = cell.network, cell.medium, Moment(index, seconds(cell.medium.now))
    gains, airtime, joules = selection.fresh_gains(moment), 0.0, 0.0
    if selection.pilots is not None:
        yield medium.occupy(selection.pilots.seconds)
        each = np.full(network.registry.count, selection.pilots.joules)
        airtime, joules = selection.pilots.seconds, float(each.sum())
        cell.drain(np.arange(len(each)), each)
    asked = answers = None
    if selection.asks:
        asked, spent = yield from _query(cell, _reached(cell, selection.candidates(moment), index), index, selection)
        joules += spent
        found = cell.learner.reported(cell.state.parameters, asked, index, selection.reports)
        answers = asked, _with_claims(cell, found, asked, index, selection.reports)
        medium.note(EventKind.REPORT_LOSS, asked, BITS_PER_LOSS)
    chosen = selection.choose(moment, None, gains, answers)
    this = Round(index, chosen.clients)
    this.before = Before(airtime, joules, chosen.score, asked)
    return this


def _reached(cell: Cell, candidates: NDArray[np.int64], index: int) -> NDArray[np.int64]:
    # Candidates that can answer; the server does not wait for the others
    there = cell.faults.reachable(candidates, index, cell.network.streams)
    if cell.faults.battery_j is not None:
        there = there & (cell.state.battery_used_j[candidates] < cell.faults.battery_j)
    return candidates[there]


def _query(
    cell: Cell, asked: NDArray[np.int64], index: int, selection: ClientSelection
) -> Generator[simpy.Event, Any, tuple[NDArray[np.int64], float]]:
    # Broadcast of the model, and one pass over the samples without gradients: who received the model, and joules
    timing, streams, query = cell.timing, cell.network.streams, Round(index, asked)
    cell.reach(query)
    yield cell.broadcast(query)
    asked = asked[query.with_status(Status.PARTICIPATED)]
    samples = cell.network.registry.samples[asked]
    if selection.reports.statistic == "batch_mean":
        samples = np.minimum(samples, cell.learner.training.batch_size)
    if cell.roles is not None:
        samples = np.where(cell.roles.have(asked, Role.FREE_RIDER), 0, samples)
    duration = timing.assessment_time(samples, asked, index, streams)
    yield cell.medium.env.timeout(ticks(float(duration.max(initial=0.0))))
    if timing.switched_capacitance == 0.0:
        return asked, 0.0
    joules = timing.assessment_energy(samples, asked, streams)
    cell.drain(asked, joules)
    return asked, float(joules.sum())


def reported_beside_uploads(
    cell: Cell, selection: ClientSelection, this: Round, heard: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """(n,) losses that the clients at the positions ``heard`` report with their uploads; None by rules without.

    Before the model is stepped: they are those of the model that clients received, the global one or their edge's.
    """
    reports = selection.reports
    if not selection.reads_losses or reports.when != "after":
        return None
    losses, learner = np.full(len(this.clients), np.nan), cell.learner
    clients = this.clients[heard]
    cell.medium.note(EventKind.REPORT_LOSS, clients, BITS_PER_LOSS)
    if reports.statistic == "training_mean":
        stream = cell.network.streams.nodes("selection_noise", this.index, clients)
        losses[heard] = reports.noised(this.train_loss(heard), stream)
    else:
        for positions, model in this.starts or [(heard, cell.state.parameters)]:
            told = np.intersect1d(positions, heard)
            losses[told] = learner.reported(model, this.clients[told], this.index, reports)
    losses[heard] = _with_claims(cell, losses[heard], clients, this.index, reports)
    return losses


def _with_claims(
    cell: Cell, losses: NDArray[np.float64], clients: NDArray[np.int64], index: int, reports: LossReports
) -> NDArray[np.float64]:
    # (n,) reports, of free riders what they claim: they pass no sample through the model
    if cell.roles is None:
        return losses
    idle = cell.roles.have(clients, Role.FREE_RIDER)
    claimed = np.full(int(idle.sum()), claimed_loss(cell.learner.population.num_classes))
    told = losses.copy()
    told[idle] = reports.noised(claimed, cell.network.streams.nodes("selection_noise", index, clients[idle]))
    return told


def loss_release(
    selection: ClientSelection, this: Round, transmitted: NDArray[np.int64], learner: Learner
) -> Release | None:
    """The record of the losses of a round that were reported; None where none were.

    Args:
        selection: of the clients.
        this: the round.
        transmitted: (m,) positions of clients that uploaded anything.
        learner: knows the size of a mini-batch.
    """
    if not selection.reads_losses:
        return None
    asked, reports = this.before.asked, selection.reports
    if reports.noise_std is None:
        told = len(transmitted) > 0 or asked is not None
        return LossReport(this.index, this.clients[transmitted], everyone=asked is not None) if told else None
    if selection.from_outside:  # which of the candidates it might have selected is not known
        return UnvouchedRelease(this.index, this.clients[transmitted], named(selection.rule))
    registry, everyone = selection.network.registry, reports.when == "after"
    clients = np.zeros(0, dtype=np.int64) if asked is None else asked
    planned = registry.occurring_samples if everyone else registry.samples[clients]
    fewest = int(registry.occurring_samples.min())
    known = learner.unvouched is None  # of code from outside that trains only records of what it did are known
    return record_of_reports(reports, this.index, clients, planned if known else None, fewest, learner.training)


def named(rule: Selection) -> str:
    """A selection from outside, in words."""
    return f"the selection {type(rule).__module__}:{type(rule).__qualname__}"


def record_of_reports(
    reports: LossReports,
    index: int,
    clients: NDArray[np.int64],
    planned: NDArray[np.int64] | None,
    fewest: int,
    training: LocalTraining,
) -> LossRelease:
    """The record of the losses of a round, reported with noise.

    Args:
        reports: What is reported, and when.
        index: Of the round.
        clients: (n,) who were asked; nobody where reports come with uploads.
        planned: Samples of clients whose local training would be as it is planned: (n,) of those who were asked, or all
            that occur; None where it is not known.
        fewest: Samples of the registered client that has least.
        training: Of the clients.
    """
    assert reports.noise_std is not None, "reports without noise are no release with a finite cost"
    noise = LossNoise(reports.noise_std, reports.clip, reports.statistic, training.batch_size, fewest)
    plans = None if planned is None else _plans(planned, training)
    return LossRelease(index, clients, noise, reports.when == "after", plans)


def _plans(samples: NDArray[np.int64], training: LocalTraining) -> LocalPlans:
    # Of clients with so many samples
    batch_size = np.minimum(training.batch_size, samples)
    steps = local_steps(samples, training.batch_size, training.epochs, training.steps)
    return LocalPlans(*(tuple(column.tolist()) for column in (samples, batch_size, steps)))
