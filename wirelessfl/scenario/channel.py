"""The radio channel between the clients and the server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import OPTIONS, Family, NonNegative, Options, Reference, Section, key


class RayleighFading(Section):
    """h ~ CN(0, 1): many paths, no line of sight."""

    model: Literal["rayleigh"] = key("rayleigh", "Rayleigh: h ~ CN(0, 1), many paths and no line of sight.")


class StaticFading(Section):
    """h = 1: no fading."""

    model: Literal["static"] = key("static", "No fading: h = 1 for everybody, always.")


class ExternalFading(Section):
    """A fading model of the user's own."""

    model: Reference = key(..., "Importable fading model, as package.module:Class.")
    options: Options = key({}, OPTIONS)


Fading = Annotated[RayleighFading | StaticFading | ExternalFading, Family("model", default="rayleigh")]


class IndependentFading(Section):
    """A fresh draw each round."""

    model: Literal["independent"] = key("independent", "Block fading: a fresh draw for each client and round.")


Correlation = Annotated[IndependentFading, Family("model", default="independent")]


class NoPathLoss(Section):
    """Every client at the same path gain 1."""

    model: Literal["none"] = key("none", "No path loss: every client has path gain β = 1.")


PathLoss = Annotated[NoPathLoss, Family("model", default="none")]


class Csi(Section):
    """What transmitters know of the channel."""

    error_std: NonNegative = key(
        0.0, "Standard deviation of the estimation error relative to √β: ĥ = h + e, e ~ CN(0, error_std² β)."
    )
    estimator: Literal["ls", "mmse"] = key("ls", "ls uses ĥ as it is; mmse scales it by 1/(1 + error_std²).")


class Channel(Section):
    """The radio channel."""

    fading: Fading = key(RayleighFading(), "Law of the small-scale fading h, mean power 1.")
    correlation: Correlation = key(IndependentFading(), "Fading in time.")
    pathloss: PathLoss = key(NoPathLoss(), "Large-scale path gain β.")
    csi: Csi = key(Csi(), "Channel state information.")
    noise_figure_db: Annotated[float, Field(ge=0, le=100)] = key(
        5.0, "Noise figure of the receiver [dB]; counts with uplink.tx_power_dbm only."
    )
    profile: str | None = key(
        None, "Start from a shipped channel profile, or from a YAML file; the keys beside it win. Null once resolved."
    )
