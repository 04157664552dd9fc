"""Contradictions of the radio: channel, power control and jammer that do not go together."""

from collections.abc import Iterator

from wirelessfl.scenario.asynchronous_consistency import find_asynchronous_contradictions
from wirelessfl.scenario.channel import (
    ClarkeFading,
    GaussMarkovFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    StaticFading,
)
from wirelessfl.scenario.faults import RecordedAvailability
from wirelessfl.scenario.geography import GivenPlacement, NoPathLoss
from wirelessfl.scenario.power_control import LowerGain, PrivacyForFree, TruncatedInversion
from wirelessfl.scenario.precoder_consistency import find_precoder_contradictions
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.topology import Hierarchical, SingleCell
from wirelessfl.scenario.training import FedAvg, FedProx, ServerSgd
from wirelessfl.scenario.uplink import AdaptiveRate, DigitalLink, OverTheAir

Contradiction = tuple[str, str, str]
"""Key path, what was found, what is allowed."""


def find_radio_contradictions(scenario: Sections) -> Iterator[Contradiction]:
    """Everything in the channel and around it that does not go together."""
    yield from _fading(scenario)
    yield from _rate(scenario)
    yield from _waveform(scenario)
    yield from _estimates(scenario)
    yield from _placement(scenario)
    yield from _power_control(scenario)
    yield from _faults(scenario)
    yield from _topology(scenario)
    yield from find_asynchronous_contradictions(scenario)


def _fading(scenario: Sections) -> Iterator[Contradiction]:
    fading, correlation = scenario.channel.fading, scenario.channel.correlation
    if isinstance(fading, RecordedFading) and fading.file is None:
        yield "channel.fading.file", "null with the model recorded", "the file that holds the gains"
    if isinstance(correlation, GaussMarkovFading | ClarkeFading) and not isinstance(
        fading, RayleighFading | RicianFading
    ):
        yield (
            "channel.correlation.model",
            f"{correlation.model} with {fading.model} fading",
            "independent, or rayleigh | rician fading, whose scattered part can be correlated",
        )


def _rate(scenario: Sections) -> Iterator[Contradiction]:
    # The margin of an adaptive rate follows from the law of h given ĥ.
    uplink, fading, error_std = scenario.uplink, scenario.channel.fading, scenario.channel.csi.error_std
    if not isinstance(uplink, DigitalLink) or not isinstance(uplink.rate, AdaptiveRate):
        return
    gaussian = isinstance(fading, RayleighFading | RicianFading | StaticFading)
    if uplink.rate.outage is not None and error_std > 0 and not gaussian:
        yield (
            "uplink.rate.outage",
            f"{uplink.rate.outage:g} with {fading.model} fading and channel.csi.error_std: {error_std:g}",
            "null, no CSI error, or rayleigh | rician | static fading, whose law given the estimate is known",
        )


def _waveform(scenario: Sections) -> Iterator[Contradiction]:
    sync, ofdm, uplink = scenario.channel.sync, scenario.timing.ofdm, scenario.uplink
    if sync.waveform != "ofdm":
        return
    if not isinstance(uplink, OverTheAir):
        yield "channel.sync.waveform", f"ofdm with uplink.kind: {uplink.kind}", "single_carrier, or over_the_air"
    if ofdm is None:
        yield "channel.sync.waveform", "ofdm without timing.ofdm", "single_carrier, or the grid in timing.ofdm"
    elif sync.max_offset > ofdm.cyclic_prefix_s * ofdm.subcarrier_spacing_hz:
        prefix = ofdm.cyclic_prefix_s * ofdm.subcarrier_spacing_hz
        yield (
            "channel.sync.max_offset",
            f"{sync.max_offset:g} symbols with the waveform ofdm",
            f"at most the cyclic prefix, cyclic_prefix_s · subcarrier_spacing_hz = {prefix:.4g}",
        )


def _estimates(scenario: Sections) -> Iterator[Contradiction]:
    csi, sync, uplink = scenario.channel.csi, scenario.channel.sync, scenario.uplink
    over_the_air = isinstance(uplink, OverTheAir)
    if csi.pilot_symbols is not None and csi.error_std > 0:
        yield (
            "channel.csi.pilot_symbols",
            f"{csi.pilot_symbols} with error_std: {csi.error_std}",
            "one of the two: pilots decide how large the error is",
        )
    if csi.pilot_symbols is not None and not over_the_air:
        yield (
            "channel.csi.pilot_symbols",
            f"{csi.pilot_symbols} with uplink.kind: {uplink.kind}",
            "null, or over_the_air",
        )
    if csi.pilot_power_dbm is not None:
        found = f"{csi.pilot_power_dbm}"
        if csi.pilot_symbols is None:
            yield "channel.csi.pilot_power_dbm", f"{found} without pilot_symbols", "null, or pilot_symbols beside it"
        elif isinstance(uplink, OverTheAir) and uplink.tx_power_dbm is None:
            yield "channel.csi.pilot_power_dbm", f"{found} with uplink.snr_db", "null, or uplink.tx_power_dbm"
    if csi.refresh == "piece" and not isinstance(uplink, OverTheAir | DigitalLink):
        yield (
            "channel.csi.refresh",
            f"piece with uplink.kind: {uplink.kind}",
            "slot, or uplink.kind: over_the_air | digital | secure_aggregation",
        )
    for name in ("cfo_hz", "phase_std", "max_offset"):
        value = getattr(sync, name)
        if value > 0 and not over_the_air:
            yield f"channel.sync.{name}", f"{value} with uplink.kind: {uplink.kind}", "0, or uplink.kind: over_the_air"


def _placement(scenario: Sections) -> Iterator[Contradiction]:
    placement, count = scenario.channel.placement, scenario.clients.count
    if not isinstance(placement, GivenPlacement):
        return
    if (placement.points_m is None) == (placement.file is None):
        found = "neither points_m nor file" if placement.file is None else "both points_m and file"
        yield "channel.placement.points_m", found, "exactly one of points_m and file"
    elif placement.points_m is not None and len(placement.points_m) < count:
        yield (
            "channel.placement.points_m",
            f"{len(placement.points_m)} positions for {count} clients",
            f"at least {count}, one for each client",
        )
    uplink, located = scenario.uplink, not isinstance(scenario.channel.pathloss, NoPathLoss)
    jammer = uplink.jammer if isinstance(uplink, OverTheAir) else None
    if jammer is not None and jammer.role == "external" and jammer.position_m is None and located:
        yield "uplink.jammer.position_m", "null with channel.placement.scheme: positions", "the jammer's own [x, y]"


def _power_control(scenario: Sections) -> Iterator[Contradiction]:
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir):
        return
    control = uplink.power_control
    if isinstance(control, TruncatedInversion) and scenario.faults.fade_threshold == 0:
        yield (
            "faults.fade_threshold",
            "0 with the power control truncated_inversion, which inverts channels above it",
            "above 0, such as 0.1",
        )
    yield from find_precoder_contradictions(scenario, uplink)
    if isinstance(control, LowerGain) and control.calibration == "exact" and scenario.privacy.adversary == "individual":
        yield (
            "uplink.power_control.calibration",
            "exact with privacy.adversary individual, before whom no noise of the channel hides a single upload",
            "theorem, or the adversary observer | server",
        )
    if isinstance(control, PrivacyForFree) and control.contraction ** (scenario.rounds / 2) == 0:
        yield (
            "uplink.power_control.contraction",
            f"{control.contraction} over {scenario.rounds} rounds, which leaves nothing to the first of them",
            "closer to 1",
        )


def _faults(scenario: Sections) -> Iterator[Contradiction]:
    faults, uplink = scenario.faults, scenario.uplink
    if isinstance(faults.availability, RecordedAvailability) and faults.availability.file is None:
        yield "faults.availability.file", "null with the model recorded", "the file that says who is there"
    if faults.jammer_failure > 0 and not (isinstance(uplink, OverTheAir) and uplink.jammer is not None):
        yield "faults.jammer_failure", f"{faults.jammer_failure} without a jammer", "0, or uplink.jammer beside it"


def _topology(scenario: Sections) -> Iterator[Contradiction]:
    topology, uplink, channel = scenario.topology, scenario.uplink, scenario.channel
    if isinstance(topology, SingleCell):
        return
    kind = topology.kind
    if not isinstance(uplink, OverTheAir):
        yield "uplink.kind", f"{uplink.kind} with topology.kind: {kind}", "over_the_air, or the topology single_cell"
    elif uplink.jammer is not None:
        yield "uplink.jammer", f"a jammer with topology.kind: {kind}", "null: interference and jamming are not combined"
    if isinstance(channel.pathloss, NoPathLoss):
        yield "channel.pathloss.model", f"none with topology.kind: {kind}", "a path loss, which tells cells apart"
    if isinstance(channel.fading, RecordedFading):
        yield "channel.fading.model", f"recorded with topology.kind: {kind}", "a law: files know one base station only"
    if isinstance(topology, Hierarchical):
        training, edges = scenario.training, "with topology.kind: hierarchical"
        if not isinstance(training.algorithm, FedAvg | FedProx):
            yield "training.algorithm.name", f"{training.algorithm.name} {edges}", "fedavg | fedprox"
        if training.server_optimizer != ServerSgd():
            why = "sgd with lr 1 and momentum 0: the cloud averages models"
            yield "training.server_optimizer", f"{training.server_optimizer.name} with its own keys {edges}", why
