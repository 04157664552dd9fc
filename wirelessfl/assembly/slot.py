"""The slot of a scenario over the air: its duration, its pieces, its pilots, its deadline."""

import math

import numpy as np

from wirelessfl.assembly.imported import check_first_slot, imported_channels
from wirelessfl.assembly.modulation import symbol_count
from wirelessfl.assembly.objects import make_object
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.radio import (
    OfdmNumerology,
    PathLossModel,
    Pilots,
    SlotSchedule,
    carrier_offsets,
    coherence_time,
    db_to_linear,
    dbm_to_watts,
    num_symbols,
    pieces_needed,
    thermal_noise_density,
)
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, External
from wirelessfl.scenario.channel import DOPPLER_WITHOUT_CARRIER_HZ, Channel, IndependentFading, TdlFading
from wirelessfl.scenario.geography import NoPathLoss, RandomWaypointPlacement
from wirelessfl.scenario.timing import Timing
from wirelessfl.scenario.uplink import DigitalLink
from wirelessfl.scenario.uplink import OverTheAir as OverTheAirSection
from wirelessfl.simulation.uplinks import OverTheAir, Uplink
from wirelessfl.simulation.uplinks.slot import SlotUplink
from wirelessfl.simulation.window import WaitFor
from wirelessfl.streams import Streams


def build_path_loss(pathloss: CoreVariant | External) -> PathLossModel:
    """The large-scale law."""
    model: PathLossModel = make_object("channel.pathloss.model", pathloss)
    return model


def largest_doppler_hz(scenario: Scenario) -> float:
    """The largest Doppler shift of any link, by which slots are divided; 0 where gains last for a round.

    That of imported channels is the one which their snapshots resolve.
    """
    channels = imported_channels(scenario)
    return given_doppler_hz(scenario.channel) if channels is None else channels.doppler_hz


def given_doppler_hz(channel: Channel) -> float:
    """The largest Doppler shift of channels that are drawn; 0 where fading is independent.

    Where it is not given it is that of the fastest client, or a default where no carrier is known.
    """
    correlation, pathloss, placement = channel.correlation, channel.pathloss, channel.placement
    if isinstance(correlation, IndependentFading):
        return 0.0
    if correlation.doppler_hz is not None:
        return correlation.doppler_hz
    if isinstance(pathloss, NoPathLoss):
        return DOPPLER_WITHOUT_CARRIER_HZ
    fastest = placement.max_speed if isinstance(placement, RandomWaypointPlacement) else 0.0
    return fastest / build_path_loss(pathloss).wavelength


def data_airtime(scenario: Scenario, dimension: int) -> float:
    """Seconds of the data of an over-the-air slot; 0 for uplinks without one."""
    uplink, timing = scenario.uplink, scenario.timing
    if not isinstance(uplink, OverTheAirSection):
        return 0.0
    grid = build_numerology(timing)
    if grid is None:
        return channel_uses(scenario, uplink, dimension) / timing.bandwidth_hz
    return grid.slot_duration(channel_uses(scenario, uplink, dimension))


def channel_uses(scenario: Scenario, uplink: OverTheAirSection, dimension: int) -> int:
    """The complex symbols of an update of d coordinates over the air."""
    return num_symbols(symbol_count(scenario, uplink, dimension), uplink.iq_packing)


def slot_airtime(scenario: Scenario, dimension: int) -> float:
    """Seconds of the slots of a round with the pilots of as many clients as it can have; 0 for uplinks without them."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAirSection):
        return 0.0
    external, most = uplink.jammer is not None and uplink.jammer.role == "external", scenario.clients.most
    schedule, groups = build_schedule(scenario, uplink, dimension), uplink.slot_groups
    sizes = [len(range(group, most, groups)) for group in range(groups)]
    return math.fsum(schedule.airtime(size + int(external)) for size in sizes)


def build_schedule(scenario: Scenario, uplink: OverTheAirSection, dimension: int) -> SlotSchedule:
    """Schedule of a slot: its pieces and pilots.

    Raises:
        ScenarioError: the channel changes so fast that the slot needs more pieces than are allowed, or than there are
            symbols (with OFDM, full symbols of all subcarriers).
    """
    channel, data_s = scenario.channel, data_airtime(scenario, dimension)
    if (imported := imported_channels(scenario)) is not None:
        check_first_slot(imported, data_s)
    pieces = pieces_needed(data_s, largest_doppler_hz(scenario), largest_carrier_offset(scenario, uplink))
    timing, symbols, of_what = scenario.timing, channel_uses(scenario, uplink, dimension), "symbols"
    grid, groups = build_numerology(timing), subcarrier_groups(scenario)
    if groups > symbols:
        raise ScenarioError(
            f"channel.fading.groups: found {groups} groups, but an update has {symbols} symbols; allowed: at most that"
        )
    if grid is not None:  # a piece begins with an OFDM symbol, which has all subcarriers: T·F symbols at least
        symbols, of_what = max(1, symbols // grid.subcarriers), "full OFDM symbols"
    elif groups > 1:
        symbols, of_what = symbols // groups, "symbols of each group of subcarriers"
    allowed = min(channel.max_pieces, symbols)
    if pieces > allowed:
        limit = "channel.max_pieces" if allowed == channel.max_pieces else f"its {symbols} {of_what}"
        raise ScenarioError(
            f"channel.max_pieces: found {channel.max_pieces}, but a slot of {data_s:.3g} s needs {pieces} pieces, so "
            f"that the channel changes by no more than −25 dB within one ({_change(scenario)}, carrier offset up to "
            f"{largest_carrier_offset(scenario, uplink):.3g} Hz); allowed are at most {allowed} pieces ({limit}). A "
            "wider timing.bandwidth_hz or uplink.iq_packing shortens the slot"
        )

    def duration(symbols: int) -> float:
        return grid.slot_duration(symbols) if grid is not None else symbols / timing.bandwidth_hz

    return SlotSchedule(data_s, duration, pieces, channel.csi.refresh, build_pilots(scenario, uplink, dimension))


def _change(scenario: Scenario) -> str:
    # What makes channels change within a slot
    imported = imported_channels(scenario)
    if imported is None:
        return f"Doppler shift up to {largest_doppler_hz(scenario):.3g} Hz"
    return f"snapshots in {imported.name} every {imported.interval_s:.3g} s"


def subcarrier_groups(scenario: Scenario) -> int:
    """F, the groups of subcarriers with a gain each."""
    fading, channels = scenario.channel.fading, imported_channels(scenario)
    if channels is not None:
        return int(channels.gains.shape[3])
    return fading.groups if isinstance(fading, TdlFading) else 1


def slot_pieces(uplink: Uplink) -> int:
    """T, the pieces of a slot; 1 with uplinks that are not over the air."""
    return uplink.schedule.pieces if isinstance(uplink, OverTheAir) else 1


def coherence_s(scenario: Scenario) -> float:
    """Seconds in which the fastest channel that is drawn keeps half of its correlation; infinite without any."""
    return coherence_time(given_doppler_hz(scenario.channel))


def build_pilots(scenario: Scenario, uplink: OverTheAirSection | DigitalLink, dimension: int) -> Pilots | None:
    """The pilots of a node in the whole band, or None where estimates cost nothing."""
    csi, timing = scenario.channel.csi, scenario.timing
    if csi.pilot_symbols is None:
        return None
    per_symbol, bandwidth_hz, useful = 1.0, timing.bandwidth_hz, 1.0
    if isinstance(uplink, OverTheAirSection):
        # P_i/(d σ_c²) over the channel uses: per symbol against N0, twice the noise of a real dimension.
        per_symbol = dimension / channel_uses(scenario, uplink, dimension)
        grid, useful = build_numerology(timing), useful_share(timing)
        bandwidth_hz = bandwidth_hz if grid is None else grid.bandwidth_hz
    if uplink.tx_power_dbm is None:
        assert uplink.snr_db is not None, "the scenario names exactly one of the two"
        return Pilots(csi.pilot_symbols, db_to_linear(uplink.snr_db) * per_symbol / 2.0, math.nan)
    watts = dbm_to_watts(uplink.tx_power_dbm if csi.pilot_power_dbm is None else csi.pilot_power_dbm)
    energy = watts / bandwidth_hz
    density = thermal_noise_density(scenario.channel.noise_figure_db)
    return Pilots(csi.pilot_symbols, energy / density, csi.pilot_symbols * energy / useful)


def largest_carrier_offset(scenario: Scenario, uplink: OverTheAirSection) -> float:
    """The largest carrier frequency offset in hertz of all clients, and of an external jammer."""
    cfo_hz, streams = scenario.channel.sync.cfo_hz, Streams(scenario.seed)
    if cfo_hz == 0.0:
        return 0.0
    nodes = {"cfo": scenario.clients.count, "jammer_cfo": int(uplink.jammer is not None)}
    drawn = [carrier_offsets(cfo_hz, streams.nodes(name, 0, np.arange(count))) for name, count in nodes.items()]
    return float(np.abs(np.concatenate(drawn)).max())


def build_numerology(timing: Timing) -> OfdmNumerology | None:
    """The OFDM grid, or None for symbols one after the other."""
    if timing.ofdm is None:
        return None
    spacing = timing.ofdm.subcarrier_spacing_hz
    return OfdmNumerology(
        timing.ofdm.subcarriers or int(timing.bandwidth_hz / spacing), spacing, timing.ofdm.cyclic_prefix_s
    )


def useful_share(timing: Timing) -> float:
    """The part of a slot's time and energy that is no cyclic prefix."""
    grid = build_numerology(timing)
    return 1.0 if grid is None else 1.0 / (grid.subcarrier_spacing_hz * grid.symbol_duration)


def training_time(wait_for: WaitFor, uplink: Uplink) -> float:
    """Seconds from the broadcast to the last instant at which a slot for all can begin; NaN without either of them."""
    if wait_for.deadline_s is None or not isinstance(uplink, SlotUplink) or uplink.airtime == 0.0:
        return math.nan
    return wait_for.deadline_s - uplink.airtime


def check_deadline(wait_for: WaitFor, uplink: Uplink) -> None:
    """Refusal of a deadline by which no slot can be over.

    Raises:
        InfeasibleError: the airtime of a slot is the deadline, or longer.
    """
    if training_time(wait_for, uplink) <= 0.0:
        assert isinstance(uplink, SlotUplink), "only a slot has to be over by the deadline"
        raise InfeasibleError(
            f"timing.deadline_s: found {wait_for.deadline_s:g} s, but a slot over the air lasts {uplink.airtime:.6g} s "
            f"and has to be over by then; allowed is more than {uplink.airtime:.6g} s, or null. A wider "
            "timing.bandwidth_hz or uplink.iq_packing shortens the slot"
        )
