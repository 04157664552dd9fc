"""The selection of clients: its rule, and what it knows of the run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.objects import make_object
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import LocalTraining
from wirelessfl.learning.selection import Selection
from wirelessfl.learning.selection.protocol import FRESH
from wirelessfl.learning.timing import Timing
from wirelessfl.privacy import LossReport, Release, UnvouchedRelease
from wirelessfl.radio import DigitalLinks, Network, db_to_linear, dbm_to_watts, thermal_noise_density
from wirelessfl.radio.slot_schedule import PilotCharge
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.selection import ExternalSelection
from wirelessfl.scenario.uplink import Ideal
from wirelessfl.scenario.uplink_consistency import UNKNOWN_COST, exactly_calibrated
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.query import named, record_of_reports
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, OverTheAir, Uplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink


@dataclass(frozen=True)
class SelectionSetting:
    """Facts of a run for rules that follow rates.

    Attributes:
        snr: SNR_i of a gain 1, 2p/(N0 B), against the noise of one real dimension in the full band.
    """

    snr: float

    @classmethod
    def of(cls, scenario: Scenario) -> "SelectionSetting":
        """Facts of a scenario; an uplink without a radio has the ratio 0."""
        uplink = scenario.uplink
        if isinstance(uplink, Ideal):
            return cls(0.0)
        if uplink.snr_db is not None:
            return cls(db_to_linear(uplink.snr_db))
        assert uplink.tx_power_dbm is not None, "the scenario names exactly one of the two"
        noise = thermal_noise_density(scenario.channel.noise_figure_db) * scenario.timing.bandwidth_hz
        return cls(2.0 * dbm_to_watts(uplink.tx_power_dbm) / noise)


def build_rule(scenario: Scenario) -> Selection:
    """The rule by which clients are selected.

    Raises:
        ScenarioError: a rule of the user's own cannot be used, or not with power that is calibrated to an accounted ε.
    """
    rule: Selection = make_object(
        "clients.selection.scheme", scenario.clients.selection, context=SelectionSetting.of(scenario)
    )
    if isinstance(scenario.clients.selection, ExternalSelection) and "losses" in rule.facts().reads:
        for key in exactly_calibrated(scenario.uplink):
            raise ScenarioError(f"{key}: found exact with {named(rule)}: {UNKNOWN_COST}; allowed: theorem")
    return rule


def planned_reports(
    scenario: Scenario,
    training: LocalTraining,
    samples: NDArray[np.int64],
    clients: NDArray[np.int64],
    unvouched: str | None,
) -> Callable[[int], Release | None]:
    """The record of the losses that are reported in a round, from the number of the round; None where none are.

    Everybody is asked, or reports beside an upload: no run costs more.

    Args:
        scenario: The scenario.
        training: Of the clients.
        samples: (K,) n_i of the registered clients.
        clients: (n,) with samples, one for each number of samples that occurs.
        unvouched: Code from outside that sees private data, in words; None without any.

    Raises:
        ScenarioError: a rule of the user's own cannot be used.
    """
    rule = build_rule(scenario)
    reports, asks = rule.facts().reports, rule.facts().reports.when == "asked"
    if "losses" not in rule.facts().reads:
        return lambda index: None
    if reports.noise_std is None:
        return lambda index: LossReport(index, clients, everyone=asks)
    outside = named(rule) if isinstance(scenario.clients.selection, ExternalSelection) else unvouched
    if outside is not None:  # what it would have done with others is not known
        return lambda index: UnvouchedRelease(index, clients, outside)
    occurring = samples[clients]
    asked, fewest = clients if asks else clients[:0], int(occurring.min())
    return lambda index: record_of_reports(reports, index, asked, occurring, fewest, training)


def build_selection(scenario: Scenario, network: Network, learner: Learner, timing: Timing) -> ClientSelection:
    """The selection of the clients of each round.

    Raises:
        ScenarioError: a rule of the user's own cannot be used.
    """
    rule = build_rule(scenario)

    @cache
    def speed() -> NDArray[np.float64]:
        everyone = np.arange(network.registry.count, dtype=np.int64)
        if timing.cycles_per_sample == 0.0:  # training takes no time: all are equally fast
            return np.ones(len(everyone))
        return timing.nominal_rate(learner.samples_processed(network.registry.samples), everyone, network.streams)

    from_outside = isinstance(scenario.clients.selection, ExternalSelection)
    return ClientSelection(rule, scenario.clients.most, network, from_outside=from_outside, speed=speed)


def with_pilots(selection: ClientSelection, uplink: Uplink) -> ClientSelection:
    """The selection, with what the pilots of all registered clients take where its rule reads fresh gains."""
    pilots, count = selection.network.clients.impairments.pilots, selection.network.registry.count
    if not selection.rule.facts().reads & FRESH or pilots is None:
        return selection
    seconds = uplink.schedule.pilot_s(count) if isinstance(uplink, OverTheAir) else count * _links(uplink).pilot_s(1.0)
    return replace(selection, pilots=PilotCharge(seconds, pilots.joules, 0.0))


def _links(uplink: Uplink) -> DigitalLinks:
    # Of an uplink that is not over the air, and has pilots
    uploads = uplink.uploads if isinstance(uplink, Asynchronous) else uplink
    assert isinstance(uploads, DigitalUplink | SecureUplink), "the scenario was checked: others have no pilots"
    assert isinstance(uploads.links, DigitalLinks), "the scenario was checked: a log has no pilots"
    return uploads.links
