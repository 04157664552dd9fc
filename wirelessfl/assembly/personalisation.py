"""Personal models of a scenario's clients."""

from wirelessfl.errors import ScenarioError
from wirelessfl.learning.algorithms import Ditto, FineTune
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.personalisation import Personalisation


def build_personalisation(learner: Learner) -> Personalisation | None:
    """Personal models; None by algorithms without.

    Raises:
        ScenarioError: test samples belong to nobody.
    """
    algorithm, owners = learner.algorithm, learner.population.test_owners
    if not isinstance(algorithm, Ditto | FineTune):
        return None
    if owners is None:
        name = "ditto" if isinstance(algorithm, Ditto) else "fine_tune"
        raise ScenarioError(
            f"training.algorithm.name: found {name} with test samples that belong to no client, on which no personal "
            "model can be tested; allowed: data.test: {fraction: F}, or a dataset with owners"
        )
    return Personalisation(learner, algorithm, owners)
