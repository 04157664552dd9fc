"""The whole simulation of a scenario."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from wirelessfl.assembly.calibration import calibrate
from wirelessfl.assembly.data import build_population, on_device
from wirelessfl.assembly.digital import build_asynchronous
from wirelessfl.assembly.first_round import check_uploads
from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.jammer_power import check_jammer_power
from wirelessfl.assembly.learning import build_algorithm, build_model, build_robust_rule, build_training
from wirelessfl.assembly.mechanism import build_central_noise, build_local_privacy, unvouched
from wirelessfl.assembly.network import build_network, observer_remark
from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.assembly.personalisation import build_personalisation
from wirelessfl.assembly.plan import Resources, check_batches
from wirelessfl.assembly.radio import build_uplink, power_budget
from wirelessfl.assembly.roles import build_roles
from wirelessfl.assembly.selection import build_selection, with_pilots
from wirelessfl.assembly.slot import check_deadline
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import ExecutionPlan, Population
from wirelessfl.learning.cohort import TrainingElsewhere
from wirelessfl.learning.faults import AvailabilityModel, Faults
from wirelessfl.learning.private import without_noise
from wirelessfl.learning.timing import Timing
from wirelessfl.memory import memories_among, restore_memories
from wirelessfl.privacy import (
    ENDS_BY_CLIENTS_DATA,
    OUTSIDE_THE_LEDGER,
    SCALED_BY_ALL_DATA,
    Ledger,
    PrivacyFacts,
    Statement,
)
from wirelessfl.radio import Network, Registry
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.own_data import Table
from wirelessfl.scenario.timing import Asynchronous, Quorum
from wirelessfl.scenario.uplink import jammer_of
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.lost_uploads import EDGES, RESIDUALS
from wirelessfl.simulation.roles import Roles
from wirelessfl.simulation.run import Deployment, Simulation
from wirelessfl.simulation.selection import ClientSelection, KeepAtWork
from wirelessfl.simulation.state import SimulationState, check_continues, restoring
from wirelessfl.simulation.stop_rules import StopRules
from wirelessfl.simulation.uplinks import CapacityUplink, DigitalUplink, OverTheAir, TrustedServer, Uplink
from wirelessfl.simulation.window import WaitFor
from wirelessfl.streams import Streams


def build_faults(scenario: Scenario) -> Faults:
    """Faults of clients, links, jammer and server.

    Raises:
        DataError: a recording of who is there cannot be read, or is too short.
        ScenarioError: an availability model of the user's own cannot be used.
    """
    faults = scenario.faults
    return Faults(
        availability=build_availability(scenario),
        crash_rate_per_s=faults.crash_rate_per_s,
        battery_j=faults.battery_j,
        restart_probability=faults.server_restart.p,
        downtime_s=faults.server_restart.downtime_s,
    )


def build_availability(scenario: Scenario) -> AvailabilityModel:
    """Availability of the clients."""
    availability = found(scenario, "faults.availability", scenario.faults.availability)
    model: AvailabilityModel = make_object("faults.availability.model", availability, context=RunFacts.of(scenario))
    return model


def build_simulation(
    scenario: Scenario,
    plan: ExecutionPlan | Resources,
    state: SimulationState | None = None,
    pause: Callable[[], None] = lambda: None,
    elsewhere: Callable[[Scenario, Learner], TrainingElsewhere] | None = None,
) -> Simulation:
    """Simulation of a scenario, ready to run.

    Args:
        scenario: what to simulate.
        plan: device, threads, chunk and precision; or what may be used, for a chunk that fits model and cohort, which
            may take a second to find out.
        state: the state to continue from; None begins at the beginning.
        pause: called between blocks of training; may raise to give up the round in flight.
        elsewhere: from scenario and learner to what trains blocks in other processes; None for this one.

    Raises:
        DataError: the data cannot be had, or do not suffice for the clients.
        ScenarioError: an extension of the user's cannot be used.
        InfeasibleError: a privacy target that no allowed setting meets.
        TraceError: the state is not one of this scenario.
    """
    with scenario.located():
        return _simulation(scenario, plan, state, pause, elsewhere)


def _simulation(
    scenario: Scenario,
    plan: ExecutionPlan | Resources,
    state: SimulationState | None,
    pause: Callable[[], None],
    elsewhere: Callable[[Scenario, Learner], TrainingElsewhere] | None,
) -> Simulation:
    streams, statement = Streams(scenario.seed), Statement(**scenario.privacy.model_dump(exclude={"observer"}))
    population = build_population(scenario, streams)
    samples, total_samples = population.sizes, int(population.sizes.sum())
    facts = PrivacyFacts(samples, samples / total_samples, total_samples)
    learner = _build_learner(scenario, plan, population, facts, statement, streams, pause)
    if elsewhere is not None:
        learner = replace(learner, elsewhere=elsewhere(scenario, learner))
    dimension = learner.upload_dimension
    registry = Registry(samples, total_samples, power_budget(scenario, dimension))
    network = build_network(scenario, registry, streams, dimension)
    start = learner.initial_state(registry.count if scenario.faults.battery_j is not None else 0)
    if state is None:
        state = start
    else:
        check_continues(state, start)
    timing = Timing(**{one.name: getattr(scenario.timing, one.name) for one in fields(Timing)})
    selection, wait_for = build_selection(scenario, network, learner, timing), build_wait_for(scenario)
    uplink = _build_uplink(scenario, network, learner, facts, statement, wait_for, selection)
    selection = with_pilots(selection, uplink)
    faults, jobs, roles = build_faults(scenario), JobsInFlight(), build_roles(scenario, streams)
    residuals = uplink.residuals if isinstance(uplink, CapacityUplink | DigitalUplink | OverTheAir) else None
    kept = {RESIDUALS: residuals, EDGES: uplink.edges if isinstance(uplink, OverTheAir) else None}
    if isinstance(scenario.aggregation, Asynchronous):
        uplink = build_asynchronous(scenario.aggregation, uplink, jobs)
        selection = KeepAtWork(selection.rule, selection.count, network, jobs=jobs)
    personal = build_personalisation(learner)
    memories: dict[str, Any] = {
        **network.memories(),
        **selection.memories(),
        **memories_among(availability=faults.availability, power_control=uplink, jobs=jobs, **kept),
        **memories_among(personal=None if personal is None else personal.kept),
    }
    deployment = Deployment(
        network=network,
        selection=selection,
        timing=timing,
        wait_for=wait_for,
        faults=faults,
        learner=learner,
        uplink=uplink,
        jobs=jobs,
        roles=roles,
        personal=personal,
        memories=memories,
    )
    _recall(state, deployment, ledger := Ledger(facts, statement))
    stop_rules = _stop_rules(scenario, population)
    for sentence in _remarks(scenario, roles, stop_rules):
        ledger.remark(sentence)
    return Simulation(deployment, ledger, state, stop_rules, log_events=scenario.trace.events)


def _stop_rules(scenario: Scenario, population: Population) -> StopRules:
    rules = StopRules(scenario.rounds, **scenario.stop.model_dump(), test_is_public=population.test_owners is None)
    if rules.reads_clients_data and rules.epsilon is not None:
        raise ScenarioError(
            f"stop.epsilon: found {rules.epsilon:g} with stop.accuracy on test samples that belong to clients, "
            "with which the accounted ε is infinite; allowed: null, or test data that belong to no client"
        )
    return rules


def _remarks(scenario: Scenario, roles: Roles | None, stop_rules: StopRules) -> Iterator[str]:
    # What limits the meaning of the two ε before the first round
    if roles is not None and roles.exceed(roles.clients).any():
        yield OUTSIDE_THE_LEDGER
    if scenario.privacy.observer is not None:
        yield observer_remark(scenario.privacy.observer)
    if isinstance(scenario.data.dataset, Table) and scenario.data.dataset.scaling == "standard":
        yield SCALED_BY_ALL_DATA
    if stop_rules.reads_clients_data:
        yield ENDS_BY_CLIENTS_DATA


def _recall(state: SimulationState, deployment: Deployment, ledger: Ledger) -> None:
    # What a run that goes on remembers of channels, faults and spent privacy
    if state.round_index > 0:
        with restoring("the memory of channels and faults"):
            restore_memories(deployment.memories, state.memories)
    if state.ledger:
        with restoring("the ledger"):
            ledger.restore(state.ledger)


def _build_learner(
    scenario: Scenario,
    plan: ExecutionPlan | Resources,
    population: Population,
    facts: PrivacyFacts,
    statement: Statement,
    streams: Streams,
    pause: Callable[[], None],
) -> Learner:
    model, algorithm = build_model(scenario, population), build_algorithm(scenario)
    training, cohort = build_training(scenario, algorithm, model), scenario.clients.expected
    check_batches(training, population.sizes)
    private = build_local_privacy(scenario, model, population, training, facts, statement)
    undrawn = None if private is None else without_noise(private.gradients)
    untimed = (
        plan.plan(model, training, population, algorithm, cohort, undrawn) if isinstance(plan, Resources) else plan
    )
    schedule = scenario.training.lr_schedule
    learner = Learner(
        model=model,
        population=on_device(population, untimed),
        training=training,
        lr_schedule={1: 1.0} if schedule is None else schedule.mapping(),
        algorithm=algorithm,
        server_optimizer=make_object("training.server_optimizer.name", scenario.training.server_optimizer),
        private=private,
        plan=untimed,
        streams=streams,
        evaluate_every=scenario.evaluate.every,
        measures_drift=scenario.evaluate.client_drift,
        rounds=scenario.rounds,
        pause=pause,
        unvouched=unvouched(scenario),
    )
    calibrates = isinstance(plan, Resources) and plan.calibrates
    return replace(learner, plan=calibrate(learner, cohort)) if calibrates else learner


def _build_uplink(
    scenario: Scenario,
    network: Network,
    learner: Learner,
    facts: PrivacyFacts,
    statement: Statement,
    wait_for: WaitFor,
    selection: ClientSelection,
) -> Uplink:
    # The uplink after all checks that need no round.
    dimension = learner.upload_dimension
    central = build_central_noise(scenario, learner, facts, statement, wait_for)
    uplink: Uplink = (
        build_uplink(scenario, network, dimension, statement)
        if central is None
        else TrustedServer(network.registry, dimension, build_robust_rule(scenario), central, network.streams)
    )
    jammer = jammer_of(scenario.uplink)
    if jammer is not None and isinstance(uplink, OverTheAir):
        check_jammer_power(jammer, uplink, selection, scenario.privacy.delta)
    check_deadline(wait_for, uplink)
    check_uploads(scenario, uplink)
    return uplink


def build_wait_for(scenario: Scenario) -> WaitFor:
    """Rule by which the server stops waiting, and clients training."""
    timing = scenario.timing
    limits = (timing.deadline_s, timing.compute_deadline_s, scenario.training.partial_work)
    if not isinstance(timing.wait_for, Quorum):
        return WaitFor(1.0, None, *limits)
    fraction, count = timing.wait_for.fraction, timing.wait_for.count
    return WaitFor(1.0 if fraction is None else fraction, count, *limits)
