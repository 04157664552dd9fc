"""Contradictions between the families: values that are allowed one by one, but not together.

Only what the scenario alone can tell; what needs the data (more clients than samples) is checked when they are read.
"""

from wirelessfl.scenario.algorithm import FedNova, Scaffold
from wirelessfl.scenario.array_consistency import array_power_rules
from wirelessfl.scenario.asynchronous_consistency import asynchronous_rules
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.data import ExternalDataset, Synthetic
from wirelessfl.scenario.downlink_consistency import downlink_rules
from wirelessfl.scenario.geography import Hierarchical
from wirelessfl.scenario.mac_consistency import mac_rules
from wirelessfl.scenario.mechanism import ExternalMechanism, GradientNoise, MedianClip, noised_by_server
from wirelessfl.scenario.model import CnnCifar10, CnnMnist, ResNet18
from wirelessfl.scenario.modulation_consistency import modulation_rules
from wirelessfl.scenario.own_data import OwnData
from wirelessfl.scenario.partial_work_consistency import partial_work_rules
from wirelessfl.scenario.partition import ClassesPartition, NaturalPartition
from wirelessfl.scenario.published_data import (
    Adult,
    Cifar10,
    Cifar100,
    EmnistByClass,
    EmnistLetters,
    FashionMnist,
    Kmnist,
    Mnist,
    Svhn,
)
from wirelessfl.scenario.radio_consistency import radio_rules
from wirelessfl.scenario.robust_consistency import robust_rules
from wirelessfl.scenario.role_consistency import role_rules
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.selection import ByChannel, SelectPowerOfChoice
from wirelessfl.scenario.slot_group_consistency import slot_group_rules
from wirelessfl.scenario.spatial_consistency import spatial_rules
from wirelessfl.scenario.timing import Quorum
from wirelessfl.scenario.uplink import (
    Ideal,
    jammer_of,
    transmits_in_watts,
)
from wirelessfl.scenario.uplink_consistency import uplink_rules


def scenario_rules(scenario: Sections) -> list[Rule]:
    """Rules between the sections."""
    of_the_radio = (downlink_rules, array_power_rules, spatial_rules, mac_rules, modulation_rules, radio_rules)
    of_clients = (role_rules, robust_rules, slot_group_rules, partial_work_rules)
    own = (_data, _model, _clients, _energy, _mechanism, asynchronous_rules, _profile)
    return [rule for rules_of in (*own, uplink_rules, *of_the_radio, *of_clients) for rule in rules_of(scenario)]


def _data(scenario: Sections) -> list[Rule]:
    dataset, partition, limit = scenario.data.dataset, scenario.data.partition, scenario.data.limit
    clients, natural = scenario.clients.count, isinstance(partition, NaturalPartition)
    rules: list[Rule] = [
        (
            isinstance(dataset, Adult) and dataset.source == "auto",
            "data.dataset.source",
            "auto",
            "files or synthetic here; load_scenario replaces auto",
        ),
        (
            natural and not isinstance(dataset, Synthetic | OwnData | ExternalDataset),
            "data.partition.scheme",
            f"natural with the dataset {dataset.name}, whose samples have no owners",
            "iid | classes | dirichlet | sizes, or the dataset synthetic, leaf, or one of your own with owners",
        ),
        (
            natural and isinstance(dataset, Synthetic) and limit is not None,
            "data.limit",
            f"{limit} with partition natural",
            "null: each client's data are made on demand",
        ),
        (
            not natural and limit is not None and limit < clients,
            "data.limit",
            f"{limit} samples for {clients} clients",
            f"at least {clients}, one for each client",
        ),
    ]
    if isinstance(partition, ClassesPartition) and not isinstance(dataset, OwnData | ExternalDataset):
        found, classes = partition.classes_per_client, dataset.num_classes
        allowed = f"at most {classes}, the classes of {dataset.name} in use"
        rules.append((found > classes, "data.partition.classes_per_client", str(found), allowed))
    return rules


def _model(scenario: Sections) -> list[Rule]:
    model, dataset = scenario.model, scenario.data.dataset
    if isinstance(dataset, OwnData | ExternalDataset):  # whose shape is known once they are read
        return []
    grey = isinstance(dataset, Mnist | FashionMnist | Kmnist | EmnistLetters | EmnistByClass)
    colour = isinstance(dataset, Cifar10 | Cifar100 | Svhn)
    small = "mnist | fashion_mnist | kmnist | emnist_letters | emnist_byclass"
    needs = (
        (isinstance(model, CnnMnist) and not grey, small),
        (isinstance(model, CnnCifar10) and not colour, "cifar10 | cifar100 | svhn"),
        (
            isinstance(model, ResNet18) and isinstance(dataset, Synthetic | Adult),
            f"digits | {small} | cifar10 | cifar100 | svhn",
        ),
    )
    found = f"{model.name} with the dataset {dataset.name}"
    return [(broken, "model.name", found, f"with it the datasets {sets}") for broken, sets in needs]


def _clients(scenario: Sections) -> list[Rule]:
    clients, active, wait_for = scenario.clients.count, scenario.clients.most, scenario.timing.wait_for
    wanted = wait_for.count if isinstance(wait_for, Quorum) else None
    jammer, colluding = jammer_of(scenario.uplink), scenario.privacy.colluding
    selection = scenario.clients.selection
    drawn = selection.candidates if isinstance(selection, SelectPowerOfChoice) else active
    asks = isinstance(selection, SelectPowerOfChoice) and selection.loss != "last"
    return [
        (
            drawn < active,
            "clients.selection.candidates",
            str(drawn),
            f"at least {active}, the value of clients.selection.count",
        ),
        (
            active <= clients < drawn,
            "clients.selection.candidates",
            str(drawn),
            f"at most {clients}, the value of clients.count",
        ),
        (
            asks and isinstance(scenario.topology, Hierarchical),
            "clients.selection.loss",
            f"{getattr(selection, 'loss', None)} with topology.kind: hierarchical",
            "last: the clients of an edge train a model of its own, which no query evaluates",
        ),
        (
            isinstance(selection, ByChannel) and isinstance(scenario.uplink, Ideal),
            "clients.selection.scheme",
            f"{selection.scheme} with uplink.kind: ideal, which has no channels",
            "uplink.kind: over_the_air | digital | secure_aggregation, or a rule that does not follow gains",
        ),
        (active > clients, "clients.selection.count", str(active), f"at most {clients}, the value of clients.count"),
        (
            wanted is not None and wanted > active,
            "timing.wait_for.count",
            str(wanted),
            f"at most {active}, the clients of a round",
        ),
        (
            colluding >= clients,
            "privacy.colluding",
            str(colluding),
            f"less than {clients}: at least one client must be honest",
        ),
        (
            jammer is not None and jammer.role == "rotating" and active < 2,
            "uplink.jammer.role",
            f"rotating with {active} client in a round",
            "external, or at least 2 clients",
        ),
    ]


def _energy(scenario: Sections) -> list[Rule]:
    unknown = not transmits_in_watts(scenario.uplink)
    allowed = (
        "null; a value needs a radio uplink with uplink.tx_power_dbm, because joules follow only from powers in watts"
    )
    limits = {"faults.battery_j": scenario.faults.battery_j, "stop.energy_j": scenario.stop.energy_j}
    return [
        (unknown and joules is not None, key, f"{joules} without a transmit power", allowed)
        for key, joules in limits.items()
    ]


def _mechanism(scenario: Sections) -> list[Rule]:
    mechanism, selection, uplink = scenario.training.privacy, scenario.clients.selection, scenario.uplink
    if not isinstance(mechanism, GradientNoise | ExternalMechanism):
        return []
    central, data, algorithm = noised_by_server(mechanism), scenario.data, scenario.training.algorithm
    on_demand = isinstance(data.dataset, Synthetic) and isinstance(data.partition, NaturalPartition)
    return [
        (
            central and not isinstance(uplink, Ideal),
            "training.privacy.unit",
            f"client with uplink.kind: {uplink.kind}",
            "uplink.kind: ideal, where a trusted server adds the noise; over the air channel and jammer add it",
        ),
        (
            central and scenario.clients.rate is None,
            "training.privacy.unit",
            f"client with the selection {selection.scheme}",
            "sample, or the selection all | uniform | poisson, whose weights and noise follow a known probability",
        ),
        (
            central and isinstance(algorithm, FedNova),
            "training.algorithm.name",
            "fednova with training.privacy.unit: client, whose noise hides whose steps the server would weigh with",
            "another algorithm",
        ),
        (
            central and isinstance(algorithm, Scaffold) and algorithm.payload == 1,
            "training.algorithm.payload",
            "1 with training.privacy.unit: client, whose noise hides who came and how many steps they took",
            "2",
        ),
        (
            central and uplink.clip is not None,
            "uplink.clip",
            f"{uplink.clip} with training.privacy.unit: client",
            "null; training.privacy.clip is used instead",
        ),
        (
            isinstance(mechanism.clipping, MedianClip) and on_demand,
            "training.privacy.clipping.name",
            "median with the synthetic set in its natural partition, where no common pool has public samples",
            "another rule, or another partition",
        ),
    ]


def _profile(scenario: Sections) -> list[Rule]:
    profile = scenario.channel.profile
    allowed = "null here; load_scenario replaces a profile by its keys"
    return [(profile is not None, "channel.profile", str(profile), allowed)]
