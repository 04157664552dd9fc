"""Contradictions between the families: values that are fine one by one and not together.

Only what the scenario alone can tell; what needs the data (more clients than samples) is checked when they are read.
"""

from collections.abc import Iterator

from wirelessfl.scenario.clients import ExternalSelection, SelectPoisson
from wirelessfl.scenario.data import (
    Adult,
    Cifar10,
    ClassesPartition,
    EmnistByClass,
    EmnistLetters,
    ExternalDataset,
    FashionMnist,
    Mnist,
    NaturalPartition,
    Synthetic,
)
from wirelessfl.scenario.mechanism import ExternalMechanism, GradientNoise, MedianClip
from wirelessfl.scenario.model import CnnCifar10, CnnMnist, ResNet18
from wirelessfl.scenario.radio_consistency import find_radio_contradictions
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Quorum
from wirelessfl.scenario.uplink import (
    Digital,
    DigitalLink,
    ExternalCodec,
    Ideal,
    OverTheAir,
    SecureAggregation,
    StageDropout,
)

Contradiction = tuple[str, str, str]
"""Key path, what was found, what is allowed."""


def find_contradictions(scenario: Sections) -> Iterator[Contradiction]:
    """Everything in the scenario that does not go together."""
    yield from _data(scenario)
    yield from _model(scenario)
    yield from _clients(scenario)
    yield from _energy(scenario)
    yield from _jammer(scenario)
    yield from _codec(scenario)
    yield from _secure_aggregation(scenario)
    yield from _mechanism(scenario)
    yield from find_radio_contradictions(scenario)
    if scenario.channel.profile is not None:
        yield "channel.profile", scenario.channel.profile, "null here; load_scenario replaces a profile by its keys"


def _data(scenario: Sections) -> Iterator[Contradiction]:
    data, clients = scenario.data, scenario.clients.count
    if isinstance(data.dataset, Adult) and data.dataset.source == "auto":
        yield "data.dataset.source", "auto", "files or synthetic here; load_scenario decides which"
    natural = isinstance(data.partition, NaturalPartition)
    if natural and not isinstance(data.dataset, Synthetic | ExternalDataset):
        yield (
            "data.partition.scheme",
            f"natural with the dataset {data.dataset.name}, which comes undivided",
            "iid | classes | dirichlet | sizes, or the dataset synthetic, or one of your own that knows its owners",
        )
    if natural and isinstance(data.dataset, Synthetic) and data.limit is not None:
        yield "data.limit", f"{data.limit} with partition natural", "null: each client's data are made on demand"
    if not natural and data.limit is not None and data.limit < clients:
        yield "data.limit", f"{data.limit} samples for {clients} clients", f"at least {clients}, one for each client"
    if isinstance(data.partition, ClassesPartition) and not isinstance(data.dataset, ExternalDataset):
        found, classes = data.partition.classes_per_client, data.dataset.num_classes
        if found > classes:
            allowed = f"at most {classes}, the classes of {data.dataset.name} in use"
            yield "data.partition.classes_per_client", str(found), allowed


def _model(scenario: Sections) -> Iterator[Contradiction]:
    model, dataset = scenario.model, scenario.data.dataset
    grey = isinstance(dataset, Mnist | FashionMnist | EmnistLetters | EmnistByClass)
    needs = ""
    if isinstance(model, CnnMnist) and not grey:
        needs = "mnist | fashion_mnist | emnist_letters | emnist_byclass"
    elif isinstance(model, CnnCifar10) and not isinstance(dataset, Cifar10):
        needs = "cifar10"
    elif isinstance(model, ResNet18) and isinstance(dataset, Synthetic | Adult):
        needs = "digits | mnist | fashion_mnist | emnist_letters | emnist_byclass | cifar10"
    if needs:
        yield "model.name", f"{model.name} with the dataset {dataset.name}", f"with it the datasets {needs}"


def _clients(scenario: Sections) -> Iterator[Contradiction]:
    clients, active = scenario.clients.count, scenario.clients.most
    if active > clients:
        yield "clients.selection.count", str(active), f"at most {clients}, the value of clients.count"
    wait_for = scenario.timing.wait_for
    if isinstance(wait_for, Quorum) and wait_for.count is not None and wait_for.count > active:
        yield "timing.wait_for.count", str(wait_for.count), f"at most {active}, the clients of a round"
    if scenario.privacy.colluding >= clients:
        yield (
            "privacy.colluding",
            str(scenario.privacy.colluding),
            f"less than {clients}: somebody among the clients must be honest",
        )
    uplink = scenario.uplink
    rotating = isinstance(uplink, OverTheAir) and uplink.jammer is not None and uplink.jammer.role == "rotating"
    if rotating and active < 2:
        yield "uplink.jammer.role", f"rotating with {active} client in a round", "external, or at least 2 clients"


def _energy(scenario: Sections) -> Iterator[Contradiction]:
    uplink = scenario.uplink
    if isinstance(uplink, OverTheAir | DigitalLink) and uplink.tx_power_dbm is not None:
        return
    why = "needs a radio uplink with uplink.tx_power_dbm, for joules are known where watts are"
    if scenario.faults.battery_j is not None:
        yield "faults.battery_j", f"{scenario.faults.battery_j} without a transmit power", f"null; a value {why}"
    if scenario.stop.energy_j is not None:
        yield "stop.energy_j", f"{scenario.stop.energy_j} without a transmit power", f"null; a value {why}"


def _jammer(scenario: Sections) -> Iterator[Contradiction]:
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir) or uplink.jammer is None:
        return
    if scenario.privacy.adversary == "individual" and uplink.jammer.calibration == "exact":
        yield (
            "uplink.jammer.calibration",
            "exact with privacy.adversary individual, before whom no jamming hides a single upload",
            "theorem, or the adversary observer | server",
        )


def _codec(scenario: Sections) -> Iterator[Contradiction]:
    uplink = scenario.uplink
    if not isinstance(uplink, DigitalLink) or not isinstance(uplink.codec, ExternalCodec):
        return
    if isinstance(uplink, SecureAggregation):
        found = f"{uplink.codec.name} with secure_aggregation, whose masks cancel in a sum of numbers"
        yield "uplink.codec.name", found, "none, or uplink.kind: digital; encoded uploads are not known to add up"
    elif isinstance(uplink, Digital) and uplink.bits is not None:
        yield "uplink.bits", f"{uplink.bits} with the codec {uplink.codec.name}", "null: a codec decides its bits"


def _secure_aggregation(scenario: Sections) -> Iterator[Contradiction]:
    uplink = scenario.uplink
    if not isinstance(uplink, SecureAggregation):
        return
    clients = scenario.clients.most
    if clients < 2:
        yield "uplink.kind", f"secure_aggregation with {clients} client in a round", "at least 2, or another kind"
    # The coarsest encoding has one step a client; the sum of all must not pass the middle of the ring.
    needed = clients.bit_length() + 1
    if uplink.bits < needed:
        yield (
            "uplink.bits",
            f"{uplink.bits}, in which a sum of {clients} clients could overflow",
            f"at least {needed}; every further bit halves the steps",
        )
    if uplink.max_samples is not None and not uplink.hide_weights:
        yield "uplink.max_samples", f"{uplink.max_samples} with hide_weights: false", "null, or hide_weights: true"
    if uplink.protocol == "pairwise_prf":
        yield from _pairwise_prf(uplink)
    else:
        yield from _share_holders(scenario, uplink, clients)


def _pairwise_prf(uplink: SecureAggregation) -> Iterator[Contradiction]:
    # Contradictions of `pairwise_prf`, which has neither shares nor a graph, and one stage a round.
    for name in ("threshold", "neighbours"):
        value = getattr(uplink, name)
        if value is not None:
            yield f"uplink.{name}", f"{value} with pairwise_prf, which needs everybody", "null"
    if uplink.dropout != StageDropout(masked_input=uplink.dropout.masked_input):
        yield "uplink.dropout", "stages that pairwise_prf does not have", "masked_input alone"


def _share_holders(scenario: Sections, uplink: SecureAggregation, clients: int) -> Iterator[Contradiction]:
    # Thresholds that are too low to be safe, or too high to be met.
    holders = clients
    if uplink.protocol == "secagg" and uplink.neighbours is not None:
        yield "uplink.neighbours", f"{uplink.neighbours} with secagg, where all are", "null, or protocol: secagg_plus"
    if uplink.protocol == "secagg_plus":
        if uplink.neighbours is None:
            if uplink.threshold is not None:
                yield "uplink.threshold", f"{uplink.threshold} without neighbours", "null, or neighbours beside it"
            return
        holders = uplink.neighbours + 1
        if holders > clients and not isinstance(scenario.clients.selection, SelectPoisson):
            yield "uplink.neighbours", str(uplink.neighbours), f"at most {clients - 1}, the others of a round"
    least = holders // 2 + 1
    if uplink.threshold is not None and not least <= uplink.threshold <= holders:
        yield (
            "uplink.threshold",
            f"{uplink.threshold} of {holders} share holders",
            f"{least} to {holders}: half of them could be asked for one secret of a client, half for the other",
        )


def _mechanism(scenario: Sections) -> Iterator[Contradiction]:
    mechanism = scenario.training.privacy
    if not isinstance(mechanism, GradientNoise | ExternalMechanism):
        return
    if mechanism.unit == "client" and not isinstance(scenario.uplink, Ideal):
        yield (
            "training.privacy.unit",
            f"client with uplink.kind: {scenario.uplink.kind}",
            "uplink.kind: ideal, where a trusted server adds the noise; over the air channel and jammer add it",
        )
    if mechanism.unit == "client" and isinstance(scenario.clients.selection, ExternalSelection):
        yield (
            "training.privacy.unit",
            f"client with the selection {scenario.clients.selection.scheme}",
            "sample, or the selection all | uniform | poisson, whose weights and noise follow a known probability",
        )
    if mechanism.unit == "client" and scenario.uplink.clip is not None:
        yield "uplink.clip", f"{scenario.uplink.clip} with training.privacy.unit: client", "null; privacy.clip clips"
    on_demand = isinstance(scenario.data.dataset, Synthetic) and isinstance(scenario.data.partition, NaturalPartition)
    if isinstance(mechanism.clipping, MedianClip) and on_demand:
        yield (
            "training.privacy.clipping.name",
            "median with the synthetic set in its natural partition, where no common pool has public samples",
            "another rule, or another partition",
        )
