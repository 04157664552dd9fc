"""The limits that end a run, and since when it has diverged."""

from dataclasses import dataclass

import numpy as np

from wirelessfl.simulation.records import Round
from wirelessfl.simulation.state import SimulationState


@dataclass(frozen=True)
class StopRules:
    """Limits that end a run; the first reached counts.

    Where the test data belong to no client none of them reads private data, so that the number of rounds tells nothing
    beyond what is accounted for: accuracy is a function of the released model and of the test data, and the others are
    public; simulated time tells who was selected, so that with it a secret selection amplifies nothing
    (``assembly.mechanism``).

    Attributes:
        rounds: M.
        accuracy: test accuracy, or None.
        epsilon: accounted ε, or None.
        sim_time_s: simulated seconds, or None.
        energy_j: joules by public bounds, or None.
        diverged: whether a run ends once its global model or the test loss of it is not finite. Updates that are not
            finite are the clients' private data and end nothing, and nor does the loss of test data of clients.
        test_is_public: whether the test data belong to no client.
    """

    rounds: int
    accuracy: float | None = None
    epsilon: float | None = None
    sim_time_s: float | None = None
    energy_j: float | None = None
    diverged: bool = True
    test_is_public: bool = True

    @property
    def reads_clients_data(self) -> bool:
        """Whether the number of rounds follows the clients' own data."""
        return self.accuracy is not None and not self.test_is_public

    def reached_by_spending(
        self, rounds: int, epsilon_accounted: float, sim_time_s: float, energy_j: float
    ) -> list[str]:
        """Keys of the limits that end a run which has spent this much; NaN reaches no limit."""
        spent = {
            "rounds": (rounds, self.rounds),
            "stop.epsilon": (epsilon_accounted, self.epsilon),
            "stop.sim_time_s": (sim_time_s, self.sim_time_s),
            "stop.energy_j": (energy_j, self.energy_j),
        }
        return [key for key, (value, limit) in spent.items() if limit is not None and value >= limit]

    def reached_by_release(self, this: Round, state: SimulationState) -> list[str]:
        """Keys of the limits that end a run with this round because of what it has released."""
        accurate = self.accuracy is not None and this.server.test_accuracy >= self.accuracy
        lost = state.diverged_in > 0 if self.test_is_public else not this.model_is_finite
        reached = {"stop.accuracy": accurate, "stop.diverged": self.diverged and lost}
        return [key for key, ends in reached.items() if ends]


def diverged_in(this: Round, state: SimulationState) -> int:
    """The round since which the released model, or its loss on the test set, is not finite; 0 where both are."""
    evaluated = not np.isnan(this.server.test_accuracy)
    finite = this.model_is_finite and not (evaluated and not np.isfinite(this.server.test_loss))
    return 0 if finite else state.diverged_in or this.index


def unlearnt_since(this: Round, state: SimulationState) -> int:
    """The round since which no received update was finite; 0 where one was, and unchanged where none was received."""
    received = sum(len(record.positions) for record in this.training)
    if received == 0:
        return state.unlearnt_since
    return (state.unlearnt_since or this.index) if this.not_finite >= received else 0
