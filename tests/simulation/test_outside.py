"""Members of the families of learning and privacy from outside, and what the ledger says of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.outside import HERE
from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import gaussian_epsilon

IDEAL: dict[str, Any] = {"uplink": {"kind": "ideal"}}
OWN_DATA: dict[str, Any] = {"data": {"dataset": {"name": f"{HERE}:owned"}, "partition": {"scheme": "natural"}}}


def own_data(name: str, scheme: str, **options: Any) -> dict[str, Any]:
    dataset = {"name": f"{HERE}:{name}", "options": options}
    return {"data": {"dataset": dataset, "partition": {"scheme": scheme}}}


def private(name: str, **keys: Any) -> dict[str, Any]:
    return {
        "training__privacy": {"mechanism": f"{HERE}:{name}", "options": {"multiplier": 1.3}, **keys},
        "training__batch_size": 20,  # of 20 samples: full batches
    }


# ---------------------------------------------------------------------------- data, models


def test_natural_partition_of_ones_own_dataset() -> None:
    """Client k holds what the k-th owner owns: 15 of 60 samples each."""
    simulation, _, _ = run(small(**IDEAL, **OWN_DATA, clients__count=4))
    learner: Any = simulation.deployment.learner
    np.testing.assert_array_equal(learner.population.sizes, [15, 15, 15, 15])
    owners = learner.population.dataset.owners.reshape(4, 15)
    np.testing.assert_array_equal(owners, np.repeat([[0], [10], [20], [30]], 15, axis=1))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({**OWN_DATA, "clients__count": 5}, "found 5 clients; allowed: at most 4, the natural owners"),
        (own_data("owned", "natural", owner=3), "refuses its options"),
        (own_data("undivided", "natural"), "found natural with a dataset that does not say who its samples belong to"),
        (own_data("mislabelled", "iid"), "labels 0 to 5 for 2 classes"),
        (own_data("misowned", "natural"), r"owners have shape \(7,\)"),
        ({"data__partition": {"scheme": f"{HERE}:OneForAll"}}, "rows must be different numbers from 0 to 119"),
        ({"data__partition": {"scheme": f"{HERE}:Silent"}}, "is no PartitionRule: found a class without divide"),
        ({"training__optimizer": {"name": f"{HERE}:RoundRobin"}}, "is no Optimizer: found a class without st"),
        ({"training__privacy": {"mechanism": f"{HERE}:RoundRobin"}}, "is no NoiseMechanism: found a class without add"),
        (private("Silent", clipping={"name": f"{HERE}:RoundRobin"}), "is no ClippingRule: found a class without clip"),
        (private("Silent", clipping={"name": f"{HERE}:Odd"}), "its law is a ForeignLaw; allowed: one of FixedClip"),
        (private("NoRecord"), "release gives a str; allowed: a Release"),
        (private("OtherClients"), "release gives a record of round 1 and clients .*; allowed: round 1 and clients"),
        ({"training__privacy": {"mechanism": f"{HERE}:Silent"}}, "missing a required argument: 'multiplier'"),
        (private("Silent", unit="client"), "found client"),
        (private("Silent", clipping={"name": "per_layer"}), "per_layer with a mechanism from outside"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words) as refusal:
        run(small(**{**IDEAL, **overrides}))
    assert getattr(refusal.value, "exit_code", None) == 2


def test_a_partition_of_ones_own() -> None:
    simulation, _, _ = run(small(**IDEAL, data__partition={"scheme": f"{HERE}:RoundRobin", "options": {"first": 1}}))
    learner: Any = simulation.deployment.learner
    np.testing.assert_array_equal(learner.population.sizes, [20] * 6)


def test_a_model_that_is_a_class() -> None:
    simulation, _, _ = run(small(**IDEAL, model={"name": f"{HERE}:Linear", "options": {"bias": False}}))
    assert simulation.deployment.learner.dimension == 640


# ---------------------------------------------------------------------------- what the ledger vouches for


OTA: dict[str, Any] = {"uplink": {"kind": "over_the_air", "snr_db": 10}}
SECAGG: dict[str, Any] = {"uplink": {"kind": "secure_aggregation", "protocol": "secagg"}}
SIGNS = {"training__optimizer": {"name": f"{HERE}:Signs", "lr": 0.01}}


@pytest.mark.parametrize("uplink", [IDEAL, OTA, SECAGG])
@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (SIGNS, rf"training.optimizer.name ({HERE}:Signs) is code from outside that sees private data"),
        (private("Silent"), f"the noise mechanism {HERE}:Silent is code from outside"),
        (
            {"training__privacy": {"mechanism": "gaussian", "clipping": {"name": f"{HERE}:Halving"}}},
            "the clipping rule is code from outside whose law does not say what its norm reveals",
        ),
    ],
)
def test_what_nobody_vouches_for_is_infinite(uplink: dict[str, Any], members: dict[str, Any], reason: str) -> None:
    simulation, rounds, _ = run(small(**uplink, **members))
    assert rounds[-1].values["epsilon_accounted"] == math.inf
    assert rounds[-1].values["epsilon_published"] == math.inf
    assert any(reason in sentence for sentence in simulation.ledger.why_different())


@pytest.mark.parametrize("uplink", [IDEAL, OTA, SECAGG])
@pytest.mark.parametrize("members", [
    private("Recorded", sampling="shuffle"),
    private("OwnRelease"),
    private("Recorded", sampling="shuffle", clipping={"name": f"{HERE}:Stated"}),
    {**private("Recorded", sampling="shuffle"), **SIGNS},
])  # fmt: skip
def test_a_release_of_its_own_counts_alone(uplink: dict[str, Any], members: dict[str, Any]) -> None:
    """One full batch a round at multiplier 1.3, three rounds: μ² = 3/1.3²; the noise of the channel earns nothing."""
    _, rounds, _ = run(small(**uplink, **members))
    expected = float(gaussian_epsilon(math.sqrt(3) / 1.3, 1e-5))
    assert rounds[-1].values["epsilon_accounted"] == pytest.approx(expected, rel=1e-9)


def test_for_clients_only_a_release_that_says_so_counts() -> None:
    recorded = run(small(**IDEAL, **private("Recorded"), privacy__unit="client"))[1][-1].values
    own = run(small(**IDEAL, **private("OwnRelease"), privacy__unit="client"))[1][-1].values
    assert recorded["epsilon_accounted"] == math.inf
    assert own["epsilon_accounted"] == pytest.approx(float(gaussian_epsilon(math.sqrt(3) / 1.3, 1e-5)), rel=1e-9)


def test_an_optimizer_of_ones_own_behind_noise_of_the_package_is_post_processing() -> None:
    plain = {"training__privacy": {"mechanism": "gaussian", "noise_multiplier": 1.3}}
    with_sgd = run(small(**IDEAL, **plain))[1][-1].values["epsilon_accounted"]
    assert run(small(**IDEAL, **plain, **SIGNS))[1][-1].values["epsilon_accounted"] == with_sgd


def test_an_error_of_theirs_names_the_place() -> None:
    with pytest.raises(ScenarioError, match="refuses its options"):
        run(small(**IDEAL, training__optimizer={"name": f"{HERE}:Signs", "options": {"scales": 1}}))
