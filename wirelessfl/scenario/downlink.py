"""The downlink: how the global model reaches the clients."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wirelessfl.scenario.base import BitsPerSecond, Decibel, Hertz, Section, key
from wirelessfl.scenario.family import Family


class ErrorFreeDownlink(Section):
    """A broadcast that reaches everybody."""

    model: Literal["error_free"] = key(
        "error_free", "All clients receive the model, at timing.downlink_bps whatever their channels."
    )


class FadingLink(Section, exclusive=(("snr_db", "tx_power_dbm"),), otherwise={"snr_db": 20.0}):
    """Base of the downlinks that fade."""

    model: str = key("", "The model.")
    snr_db: Decibel | None = key(
        None, "SNR 2p/(N0 B) at every client before path loss and fading [dB]; default 20 without tx_power_dbm."
    )
    tx_power_dbm: Decibel | None = key(
        None, "Power p of the base station [dBm], instead of snr_db; with uplink.tx_power_dbm."
    )
    noise_figure_db: Annotated[float, Field(ge=0, le=100)] = key(
        9.0, "Noise figure of the clients' receivers [dB]; used only with tx_power_dbm."
    )
    bandwidth_hz: Hertz | None = key(None, "Bandwidth B of the broadcast [Hz]. null: timing.bandwidth_hz.")
    duplex: Literal["fdd", "tdd"] = key(
        "fdd",
        "fdd: fading of its own, by the law of channel.fading; tdd: the channel of the uplink, by reciprocity.",
    )


class FixedDownlink(FadingLink):
    """A broadcast at one rate, which clients in a fade miss."""

    model: Literal["fixed"] = key(
        "fixed", "One rate: a client whose channel carries less misses the model, and the round (no_model)."
    )
    rate_bps: BitsPerSecond | None = key(None, "The rate R [bit/s]. null: timing.downlink_bps, or as outage says.")
    outage: Annotated[float, Field(gt=0, lt=1)] | None = key(
        None, "Rayleigh fading: share of all registered clients that miss a broadcast on average; it sets R. null: R."
    )


class MulticastDownlink(FadingLink):
    """A broadcast at the rate of the weakest client that is asked."""

    model: Literal["multicast"] = key(
        "multicast", "The rate that the weakest client of the round can receive, which it reports exactly."
    )
    min_rate_bps: BitsPerSecond = key(
        1.0e4, "Floor of the rate [bit/s]: a client whose channel carries less misses the model."
    )


Fading: TypeAlias = FixedDownlink | MulticastDownlink
Downlink = Annotated[ErrorFreeDownlink | FixedDownlink | MulticastDownlink, Family("model", default="error_free")]
