"""Whether the deadline of a round leaves clients any time to train."""

import math

from wirelessfl.errors import InfeasibleError
from wirelessfl.simulation.uplinks import Uplink
from wirelessfl.simulation.uplinks.slot import SlotUplink
from wirelessfl.simulation.window import WaitFor


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
