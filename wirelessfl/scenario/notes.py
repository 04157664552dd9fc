"""What holds of a scenario and is easily overlooked."""

from wirelessfl.scenario.scenario import Scenario
from wirelessfl.scenario.uplink import OverTheAir


def power_notes(scenario: Scenario) -> tuple[str, ...]:
    """What a scenario's keys mean for its watts."""
    uplink = scenario.uplink
    if isinstance(uplink, OverTheAir) and uplink.iq_packing and uplink.snr_db is not None:
        return (
            "uplink.iq_packing at a fixed snr_db: P_i stays and is spent in half the time, with twice the watts; at a "
            "fixed tx_power_dbm the watts stay and P_i halves",
        )
    return ()
