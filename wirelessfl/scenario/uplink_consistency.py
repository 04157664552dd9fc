"""Contradictions of the uplink: power control, jammer, rate and codec."""

from wirelessfl.scenario.algorithm import FedDyn, FedNova, Scaffold
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import (
    ExternalFading,
    ImportedFading,
    NakagamiFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    StaticFading,
)
from wirelessfl.scenario.codec import NoCodec, RandK, Sign
from wirelessfl.scenario.geography import ExternalPathLoss, NoPathLoss, SingleCell, Tr38901PathLoss
from wirelessfl.scenario.power_control import (
    MEASURED,
    Cotaf,
    FullPower,
    Gbma,
    LowerGain,
    PrivacyForFree,
    TruncatedInversion,
)
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.secure_aggregation_consistency import secure_aggregation_rules
from wirelessfl.scenario.selection import SelectOort, SelectPowerOfChoice
from wirelessfl.scenario.timing import Synchronous
from wirelessfl.scenario.uplink import (
    AdaptiveRate,
    Digital,
    DigitalLink,
    McsRate,
    OverTheAir,
    SecureAggregation,
    Uplink,
    jammer_of,
)

UNKNOWN_COST = "what an upload would have cost clients that were not selected is not known"
"""Why power is not calibrated to an accounted ε where losses select."""


def uplink_rules(scenario: Sections) -> list[Rule]:
    """Rules of the uplink and around it."""
    parts = (_jammer, _selection_by_losses, _codec, secure_aggregation_rules, _rate, _power_control)
    return [rule for rules_of in parts for rule in rules_of(scenario)]


def _jammer(scenario: Sections) -> list[Rule]:
    jammer, adversary, fading = jammer_of(scenario.uplink), scenario.privacy.adversary, scenario.channel.fading
    return [
        (
            jammer is not None and jammer.calibration == "exact" and adversary == "individual",
            "uplink.jammer.calibration",
            "exact with privacy.adversary individual, from which jamming cannot protect a single upload",
            "theorem, or the adversary observer | server",
        ),
        (
            jammer is not None and jammer.antennas > 1 and isinstance(fading, RecordedFading | ImportedFading),
            "uplink.jammer.antennas",
            f"{1 if jammer is None else jammer.antennas} with {fading.model} fading, whose file has one gain of it",
            "1, or fading that is drawn",
        ),
    ]


def exactly_calibrated(uplink: Uplink) -> list[str]:
    """Keys of the uplink by which power is calibrated to the accounted ε."""
    control = uplink.power_control if isinstance(uplink, OverTheAir) else None
    parts = (("jammer", jammer_of(uplink)), ("power_control", control))
    return [f"uplink.{key}.calibration" for key, part in parts if getattr(part, "calibration", None) == "exact"]


def _selection_by_losses(scenario: Sections) -> list[Rule]:
    selection = scenario.clients.selection
    if not isinstance(selection, SelectPowerOfChoice | SelectOort):
        return []
    found = f"exact with the selection {selection.scheme}: {UNKNOWN_COST}"
    allowed = "theorem, or a selection that follows no losses"
    return [(True, key, found, allowed) for key in exactly_calibrated(scenario.uplink)]


def _codec(scenario: Sections) -> list[Rule]:
    uplink = scenario.uplink
    if not isinstance(uplink, DigitalLink) or isinstance(uplink.codec, NoCodec):
        return []
    codec, secure, algorithm = uplink.codec, isinstance(uplink, SecureAggregation), scenario.training.algorithm
    voting = isinstance(codec, Sign) and codec.vote_step is not None
    return [
        (
            secure and not isinstance(codec, RandK),
            "uplink.codec.name",
            f"{codec.name} with secure_aggregation, whose masks cancel in a sum of numbers",
            "none | rand_k, or uplink.kind: digital; a sum of encoded uploads may not be decodable",
        ),
        (
            isinstance(codec, RandK) and secure and codec.error_feedback,
            "uplink.codec.error_feedback",
            "true with secure_aggregation, in which a client does not learn whether it is in the sum",
            "false, or uplink.kind: digital",
        ),
        (
            isinstance(uplink, Digital) and uplink.bits is not None,
            "uplink.bits",
            f"{uplink.bits} with the codec {codec.name}",
            "null: the codec determines the number of bits",
        ),
        (
            voting and not isinstance(scenario.aggregation, Synchronous),
            "uplink.codec.vote_step",
            f"a vote with aggregation.mode: {scenario.aggregation.mode}",
            "null, or aggregation.mode: synchronous, in which votes of one model are counted",
        ),
        (
            voting and isinstance(algorithm, FedDyn | FedNova | Scaffold),
            "uplink.codec.vote_step",
            f"a vote with the algorithm {algorithm.name}, whose step is no sum of what clients send",
            "null, or another algorithm",
        ),
    ]


def _rate(scenario: Sections) -> list[Rule]:
    # The margin of an adaptive rate follows from the law of h given ĥ.
    uplink, fading, csi = scenario.uplink, scenario.channel.fading, scenario.channel.csi
    found = f"error_std: {csi.error_std:g}" if csi.pilot_symbols is None else f"pilot_symbols: {csi.pilot_symbols}"
    rate = uplink.rate if isinstance(uplink, DigitalLink) else None
    if not isinstance(rate, AdaptiveRate | McsRate) or rate.outage is None:
        return []
    return [
        (
            csi.is_imperfect and not isinstance(fading, RayleighFading | RicianFading | StaticFading),
            "uplink.rate.outage",
            f"{rate.outage:g} with {fading.model} fading and channel.csi.{found}",
            "null, no CSI error, or rayleigh | rician | static fading, for which the channel's distribution given "
            "the estimate is known",
        )
    ]


def _power_control(scenario: Sections) -> list[Rule]:
    uplink, rounds = scenario.uplink, scenario.rounds
    if not isinstance(uplink, OverTheAir):
        return []
    control, jammer = uplink.power_control, uplink.jammer
    average = isinstance(control, TruncatedInversion) and control.power_limit == "average"
    rules: list[Rule] = [
        (
            isinstance(control, TruncatedInversion) and scenario.faults.fade_threshold == 0,
            "faults.fade_threshold",
            "0 with the power control truncated_inversion, which inverts channels above it",
            "above 0, such as 0.1",
        ),
        *(_expected_norms(scenario, uplink, control) if isinstance(control, Cotaf | Gbma) else []),
        *(_known_law(scenario) if average else []),
        (
            jammer is not None
            and jammer.on_shortfall == "lower_gain"
            and (average or isinstance(control, Cotaf | Gbma | FullPower)),
            "uplink.jammer.on_shortfall",
            f"lower_gain with the power control {control.policy}, which does not invert channels within a peak power",
            "record",
        ),
        (
            isinstance(control, LowerGain)
            and control.calibration == "exact"
            and scenario.privacy.adversary == "individual",
            "uplink.power_control.calibration",
            "exact with privacy.adversary individual, from which channel noise cannot protect a single upload",
            "theorem, or the adversary observer | server",
        ),
    ]
    if isinstance(control, PrivacyForFree):
        found = f"{control.contraction} over {rounds} rounds, which leaves no budget for the first round"
        vanishes = control.contraction ** (rounds / 2) == 0
        rules.append((vanishes, "uplink.power_control.contraction", found, "closer to 1"))
    return rules


def _expected_norms(scenario: Sections, uplink: OverTheAir, control: Cotaf | Gbma) -> list[Rule]:
    norms, key, rules = control.expected_norms, "uplink.power_control.expected_norms", list[Rule]()
    measured, threshold = norms == MEASURED, scenario.faults.fade_threshold
    if isinstance(control, Cotaf):
        h_min = "null" if control.h_min is None else f"{control.h_min:g}"
        rules = [
            (
                (control.h_min is None) == (threshold == 0),
                "uplink.power_control.h_min",
                f"{h_min} with faults.fade_threshold {threshold:g}",
                "exactly one of the two, above 0",
            ),
            (
                norms is None,
                key,
                "null with the power control cotaf",
                "a norm for each round, a file, or measured; the policy that version 0.1 called cotaf is "
                "weakest_inversion",
            ),
        ]
    given = len(norms) if isinstance(norms, tuple) else scenario.rounds
    return [
        *rules,
        (
            given < scenario.rounds,
            key,
            f"{given} norms for {scenario.rounds} rounds",
            f"at least {scenario.rounds}, one for each round",
        ),
        (
            measured and not isinstance(scenario.topology, SingleCell),
            key,
            f"measured with topology.kind: {scenario.topology.kind}",
            "a list or a file: base stations do not exchange norms",
        ),
        (
            measured and uplink.peak_power_db is not None,
            "uplink.peak_power_db",
            f"{uplink.peak_power_db or 0:g} with expected_norms: measured",
            "null, or expected_norms as a list or a file: the amplifier's clipping depends on the scale, which is "
            "determined last",
        ),
        (
            measured and uplink.jammer is not None,
            key,
            "measured beside a jammer",
            "a list or a file: with measured norms, noise gives no guarantee",
        ),
    ]


def _known_law(scenario: Sections) -> list[Rule]:
    # Where E[1/X; X >= g] of the estimate is known.
    fading, csi, pathloss = scenario.channel.fading, scenario.channel.csi, scenario.channel.pathloss
    key, pilots = "uplink.power_control.power_limit", csi.pilot_symbols is not None
    of_csi, exact = f"channel.csi.error_std {csi.error_std:g}", "error_std: 0"
    if pilots:
        of_csi, exact = f"channel.csi.pilot_symbols {csi.pilot_symbols}", "no pilots"
    located, foreign = not isinstance(pathloss, NoPathLoss), isinstance(fading, ExternalFading | ImportedFading)
    specular = not isinstance(fading, RayleighFading) or isinstance(pathloss, Tr38901PathLoss | ExternalPathLoss)
    unknown = isinstance(fading, NakagamiFading | RecordedFading) and (csi.error_std > 0 or pilots)
    return [
        (foreign, key, f"average with the fading {fading.model}, whose distribution of power is not known", "peak"),
        (
            unknown,
            key,
            f"average with {fading.model} fading and {of_csi}: the distribution of the estimate is not known",
            f"peak, or {exact}",
        ),
        (
            pilots and located and specular and not foreign and not unknown,
            key,
            f"average with {of_csi}, a path loss and lines of sight: the distribution of an estimate then differs "
            "between links",
            "peak, or channel.csi.error_std in place of pilots",
        ),
    ]
