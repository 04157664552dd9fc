"""Contradictions between families, and what looks like one and is not."""

from __future__ import annotations

import pytest

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario, parse_scenario

SYNTHETIC = "data: {dataset: {name: synthetic}, partition: {scheme: natural}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {partition: {scheme: natural}}", "f:2: data.partition.scheme: found natural with the dataset digits"),
        (f"{SYNTHETIC}, limit: 9}}", "f:2: data.limit: found 9 with partition natural; allowed: null"),
        ("data: {limit: 49}", "f:2: data.limit: found 49 samples for 50 clients; allowed: at least 50"),
        (
            "data: {dataset: {classes: [0, 1]}, partition: {scheme: classes, classes_per_client: 3}}",
            "f:2: data.partition.classes_per_client: found 3; allowed: at most 2, the classes of digits in use",
        ),
        (
            "data: {dataset: {name: adult}}",
            "f:2: data.partition.classes_per_client: found 5, by default; allowed: at most 2, the classes of adult",
        ),
        ("model: {name: cnn_mnist}", "f:2: model.name: found cnn_mnist with the dataset digits; allowed: with it the"),
        (
            "model: {name: cnn_cifar10}\ndata: {dataset: {name: mnist}}",
            "f:2: model.name: found cnn_cifar10 with the dataset mnist; allowed: with it the datasets cifar10",
        ),
        (
            f"model: {{name: resnet18_gn}}\n{SYNTHETIC}}}",
            "f:2: model.name: found resnet18_gn with the dataset synthetic",
        ),
        (
            "clients:\n  count: 5\n  selection: {scheme: uniform, count: 6}",
            "f:4: clients.selection.count: found 6; allowed: at most 5, the value of clients.count",
        ),
        (
            "clients: {count: 5, selection: {scheme: uniform}}",
            "clients.selection.count: found 10, by default; allowed: at most 5",
        ),
        ("timing: {wait_for: {count: 51}}", "timing.wait_for.count: found 51; allowed: at most 50"),
        (
            "timing: {wait_for: {count: 11}}\nclients: {selection: {scheme: uniform, count: 10}}",
            "f:2: timing.wait_for.count: found 11; allowed: at most 10, the clients of a round",
        ),
        ("privacy: {colluding: 50}", "privacy.colluding: found 50; allowed: less than 50"),
        (
            "clients: {count: 1}\nuplink: {jammer: {role: rotating}}",
            "f:3: uplink.jammer.role: found rotating with 1 client in a round; allowed: external, or at least 2",
        ),
        (
            "clients: {selection: {scheme: uniform, count: 1}}\nuplink: {jammer: {role: rotating}}",
            "found rotating with 1 client in a round",
        ),
        (
            "faults: {battery_j: 3}",
            "faults.battery_j: found 3.0 without a transmit power; allowed: null; a value needs",
        ),
        (
            "faults: {battery_j: 3}\nuplink: {kind: ideal}",
            "uplink.tx_power_dbm, because joules follow only from powers in watts",
        ),
        ("stop: {energy_j: 3}", "stop.energy_j: found 3.0 without a transmit power"),
        (
            "privacy: {adversary: individual}\nuplink: {jammer: {calibration: exact}}",
            "f:3: uplink.jammer.calibration: found exact with privacy.adversary individual",
        ),
    ],
)
def test_contradiction(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(f"name: x\n{text}", "f")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"{SYNTHETIC}}}",
        "data: {dataset: {name: synthetic}}",
        "data: {limit: 50}",
        "data: {dataset: {name: adult}, partition: {scheme: iid}}",
        "data: {dataset: {name: emnist_byclass, classes: [36, 37, 38, 39, 40]}}\nmodel: {name: cnn_mnist}",
        "data: {dataset: {name: cifar10}}\nmodel: {name: resnet18_gn}",
        "data: {dataset: {name: adult}, partition: {scheme: iid}}\nmodel: {name: 'a:b'}",
        "clients: {count: 5, selection: {scheme: uniform, count: 5}}",
        "clients: {count: 5, selection: {scheme: poisson}}\ntiming: {wait_for: {count: 5}}",
        "clients: {count: 2}\nuplink: {jammer: {role: rotating}}",
        "clients: {count: 1}\nuplink: {jammer: {role: external}}",
        "faults: {battery_j: 3}\nuplink: {tx_power_dbm: 23}",
        "uplink: {iq_packing: true, jammer: {}}",
        "privacy: {adversary: individual}\nuplink: {jammer: {}}",
        "faults: {fade_threshold: 0.1}\nuplink: {kind: ideal}",
    ],
)
def test_no_contradiction(text: str) -> None:
    parse_scenario(f"name: x\n{text}")


def test_several_contradictions_are_all_said() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario("name: x\nfaults: {battery_j: 1}\nstop: {energy_j: 1}\nprivacy: {colluding: 99}")
    assert len(str(caught.value).splitlines()) == 3


def test_a_profile_in_python_is_refused_where_nothing_would_read_it() -> None:
    with pytest.raises(ValueError, match="load_scenario replaces a profile by its keys"):
        Scenario.model_validate({"name": "x", "channel": {"profile": "ideal"}})
