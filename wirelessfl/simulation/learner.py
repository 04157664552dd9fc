"""The learning side of the simulation: trains the cohort that is heard, updates and tests the global model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning import (
    AggregationRule,
    CohortBlock,
    ExecutionPlan,
    FlatModel,
    LocalTraining,
    Population,
    evaluate,
    train_cohort,
)
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class Learner:
    """Model, data and training of a run.

    Attributes:
        model: the network as a function of one flat parameter vector.
        population: the clients' data and the test set.
        training: the clients' local training.
        rule: how the server turns an aggregate into the next model.
        plan: device, threads, chunk and precision; recorded, so that a run can be repeated bit for bit.
        streams: randomness of the run.
        evaluate_every: rounds between two evaluations.
        rounds: number of rounds; the last one is always evaluated.
        checkpoint: called between blocks of clients; may raise to stop a round in flight.
    """

    model: FlatModel
    population: Population
    training: LocalTraining
    rule: AggregationRule
    plan: ExecutionPlan
    streams: Streams
    evaluate_every: int
    rounds: int
    checkpoint: Callable[[], None]

    @property
    def dimension(self) -> int:
        """d, the number of trainable parameters."""
        return self.model.dimension

    def train(
        self, parameters: NDArray[np.float32], clients: NDArray[np.int64], round_index: int
    ) -> Iterator[CohortBlock]:
        """Local training of ``clients`` from the global model, in fixed blocks."""
        start = torch.from_numpy(parameters).to(self.plan.device)
        blocks = train_cohort(
            self.model, start, self.population, clients, self.training, self.streams, round_index, self.plan
        )
        for block in blocks:
            self.checkpoint()
            yield block

    def update(
        self, parameters: NDArray[np.float32], aggregate: NDArray[np.float64], round_index: int
    ) -> NDArray[np.float32]:
        """The next global model."""
        return self.rule.apply(parameters, aggregate, round_index)

    def evaluate(self, parameters: NDArray[np.float32], round_index: int) -> tuple[float, float]:
        """Test accuracy and loss; NaN in rounds that are not evaluated."""
        if round_index % self.evaluate_every and round_index != self.rounds:
            return math.nan, math.nan
        return evaluate(self.model, torch.from_numpy(parameters), self.population.test, self.plan)
