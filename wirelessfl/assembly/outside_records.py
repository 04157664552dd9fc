"""Records of privacy that code from outside leaves, and what no record can be left of."""

from collections.abc import Callable
from typing import Any

from wirelessfl import plugins
from wirelessfl.assembly.learning import build_algorithm
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import Release, settings
from wirelessfl.privacy.releases import PARTS
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import External
from wirelessfl.scenario.mechanism import NoMechanism, Zcdp
from wirelessfl.simulation.local_privacy import LocalPrivacy


def check_records(private: LocalPrivacy, records: Callable[[], tuple[Release, ...]]) -> None:
    """Checks that the ledger and a trace can hold what a clipping rule and a noise mechanism leave.

    Args:
        private: with one of them, or both, from outside.
        records: the records of a round.

    Raises:
        ScenarioError: they leave something else.
    """
    key = "training.privacy"
    try:
        law = private.gradients.clipping.law()
        if type(law) not in PARTS:
            allowed = ", ".join(part.__name__ for part in PARTS if part.__name__.endswith("Clip"))
            raise ScenarioError(f"{key}.clipping: its law is a {type(law).__name__}; allowed: one of {allowed}")
        for release in records():
            settings(release)
    except (TypeError, ValueError) as error:
        place = plugins.place_of(error)
        raise ScenarioError(f"{key}: {f'{place}: ' if place else ''}it leaves no record: {error}") from error


def unvouched(scenario: Scenario) -> str | None:
    """The code from outside that sees private data, in words; None without any.

    Whatever it does with them, the noise of the uplink is not calibrated to: a client's update may then follow the
    data of others. What such code costs only a release of its own can say.
    """
    training = scenario.training
    parts: dict[str, Any] = {
        "training.optimizer.name": training.optimizer,
        "training.privacy.mechanism": training.privacy,
    }
    if not isinstance(training.privacy, NoMechanism | Zcdp):
        parts["training.privacy.clipping.name"] = training.privacy.clipping
    if build_algorithm(scenario).facts().client_side:
        parts["training.algorithm.name"] = training.algorithm
    named = [f"{key} ({part.reference})" for key, part in parts.items() if isinstance(part, External)]
    return " with ".join(named) or None
