"""Contradictions of secure aggregation: rings that overflow, and share holders that are too few or too many."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.selection import SizeUnknown
from wirelessfl.scenario.timing import waited_for
from wirelessfl.scenario.uplink import SecureAggregation, StageDropout


def secure_aggregation_rules(scenario: Sections) -> list[Rule]:
    """Rules of uplinks with secure aggregation; none of others."""
    uplink, clients = scenario.uplink, scenario.clients.most
    if not isinstance(uplink, SecureAggregation):
        return []
    # The coarsest encoding has one step a client; the sum of all must not pass the middle of the ring.
    needed = clients.bit_length() + 1
    return [
        (
            clients < 2,
            "uplink.kind",
            f"secure_aggregation with {clients} client in a round",
            "at least 2, or another kind",
        ),
        (
            uplink.bits < needed,
            "uplink.bits",
            f"{uplink.bits}, in which a sum of {clients} clients could overflow",
            f"at least {needed}; every further bit halves the step size",
        ),
        (
            uplink.max_samples is not None and not uplink.hide_weights,
            "uplink.max_samples",
            f"{uplink.max_samples} with hide_weights: false",
            "null, or hide_weights: true",
        ),
        *_quorum(scenario, uplink, clients),
        *(_pairwise_prf(uplink) if uplink.protocol == "pairwise_prf" else _share_holders(scenario, uplink, clients)),
    ]


def _quorum(scenario: Sections, uplink: SecureAggregation, clients: int) -> list[Rule]:
    # A round that begins with too few clients to put a secret together is abandoned, whatever comes after.
    if isinstance(scenario.clients.selection, SizeUnknown):
        return []
    begins, threshold = waited_for(scenario.timing.wait_for, clients), uplink.threshold
    if uplink.protocol == "pairwise_prf" or (uplink.protocol == "secagg_plus" and uplink.neighbours is None):
        needed = 2
    elif uplink.neighbours is None:
        needed = threshold or min(2 * clients // 3 + 1, clients)
    else:
        needed = threshold or (uplink.neighbours + 1) // 2 + 1
    lower = "" if threshold is None else ", or a lower uplink.threshold"
    return [
        (
            min(needed, clients) > begins,
            "timing.wait_for",
            f"{begins} of {clients} clients whose being ready begins the uplink, too few to put a secret together",
            f"at least {needed}{lower}",
        )
    ]


def _pairwise_prf(uplink: SecureAggregation) -> list[Rule]:
    # It has neither shares nor a graph, and one stage a round.
    lacking = {"threshold": uplink.threshold, "neighbours": uplink.neighbours}
    stages = uplink.dropout != StageDropout(masked_input=uplink.dropout.masked_input)
    return [
        *(
            (value is not None, f"uplink.{name}", f"{value} with pairwise_prf, which needs all clients", "null")
            for name, value in lacking.items()
        ),
        (stages, "uplink.dropout", "stages that pairwise_prf does not have", "masked_input alone"),
    ]


def _share_holders(scenario: Sections, uplink: SecureAggregation, clients: int) -> list[Rule]:
    # Thresholds that are too low to be safe, or too high to be met.
    threshold, neighbours, sparse = uplink.threshold, uplink.neighbours, uplink.protocol == "secagg_plus"
    if sparse and neighbours is None:
        found = f"{threshold} without neighbours"
        return [(threshold is not None, "uplink.threshold", found, "null, or uplink.neighbours set as well")]
    holders = neighbours + 1 if sparse and neighbours is not None else clients
    known, least = not isinstance(scenario.clients.selection, SizeUnknown), holders // 2 + 1
    return [
        (
            not sparse and neighbours is not None,
            "uplink.neighbours",
            f"{neighbours} with secagg, in which all clients are neighbours",
            "null, or protocol: secagg_plus",
        ),
        (
            known and holders > clients,
            "uplink.neighbours",
            str(neighbours),
            f"at most {clients - 1}, the others of a round",
        ),
        (
            threshold is not None and not least <= threshold <= holders,
            "uplink.threshold",
            f"{threshold} of {holders} share holders",
            f"{least} to {holders}: half of them could be asked for one secret of a client, half for the other",
        ),
    ]
