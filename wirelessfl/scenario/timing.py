"""Simulated time, and when the server steps the model: link rates, computing speed, waiting, aggregation."""

import math
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    BitsPerSecond,
    CoreVariant,
    Count,
    Hertz,
    NonNegative,
    Rule,
    Section,
    Share,
    Wait,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.shape import ByShape

Clock = Annotated[float, Field(ge=1e-3, le=1e18)]


class Quorum(Section, exclusive=(("fraction", "count"),), otherwise={"fraction": None}):
    """A part of the clients, after which the server stops waiting."""

    fraction: Share | None = key(None, "Share of the round's clients to wait for.")
    count: Count | None = key(None, "Number of clients to wait for.")


def waited_for(wait_for: Literal["all"] | Quorum, clients: int) -> int:
    """Number of clients, of those of a round, whose being ready begins the uplink."""
    if not isinstance(wait_for, Quorum):
        return clients
    fraction = 1.0 if wait_for.fraction is None else wait_for.fraction
    return wait_for.count or max(1, math.ceil(fraction * clients - 1e-9))


class Ofdm(Section):
    """Parallel subcarriers with a cyclic prefix."""

    subcarrier_spacing_hz: Hertz = key(1.5e4, "Subcarrier spacing; a symbol lasts its inverse [Hz].")
    cyclic_prefix_s: Annotated[float, Field(ge=0, le=1e6)] = key(
        4.7e-6, "Guard time before every symbol; costs time and energy [s]."
    )
    subcarriers: Count | None = key(None, "Subcarriers that carry data. null: as many as fit into bandwidth_hz.")


class Timing(Section):
    """The clock of a round."""

    bandwidth_hz: Hertz = key(1.0e6, "Uplink bandwidth B [Hz]: d real symbols take d/B seconds.")
    ofdm: Ofdm | None = key(None, "Over the air: symbols on an OFDM grid. null: one after the other at rate B.")
    downlink_bps: BitsPerSecond = key(1.0e7, "Rate of the broadcast of 32 d bits, unless downlink sets it [bit/s].")
    cycles_per_sample: Annotated[float, Field(ge=0, le=1e18)] = key(
        1.0e6, "Processor cycles for one sample, forward and backward."
    )
    cpu_hz: Annotated[tuple[Clock, Clock], Field(strict=False)] = key(
        (1.0e9, 2.0e9), "Slowest and fastest processor [Hz]; each client's is drawn uniformly between them."
    )
    straggler_scale: Annotated[float, Field(ge=0, le=1e12)] = key(
        0.2, "Mean of the exponential delay on top of the compute time, in units of that time."
    )
    switched_capacitance: Annotated[float, Field(ge=0, le=1)] = key(
        0.0, "κ of a client's processor: a cycle at f Hz costs κ f² [J s²], such as 1e-28. 0: computing costs nothing."
    )
    deadline_s: Wait | None = key(
        None,
        "Time from the broadcast to the end of the round's upload, airtime included [s]; a common slot waits only for "
        "clients that are ready one airtime before. null: no limit.",
    )
    compute_deadline_s: Wait | None = key(
        None,
        "With training.partial_work: time from the broadcast after which clients stop training and upload [s]. "
        "null: deadline_s, less the airtime of a common slot; to be given where clients upload one by one.",
    )
    wait_for: Annotated[Literal["all"] | Quorum, ByShape()] = key(
        "all",
        "The uplink begins once all clients, {fraction: f} or {count: n} of them are ready. With fewer than all, noise "
        "of a trusted server is not amplified by the selection of clients.",
    )

    def rules(self) -> list[Rule]:
        """Speeds are in order, and subcarriers fit into the band."""
        used = 0.0 if self.ofdm is None else (self.ofdm.subcarriers or 1) * self.ofdm.subcarrier_spacing_hz
        allowed = f"subcarriers that fit into bandwidth_hz, {self.bandwidth_hz:g} Hz"
        return [
            (self.cpu_hz[0] > self.cpu_hz[1], "cpu_hz", str(list(self.cpu_hz)), "the slower speed first"),
            (used > self.bandwidth_hz, "ofdm", f"{used:g} Hz of subcarriers", allowed),
        ]


class ConstantStaleness(CoreVariant, core="wirelessfl.learning.aggregation:ConstantDiscount"):
    """No discount."""

    name: Literal["constant"] = key("constant", "s = 1: late updates count as much as fresh ones.")


class PolynomialStaleness(CoreVariant, core="wirelessfl.learning.aggregation:PolynomialDiscount"):
    """A power of the staleness (Xie et al. 2019)."""

    name: Literal["polynomial"] = key("polynomial", "s = (1 + staleness)^(-exponent).")
    exponent: NonNegative = key(0.5, "The exponent a.")


class HingeStaleness(CoreVariant, core="wirelessfl.learning.aggregation:HingeDiscount"):
    """No discount for a while, then a hyperbola (Xie et al. 2019)."""

    name: Literal["hinge"] = key("hinge", "s = 1 up to grace, then 1/(slope (staleness - grace) + 1).")
    slope: NonNegative = key(10.0, "The slope a.")
    grace: NonNegative = key(4.0, "The staleness b up to which nothing is taken off.")


Staleness = Annotated[ConstantStaleness | PolynomialStaleness | HingeStaleness, Family("name", default="polynomial")]


class Synchronous(Section):
    """Rounds."""

    mode: Literal["synchronous"] = key(
        "synchronous", "Rounds: all clients of a round start from one model, and the server updates it once."
    )


class Asynchronous(Section):
    """No waiting for each other."""

    mode: Literal["asynchronous"] = key(
        "asynchronous",
        "Clients train at their own pace; the server updates the model whenever enough updates have arrived.",
    )
    buffer: Count = key(
        1, "Updates that make one step of the model, which ends a round: 1 is FedAsync, more is FedBuff."
    )
    mixing: Share = key(0.6, "Weight α of a fresh update, or of a buffer of them, against the model that is there.")
    mixes: Literal["models", "updates"] = key(
        "models", "models: w + α s (w_i - w), as in FedAsync; updates: w + α s Δ_i, as in FedBuff."
    )
    staleness: Staleness = key(PolynomialStaleness(), "Discount s of updates from a model that was left behind.")


Aggregation = Annotated[Synchronous | Asynchronous, Family("mode", default="synchronous")]
