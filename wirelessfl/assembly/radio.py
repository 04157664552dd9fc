"""Channel, power control, jammer and uplink of a scenario. dB become linear here and nowhere else."""

import math
from functools import partial
from typing import Any, assert_never

from wirelessfl.assembly.digital import build_digital_uplink, build_secure_uplink
from wirelessfl.assembly.learning import build_algorithm, build_robust_rule
from wirelessfl.assembly.modulation import build_code, build_modulation, symbol_count
from wirelessfl.assembly.power_control import CHANNEL_NOISE_STD, build_calibration, build_power_control, gradient_step
from wirelessfl.assembly.reception import build_receiver
from wirelessfl.assembly.roles import build_roles
from wirelessfl.assembly.slot import build_schedule, channel_uses, data_airtime, slot_airtime, useful_share
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.learning import AlgorithmFacts
from wirelessfl.learning.aggregation import EdgeModels
from wirelessfl.learning.compression import ErrorFeedback
from wirelessfl.learning.timing import BITS_PER_PARAMETER
from wirelessfl.privacy import Statement
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    CentredPowerControl,
    Jamming,
    Network,
    NormScaledPowerControl,
    PowerControl,
    Registry,
    Waveform,
    db_to_linear,
    dbm_to_watts,
    is_non_expansive,
    jammer_gain_limit,
    power_budget_from_snr,
    power_budget_from_watts,
    thermal_noise_density,
)
from wirelessfl.radio.modulation.d_dsgd import MEAN_BITS
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import External
from wirelessfl.scenario.geography import MultiCell, SingleCell, Topology
from wirelessfl.scenario.modulation import DDsgd, WaveformModulation
from wirelessfl.scenario.uplink import Digital, Ideal, SecureAggregation
from wirelessfl.scenario.uplink import OverTheAir as OverTheAirSection
from wirelessfl.simulation.uplinks import CapacityUplink, GroupedOverTheAir, IdealUplink, OverTheAir, Uplink
from wirelessfl.simulation.uplinks.air.plan import OwnRelease


def build_cells(
    topology: Topology, network: Network, facts: AlgorithmFacts, dimension: int
) -> tuple[int, float, EdgeModels | None]:
    """Receivers C of a topology, seconds to the server and back for uploads of P·d numbers, and models of the edges."""
    if isinstance(topology, SingleCell):
        return 1, 0.0, None
    numbers = dimension + dimension // facts.payload * facts.broadcast
    receivers, both_ways = len(network.sources), BITS_PER_PARAMETER * numbers / topology.backhaul_bps
    edges = None if isinstance(topology, MultiCell) else EdgeModels(receivers, topology.edge_rounds)
    return receivers, both_ways, edges


def power_budget(scenario: Scenario, dimension: int) -> float:
    """P_i, the energy a client may spend on a round, in units of the normalised noise; infinite without a radio."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAirSection):
        return math.inf
    if uplink.tx_power_dbm is None:
        assert uplink.snr_db is not None, "the scenario names exactly one of the two"
        return power_budget_from_snr(db_to_linear(uplink.snr_db), dimension, CHANNEL_NOISE_STD)
    density = thermal_noise_density(scenario.channel.noise_figure_db)
    useful = data_airtime(scenario, dimension) * useful_share(scenario.timing)
    return power_budget_from_watts(dbm_to_watts(uplink.tx_power_dbm), useful, density)


def symbol_energy(scenario: Scenario, dimension: int) -> float:
    """The largest energy of a symbol, as a multiple of its share P_i/num_symbols; infinite without a limit."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAirSection) or uplink.peak_power_db is None:
        return math.inf
    mean = power_budget(scenario, dimension) / channel_uses(scenario, uplink, dimension)
    return db_to_linear(uplink.peak_power_db) * mean


def joules_per_unit(scenario: Scenario) -> float:
    """Joules of one unit of normalised energy, N0/2 and its cyclic prefix; NaN where the scenario knows no watts."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAirSection) or uplink.tx_power_dbm is None:
        return math.nan
    return thermal_noise_density(scenario.channel.noise_figure_db) / 2 / useful_share(scenario.timing)


def build_uplink(scenario: Scenario, network: Network, dimension: int, statement: Statement) -> Uplink:
    """The uplink."""
    uplink = scenario.uplink
    match uplink:
        case Ideal():
            return IdealUplink(network.registry, dimension, build_robust_rule(scenario))
        case OverTheAirSection(modulation=DDsgd()):
            return build_capacity_uplink(scenario, uplink, network, dimension)
        case OverTheAirSection():
            symbols, loudest = symbol_count(scenario, uplink, dimension), symbol_energy(scenario, dimension)
            air = AirInterface(uplink.clip, CHANNEL_NOISE_STD, symbols, loudest)
            facts, control = build_algorithm(scenario).facts(), uplink.power_control
            receivers, backhaul_s, edges = build_cells(scenario.topology, network, facts, dimension)
            policies = [build_power_control(scenario, control, network, statement) for _ in range(receivers)]
            policy = policies[0]
            if receivers > 1 and isinstance(policy, NormScaledPowerControl | CentredPowerControl):
                raise ScenarioError(
                    f"uplink.power_control.policy: {type(policy).__name__} scales by the norms of all clients in a "
                    "slot, found with "
                    f"topology.kind: {scenario.topology.kind}; allowed is single_cell"
                )
            grouped = _grouped(scenario, uplink, policy)
            return (OverTheAir if grouped is None else partial(GroupedOverTheAir, **grouped))(
                network=network,
                policies=policies,
                air=air,
                jamming=build_jamming(scenario, uplink, policy, network.registry, dimension, statement),
                rotating_jammer=uplink.jammer is not None and uplink.jammer.role == "rotating",
                iq_packing=uplink.iq_packing,
                fade_threshold=0.0 if control.silences else scenario.faults.fade_threshold,
                schedule=build_schedule(scenario, uplink, dimension),
                airtime=slot_airtime(scenario, dimension),
                num_symbols=channel_uses(scenario, uplink, dimension),
                dimension=dimension,
                joules_per_unit=joules_per_unit(scenario),
                jammer_failure=scenario.faults.jammer_failure,
                gradient_step=None
                if isinstance(uplink.modulation, WaveformModulation)
                else gradient_step(scenario, uplink.clip, is_non_expansive(policy)),
                theorem=control.theorem,
                **_waveform(scenario, uplink, dimension),
                backhaul_s=backhaul_s,
                edges=edges,
                has_cells=not isinstance(scenario.topology, SingleCell),
                roles=build_roles(scenario, network.streams),
            )
        case Digital():
            return build_digital_uplink(scenario, uplink, network, dimension)
        case SecureAggregation():
            return build_secure_uplink(scenario, uplink, network, dimension)
        case _:
            assert_never(uplink)


def _grouped(scenario: Scenario, uplink: OverTheAirSection, policy: PowerControl) -> dict[str, Any] | None:
    # Groups of clients and the rule that combines them; None where all send in one slot. Raises ScenarioError: the
    # power control has one scale for all clients of a round, or follows slot after slot.
    if uplink.slot_groups == 1:
        return None
    if isinstance(policy, NormScaledPowerControl | CentredPowerControl | AdaptivePowerControl):
        raise ScenarioError(
            f"uplink.slot_groups: found {uplink.slot_groups} groups with uplink.power_control.policy: "
            f"{uplink.power_control.policy}, which has one scale for all clients of a round, or follows earlier slots; "
            "allowed: 1, or another policy"
        )
    return {"rule": build_robust_rule(scenario), "groups": uplink.slot_groups}


def build_capacity_uplink(
    scenario: Scenario, uplink: OverTheAirSection, network: Network, dimension: int
) -> CapacityUplink:
    """Uploads at the capacity of the channel.

    Raises:
        InfeasibleError: the capacity does not carry one coordinate of the largest cohort.
    """
    assert isinstance(uplink.modulation, DDsgd), "another modulation adds up"
    code, clients, budget = build_code(uplink.modulation), scenario.clients.most, network.registry.power_budget
    if code.kept(dimension, clients, budget) == 0:
        least = MEAN_BITS + math.log2(dimension)
        raise InfeasibleError(
            f"uplink.modulation.symbols: found {uplink.modulation.symbols:g}, with which each of {clients} clients has "
            f"{code.capacity_bits(dimension, clients, budget):.4g} bits a round; one coordinate of {dimension} takes "
            f"{least:.4g}. More symbols, more power (uplink.snr_db, uplink.tx_power_dbm) or fewer clients carry more"
        )
    airtime, unit = slot_airtime(scenario, dimension), joules_per_unit(scenario)
    return CapacityUplink(network.registry, dimension, build_robust_rule(scenario), code, unit, airtime)


def _waveform(scenario: Scenario, uplink: OverTheAirSection, dimension: int) -> dict[str, Any]:
    # Receiver and modulation, and whether one of them leaves no record of what it costs. Raises ScenarioError: code
    # from outside cannot be used.
    receiver = build_receiver(scenario, uplink)
    modulation = build_modulation(scenario, uplink)
    made = ((uplink.receiver, receiver), (uplink.modulation, modulation))
    unvouched = any(isinstance(named, External) and not isinstance(part, OwnRelease) for named, part in made)
    waits = isinstance(modulation, Waveform) and modulation.coordinates_sent(dimension) < dimension
    residuals = ErrorFeedback() if waits else None
    return {"receiver": receiver, "modulation": modulation, "unvouched": unvouched, "residuals": residuals}


def build_jamming(
    scenario: Scenario,
    uplink: OverTheAirSection,
    policy: PowerControl,
    registry: Registry,
    dimension: int,
    statement: Statement,
) -> Jamming | None:
    """The cooperative jammer beside a power control, or None."""
    jammer = uplink.jammer
    if jammer is None:
        return None
    if jammer.calibration == "exact" and statement.colluding:  # the ledger then counts no jamming of either role
        raise InfeasibleError(
            f"uplink.jammer.calibration: found exact with privacy.colluding: {statement.colluding}; a colluding party "
            "may be the jammer: its noise then protects nobody, and no jammer power meets the target"
        )
    non_expansive, epsilon = is_non_expansive(policy), jammer.epsilon
    limit = math.inf
    if jammer.power_db is not None:
        budget = power_budget_from_snr(db_to_linear(jammer.power_db), dimension, CHANNEL_NOISE_STD)
        limit = jammer_gain_limit(budget, channel_uses(scenario, uplink, dimension), jammer.noise)
    return Jamming(
        calibration=build_calibration(jammer.calibration, epsilon, scenario, registry, statement, non_expansive),
        margin=jammer.margin,
        gain_limit=limit,
        noise=jammer.noise,
        on_shortfall=jammer.on_shortfall,
    )
