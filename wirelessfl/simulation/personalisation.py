"""Personal models in a run: when they are trained and tested."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.algorithms import Ditto, FineTune
from wirelessfl.learning.fairness import ClientAccuracies
from wirelessfl.learning.personalisation import PersonalModels, PersonalTraining, Rows, personal_accuracies
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import Role


@dataclass(frozen=True)
class Personalisation:
    """Models of single clients; they stay with the clients, and nothing of them is released.

    Attributes:
        learner: of the global model.
        algorithm: how they are made of it.
        test_owners: (N,) clients of the test samples.
        kept: of clients that took part, where they are kept.
    """

    learner: Learner
    algorithm: Ditto | FineTune
    test_owners: NDArray[np.int64]
    kept: PersonalModels = field(default_factory=PersonalModels)

    def train(self, this: Round, state: SimulationState, heard: NDArray[np.int64]) -> None:
        """Training of the models of the clients at the positions ``heard``, beside that of the model they received.

        Called before the global model is stepped. Free riders train nothing.
        """
        if not isinstance(self.algorithm, Ditto):
            return
        mine = heard if this.roles is None else heard[this.roles[heard] != Role.FREE_RIDER]
        if not len(mine):
            return
        clients, received = this.clients[mine], state.parameters
        before = self.kept.of(clients, received)
        steps = this.steps_of(clients)
        blocks = self._training(this.index).ditto(received, before, self.algorithm.lam, clients, this.index, steps)
        after = {int(clients[at]): row for positions, rows in blocks for at, row in zip(positions, rows, strict=True)}
        self.kept.by_client = {**self.kept.by_client, **after}

    def accuracies(self, state: SimulationState, round_index: int) -> ClientAccuracies | None:
        """Accuracies of the personal models on their own clients' test samples; None where nobody has one."""
        learner = self.learner
        return personal_accuracies(
            learner.model, self._models(state, round_index), learner.population.test, self.test_owners
        )

    def _models(self, state: SimulationState, round_index: int) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        # Numbers and models of the clients that have test samples
        tested = np.unique(self.test_owners[self.test_owners >= 0])
        if isinstance(self.algorithm, Ditto):
            clients = np.intersect1d(tested, self.kept.clients)
            for one in clients.tolist():
                yield np.array([one]), self.kept.by_client[one][None]
            return
        tuned = self._training(round_index).tuned(state.parameters, tested, self.algorithm.steps, self.algorithm.epochs)
        for positions, rows in tuned:
            yield tested[positions], rows

    def _training(self, round_index: int) -> PersonalTraining:
        learner = self.learner
        training = replace(learner.training, learning_rate=learner.learning_rate(round_index))
        return PersonalTraining(
            learner.model, learner.population, training, learner.plan, learner.streams, learner.elsewhere
        )
