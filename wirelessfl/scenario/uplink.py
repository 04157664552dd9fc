"""The uplink: how updates reach the server, with what power, and under whose jamming."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from wirelessfl.scenario.base import (
    OPTIONS,
    ByShape,
    Decibel,
    Family,
    Options,
    Positive,
    Probability,
    Reference,
    Section,
    contradiction,
    key,
    require_exactly_one,
)


class Ideal(Section):
    """Noise-free aggregation, the reference."""

    kind: Literal["ideal"] = key("ideal", "The server receives the exact weighted sum.")
    clip: Positive | None = key(None, "Clip norm τ of the local update. null: no clipping.")


class CrossLayer(Section):
    """Cross-layer power control with back-off (DESIGN §3)."""

    policy: Literal["cross_layer"] = key("cross_layer", "Channel inversion with a back-off that keeps the budget.")
    server_gain: Annotated[Literal["auto"] | Positive, ByShape()] = key(
        "auto", "α_u; auto: the gain at which channel noise alone meets epsilon at privacy.delta, as published."
    )
    epsilon: Positive = key(6.52, "Published ε that server_gain: auto aims at; unused otherwise.")
    backoff: Literal["bound", "actual"] = key(
        "bound", "Back-off from the clip norm (bound: public) or from the update's own norm (actual: private data)."
    )
    rescale: Literal["clip_norm", "none"] = key(
        "clip_norm", "clip_norm: the server multiplies what it received by τ; none: the published form without."
    )


class ExternalPowerControl(Section):
    """A policy of the user's own."""

    policy: Reference = key(..., "Importable power-control policy, as package.module:Class.")
    options: Options = key({}, OPTIONS)


PowerControl = Annotated[CrossLayer | ExternalPowerControl, Family("policy", default="cross_layer")]


class Jammer(Section):
    """The cooperative jammer, whose noise buys privacy."""

    epsilon: Positive = key(2.0, "ε that channel noise and jamming together shall meet at privacy.delta.")
    margin: Positive = key(1.0, "Factor on the calibrated jammer gain; the paper's experiments use 7.")
    calibration: Literal["theorem", "exact"] = key(
        "theorem", "theorem: published sensitivity 1/|D|; exact: accounted sensitivity and exact composition."
    )
    role: Literal["external", "rotating"] = key(
        "external", "A node of its own, or one client in turn that does not train in that round."
    )
    noise: Literal["complex", "real"] = key(
        "complex", "Circular noise in both quadratures, or in phase only (the published form)."
    )
    power_db: Decibel | None = key(None, "Power limit P_CJ/(d σ_c²) [dB]. null: unlimited.")
    max_shortfall: Probability = key(
        0.05, "Largest probability, in a round, that the power limit is too low for the jamming needed."
    )
    on_shortfall: Literal["record", "lower_gain"] = key(
        "record", "If power is short: record the higher ε, or lower α_u in that round and keep ε."
    )


class OverTheAir(Section):
    """All clients send at once and the radio channel adds them up."""

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = (("snr_db", "tx_power_dbm"),)

    kind: Literal["over_the_air"] = key("over_the_air", "Analogue: the radio channel adds up all clients' signals.")
    snr_db: Decibel | None = key(
        None, "SNR_i = P_i/(d σ_c²), the same for every client [dB]; 1 where tx_power_dbm is not given."
    )
    tx_power_dbm: Decibel | None = key(None, "Transmit power of a client [dBm], instead of snr_db.")
    iq_packing: bool = key(False, "Two real symbols in each channel use: half the airtime, cross-talk with bad CSI.")
    clip: Positive = key(1.0, "Clip norm τ of the local update; the transmit power is set for it.")
    power_control: PowerControl = key(CrossLayer(), "How server and clients set their gains.")
    jammer: Jammer | None = key(None, "Cooperative jammer. null: none.")

    @model_validator(mode="before")
    @classmethod
    def _default_snr(cls, value: Any) -> Any:
        if isinstance(value, dict) and not {"snr_db", "tx_power_dbm"} & value.keys():
            return {**value, "snr_db": 1.0}
        return value

    @model_validator(mode="after")
    def _check(self) -> OverTheAir:
        require_exactly_one(self)
        if self.iq_packing and self.jammer is not None and self.jammer.noise == "real":
            raise contradiction("jammer.noise", "real with iq_packing: true", "complex, for data in both quadratures")
        return self


Uplink = Annotated[Ideal | OverTheAir, Family("kind", default="over_the_air")]
