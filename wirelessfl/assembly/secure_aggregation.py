"""Secure aggregation of a scenario."""

from typing import assert_never

from wirelessfl.assembly.digital import build_digital_links
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.network import Network
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import SecureAggregation
from wirelessfl.secagg import (
    FLOAT_ROOM,
    CompleteGraph,
    FixedPoint,
    HiddenWeights,
    PublicWeights,
    SparseGraph,
    SumEncoding,
)
from wirelessfl.simulation.uplinks.secure_aggregation import PairwisePrf, SecretSharing, SecureUplink


def build_secure_uplink(
    scenario: Scenario, uplink: SecureAggregation, network: Network, dimension: int
) -> SecureUplink:
    """The uplink of one of the three protocols.

    Raises:
        ScenarioError: a sum could overflow.
    """
    links, timeout, dropout = build_digital_links(scenario, uplink, network), uplink.stage_timeout_s, uplink.dropout
    encoding = build_encoding(scenario, uplink, network, dimension)
    match uplink.protocol:
        case "pairwise_prf":
            return PairwisePrf(
                links=links,
                encoding=encoding,
                stage_timeout_s=timeout,
                vanish_probability=(dropout.masked_input,) * (1 + uplink.retries),
                seed=scenario.seed,
                registered=network.registry.count,
            )
        case "secagg" | "secagg_plus":
            complete = uplink.protocol == "secagg"
            return SecretSharing(
                links=links,
                encoding=encoding,
                stage_timeout_s=timeout,
                vanish_probability=(dropout.advertise_keys, dropout.share_keys, dropout.masked_input, dropout.unmask),
                graph=CompleteGraph(uplink.threshold)
                if complete
                else SparseGraph(uplink.neighbours, uplink.threshold, uplink.max_colluding, uplink.max_dropouts),
            )
        case _:
            assert_never(uplink.protocol)


def build_encoding(scenario: Scenario, uplink: SecureAggregation, network: Network, dimension: int) -> SumEncoding:
    """The finest fixed-point encoding whose sum over the largest cohort cannot overflow.

    Hidden sample numbers are bounded by something that the server may know: the largest of them is not.

    Raises:
        ScenarioError: the sum of updates, or of the sample numbers, could overflow, or a client has too many samples.
    """
    clients, registry = scenario.clients.most, network.registry
    largest = int(registry.samples.max())
    if uplink.max_samples is not None and largest > uplink.max_samples:
        raise ScenarioError(
            f"uplink.max_samples: found {uplink.max_samples}, and a client with {largest} samples; "
            f"allowed: at least {largest}, or null"
        )
    try:
        fixed_point = FixedPoint.finest(uplink.clip * FLOAT_ROOM, uplink.bits, clients)
        if uplink.hide_weights:
            return HiddenWeights(fixed_point, dimension, uplink.max_samples or registry.total_samples)
        return PublicWeights(fixed_point, dimension, largest)
    except ValueError as error:
        raise ScenarioError(f"uplink.bits: {error}") from error
