"""Contradictions of robust rules: they need single updates, of one model, and enough of them."""

from wirelessfl.scenario.algorithm import Scaffold
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.codec import Sign
from wirelessfl.scenario.mechanism import noised_by_server
from wirelessfl.scenario.robust import CountedRule, MeanRule, NormClipRule
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Quorum, Synchronous, waited_for
from wirelessfl.scenario.uplink import Digital, Ideal, OverTheAir

KEY = "training.robust.rule"


def robust_rules(scenario: Sections) -> list[Rule]:
    """Rules of ``training.robust``."""
    rule, uplink, algorithm = scenario.training.robust, scenario.uplink, scenario.training.algorithm
    if isinstance(rule, MeanRule):
        return []
    mechanism = scenario.training.privacy
    bound = "what bounds a client there is its power and uplink.clip"
    why = f"the receiver gets the sum of all updates and no single one; {bound}"
    if not isinstance(uplink, OverTheAir):
        why = "the server learns the sum of all updates and no single one"
    groups = ", or uplink.slot_groups above 1" if isinstance(uplink, OverTheAir) else ""
    in_groups = isinstance(uplink, OverTheAir) and uplink.slot_groups > 1
    voting = isinstance(uplink, Digital) and isinstance(uplink.codec, Sign) and uplink.codec.vote_step is not None
    return [
        (
            not isinstance(uplink, Digital | Ideal) and not in_groups,
            KEY,
            f"{rule.rule} with uplink.kind: {uplink.kind}, where {why}",
            "mean, or uplink.kind: digital | ideal" + groups,
        ),
        (
            not isinstance(scenario.aggregation, Synchronous),
            KEY,
            f"{rule.rule} with aggregation.mode: {scenario.aggregation.mode}, where the updates of a step begin at "
            "models of different ages",
            "mean, or aggregation.mode: synchronous",
        ),
        (
            voting,
            KEY,
            f"{rule.rule} with uplink.codec.vote_step, where clients send votes",
            "mean, or uplink.codec.vote_step: null",
        ),
        (
            isinstance(algorithm, Scaffold) and algorithm.payload == 2,
            KEY,
            f"{rule.rule} with two vectors of scaffold, which belong together client by client",
            "mean, or training.algorithm.payload: 1",
        ),
        (
            noised_by_server(mechanism) and mechanism.epsilon is not None and not isinstance(rule, NormClipRule),
            KEY,
            f"{rule.rule} with training.privacy.epsilon for clients, which no noise on the result of this rule is "
            "proven to reach",
            "mean | norm_clip, or training.privacy.noise_multiplier",
        ),
        *_count(scenario),
    ]


def _count(scenario: Sections) -> list[Rule]:
    # Whether a round can have the updates that a rule is defined for
    rule, wait_for, most = scenario.training.robust, scenario.timing.wait_for, scenario.clients.most
    if not isinstance(rule, CountedRule):
        return []
    heard, of = waited_for(wait_for, most), f"the {most} clients of a round"
    if isinstance(wait_for, Quorum):
        of = f"the {heard} clients of a round that are waited for"
    if isinstance(scenario.uplink, OverTheAir) and scenario.uplink.slot_groups < heard:
        heard = scenario.uplink.slot_groups
        of = f"the {heard} sums of uplink.slot_groups"
    per_fault = rule.least - 3
    largest = (heard - 3) // (per_fault // rule.f) if rule.f else 0
    more = "more groups" if isinstance(scenario.uplink, OverTheAir) else "more clients"
    allowed = f"at most {largest}" if heard >= 3 else f"{more}, 3 at least"
    return [(rule.least > heard, "training.robust.f", f"{rule.f}, which needs {rule.least} of {of}", allowed)]
