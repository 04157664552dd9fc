"""Contradictions of power controls that keep their budget on average, or do not invert the channel."""

from collections.abc import Iterator

from wirelessfl.scenario.channel import ExternalFading, NakagamiFading, RayleighFading, RecordedFading
from wirelessfl.scenario.geography import ExternalPathLoss, NoPathLoss, Tr38901PathLoss
from wirelessfl.scenario.power_control import MEASURED, Cotaf, FullPower, Gbma, TruncatedInversion
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.topology import SingleCell
from wirelessfl.scenario.uplink import OverTheAir

Contradiction = tuple[str, str, str]
"""Key path, what was found, what is allowed."""
_NORMS, _H_MIN = "uplink.power_control.expected_norms", "uplink.power_control.h_min"


def find_precoder_contradictions(scenario: Sections, uplink: OverTheAir) -> Iterator[Contradiction]:
    """What does not go together with cotaf, gbma, or truncated inversion of limited average power."""
    control = uplink.power_control
    average = isinstance(control, TruncatedInversion) and control.power_limit == "average"
    if isinstance(control, Cotaf):
        yield from _threshold(scenario, control)
    if isinstance(control, Cotaf | Gbma):
        yield from _expected_norms(scenario, uplink, control)
    if average:
        yield from _known_law(scenario)
    jammer = uplink.jammer
    if (
        jammer is not None
        and jammer.on_shortfall == "lower_gain"
        and (average or isinstance(control, Cotaf | Gbma | FullPower))
    ):
        yield (
            "uplink.jammer.on_shortfall",
            f"lower_gain with the power control {control.policy}, which does not invert channels within a peak power",
            "record",
        )


def _threshold(scenario: Sections, control: Cotaf) -> Iterator[Contradiction]:
    threshold = scenario.faults.fade_threshold
    if (control.h_min is None) == (threshold == 0):
        h_min = "null" if control.h_min is None else f"{control.h_min:g}"
        yield _H_MIN, f"{h_min} with faults.fade_threshold {threshold:g}", "exactly one of the two, above 0"


def _expected_norms(scenario: Sections, uplink: OverTheAir, control: Cotaf | Gbma) -> Iterator[Contradiction]:
    norms = control.expected_norms
    if norms is None and isinstance(control, Cotaf):
        yield (
            _NORMS,
            "null with the power control cotaf",
            "a norm for each round, a file, or measured; the policy that version 0.1 called cotaf is weakest_inversion",
        )
    if isinstance(norms, tuple) and len(norms) < scenario.rounds:
        yield _NORMS, f"{len(norms)} norms for {scenario.rounds} rounds", f"at least {scenario.rounds}, one a round"
    if norms != MEASURED:
        return
    if not isinstance(scenario.topology, SingleCell):
        found = f"measured with topology.kind: {scenario.topology.kind}"
        yield _NORMS, found, "norms that are given: base stations do not wait for the norms of each other"
    if uplink.peak_power_db is not None:
        yield (
            "uplink.peak_power_db",
            f"{uplink.peak_power_db:g} with expected_norms: measured",
            "null, or norms that are given: what an amplifier clips follows from the scale, which is settled last",
        )
    if uplink.jammer is not None:
        yield _NORMS, "measured beside a jammer", "norms that are given: no noise restores a guarantee"


def _known_law(scenario: Sections) -> Iterator[Contradiction]:
    # Where E[1/X; X >= g] of the estimate is known.
    fading, csi, pathloss = scenario.channel.fading, scenario.channel.csi, scenario.channel.pathloss
    key = "uplink.power_control.power_limit"
    estimated = csi.error_std > 0 or csi.pilot_symbols is not None
    of_csi, exact = f"channel.csi.error_std {csi.error_std:g}", "error_std: 0"
    if csi.pilot_symbols is not None:
        of_csi, exact = f"channel.csi.pilot_symbols {csi.pilot_symbols}", "no pilots"
    located = not isinstance(pathloss, NoPathLoss)
    specular = not isinstance(fading, RayleighFading) or isinstance(pathloss, Tr38901PathLoss | ExternalPathLoss)
    if isinstance(fading, ExternalFading):
        yield key, f"average with the fading {fading.model}, whose power has no known law", "peak"
    elif isinstance(fading, NakagamiFading | RecordedFading) and estimated:
        found = f"average with {fading.model} fading and {of_csi}"
        yield key, f"{found}: the estimate has no known law", f"peak, or {exact}"
    elif csi.pilot_symbols is not None and located and specular:
        found = f"average with {of_csi}, a path loss and lines of sight"
        yield (
            key,
            f"{found}: the law of an estimate then differs from link to link",
            "peak, or channel.csi.error_std in place of pilots",
        )
