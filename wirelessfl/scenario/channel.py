"""The radio channel between the clients and the server."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    CoreVariant,
    Decibel,
    Doppler,
    External,
    Reference,
    Section,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.geography import NoPathLoss, PathLoss, Placement, UniformDiscPlacement


class RayleighFading(CoreVariant, core="wirelessfl.radio.fading:Rayleigh"):
    """h ~ CN(0, 1): many paths, no line of sight."""

    model: Literal["rayleigh"] = key("rayleigh", "Rayleigh: h ~ CN(0, 1), many paths and no line of sight.")


class RicianFading(CoreVariant, core="wirelessfl.radio.fading:Rician"):
    """A line of sight of power K/(K+1) beside Rayleigh scattering."""

    model: Literal["rician"] = key("rician", "Rician: a line of sight beside scattering.")
    k_db: Decibel = key(6.0, "Rician factor K, power of the line of sight over that of the scattering [dB].")

    def arguments(self) -> dict[str, Any]:
        """K, linear."""
        return {"rician_k": 10.0 ** (self.k_db / 10.0)}


class NakagamiFading(CoreVariant, core="wirelessfl.radio.fading:Nakagami", core_names={"m": "nakagami_m"}):
    """|h|² ~ Gamma(m, 1/m), uniform phase; m = 1 is Rayleigh."""

    model: Literal["nakagami"] = key("nakagami", "Nakagami-m: |h|² ~ Gamma(m, 1/m), uniform phase.")
    m: Annotated[float, Field(ge=0.5, le=1e6)] = key(
        2.0, "Shape m: 1 is Rayleigh; smaller values fade more deeply, larger ones less."
    )


class StaticFading(CoreVariant, core="wirelessfl.radio.fading:Static"):
    """h = 1: no fading."""

    model: Literal["static"] = key("static", "No fading: h = 1 for every client in every round.")


class TdlFading(CoreVariant, core="wirelessfl.radio:tapped_delay_line", core_names={"groups": None}):
    """Multipath by delay: a channel that differs between subcarriers."""

    model: Literal["tdl"] = key("tdl", "Tapped delay line: paths of different delays, gains that differ over the band.")
    profile: Literal["A", "B", "C", "D", "E", "exponential"] = key(
        "A", "Profile of TR 38.901, Tables 7.7.2-1 to 7.7.2-5 (D and E with a line of sight), or an exponential one."
    )
    delay_spread_s: Annotated[float, Field(ge=0, le=1e-3)] = key(100e-9, "Root mean square delay spread [s].")
    groups: Annotated[int, Field(ge=1, le=4096)] = key(
        16, "Groups of subcarriers F, each with one gain; a divisor of the number of subcarriers with timing.ofdm."
    )


class RecordedFading(CoreVariant, core="wirelessfl.assembly.recordings:recorded_fading", files=("file",)):
    """Gains recorded or measured beforehand."""

    model: Literal["recorded"] = key("recorded", "Gains from a file, one for each client and round.")
    file: str | None = key(
        None, "A trace, an HDF5 file with gain_re and gain_im (round, client), or CSV with round, client, re, im."
    )


class ImportedFading(CoreVariant, core="wirelessfl.assembly.imported:open_channels", files=("file",)):
    """Absolute gains by ray tracing or measurement."""

    model: Literal["imported"] = key(
        "imported", "Absolute gains from a channel file, in place of fading and path loss."
    )
    file: str | None = key(
        None, "A channel file, as `wirelessfl channels import` writes it: of every client, antenna and subcarrier."
    )
    format: Literal["auto", "hdf5", "npz"] = key("auto", "Format of the file; auto: by its first bytes.")
    start: Annotated[int, Field(ge=0, le=10**9)] = key(0, "Snapshot with which the simulation begins, from 0.")
    loop: bool = key(False, "After the last snapshot comes the first one. false: a run that goes on is an error.")
    groups: Annotated[int, Field(ge=1, le=4096)] | None = key(
        None,
        "Groups of subcarriers F, each with the gain of the subcarrier in its middle; a divisor of the file's. null: "
        "every subcarrier by itself.",
    )


class ExternalFading(
    External,
    family="fading",
    protocol="wirelessfl.radio:FadingModel",
    check="wirelessfl.radio.conformance:check_fading_model",
    context=RUN,
):
    """A fading model of the user's own."""

    model: Reference = key(..., "Importable fading model, as package.module:Class.")


Fading = Annotated[
    RayleighFading
    | RicianFading
    | NakagamiFading
    | StaticFading
    | TdlFading
    | RecordedFading
    | ImportedFading
    | ExternalFading,
    Family("model", default="rayleigh"),
]


class IndependentFading(CoreVariant, core="wirelessfl.radio.propagation:BlockFading"):
    """A fresh draw each round."""

    model: Literal["independent"] = key("independent", "Block fading: a fresh draw for each client and round.")


DOPPLER_WITHOUT_CARRIER_HZ = 10.0
"""f_D where neither it nor a carrier frequency is given, that of 3 km/h at 3.6 GHz."""

_DOPPLER = (
    "Largest Doppler shift f_D [Hz]. null: v f/c of a client's own speed v at the carrier f of the path loss, and 0 "
    f"at rest. Without a path loss there is no carrier, and null means {DOPPLER_WITHOUT_CARRIER_HZ:g}."
)


class GaussMarkovFading(
    CoreVariant, core="wirelessfl.radio.propagation:GaussMarkovFading", core_names={"doppler_hz": None}
):
    """First-order recursion from one use of a link to the next."""

    model: Literal["gauss_markov"] = key(
        "gauss_markov",
        "First-order recursion: correlation J0(2π f_D Δt) from one use of a link to its next, products beyond.",
    )
    doppler_hz: Doppler | None = key(None, _DOPPLER)
    interval_s: Annotated[float, Field(gt=0, le=1e9)] | None = key(
        None,
        "Time T that rounds are taken to be apart, whatever the simulated clock says, with one gain for each [s]; over "
        "the air that of the slot's beginning. null: simulated time.",
    )


class ClarkeFading(CoreVariant, core="wirelessfl.radio.propagation:ClarkeFading", core_names={"doppler_hz": None}):
    """Isotropic scattering in continuous time."""

    model: Literal["clarke"] = key("clarke", "Sum of sinusoids at simulated time: correlation J0(2π f_D τ) at any lag.")
    doppler_hz: Doppler | None = key(None, _DOPPLER)


class ExternalCorrelation(
    External,
    family="correlation",
    protocol="wirelessfl.radio.propagation:Fading",
    check="wirelessfl.radio.conformance:check_correlation",
    context="wirelessfl.assembly.antennas:CorrelationContext",
):
    """Fading in time of the user's own."""

    model: Reference = key(..., "Importable model of fading in time, as package.module:Class.")
    doppler_hz: Doppler | None = key(None, _DOPPLER)


Correlation = Annotated[
    IndependentFading | GaussMarkovFading | ClarkeFading | ExternalCorrelation,
    Family("model", default="independent"),
]


class Csi(Section):
    """Channel state information at the transmitters."""

    error_std: Annotated[float, Field(ge=0, le=1e6)] = key(
        0.0, "Standard deviation of the estimation error relative to √β: ĥ = h + e, e ~ CN(0, error_std² β)."
    )
    estimator: Literal["ls", "mmse"] = key(
        "ls", "ls uses ĥ as it is; mmse is linear about the known mean of h (its line of sight)."
    )
    pilot_symbols: Annotated[int, Field(ge=1, le=10**9)] | None = key(
        None,
        "Pilot symbols n of each client and estimate: the error is N0/(E β), E the energy of the pilots. Over the air "
        "n/B a client is added to the slot, and n/B_i, in a client's own band, before every message of a digital "
        "uplink. null: error_std, and estimates cost nothing.",
    )
    pilot_power_dbm: Decibel | None = key(None, "Power of the pilots [dBm]. null: that of the data.")
    refresh: Literal["slot", "piece"] = key(
        "slot",
        "Channels are estimated at the beginning of a slot or digital message, or before every piece of it; then the "
        "rate of a digital message follows, and pieces that were lost are sent again.",
    )

    @property
    def is_imperfect(self) -> bool:
        """Whether estimates differ from the channels."""
        return self.error_std > 0 or self.pilot_symbols is not None


class Sync(Section):
    """Errors of clocks and oscillators after the channel was estimated."""

    phase_std: Annotated[float, Field(ge=0, le=10)] = key(
        0.0, "Standard deviation of the phase by which a channel has turned since its estimate [rad]."
    )
    max_offset: Annotated[float, Field(ge=0, lt=1)] = key(
        0.0,
        "Largest late arrival over the air; uniform from 0 to this part of a symbol, OFDM prefix excluded [symbols].",
    )
    waveform: Literal["single_carrier", "ofdm"] = key(
        "single_carrier",
        "Effect of a late arrival: single_carrier lets a part of each symbol fall into the next; ofdm, within the "
        "cyclic prefix of timing.ofdm, turns subcarrier k by e^(−j2πkΔfτ).",
    )
    cfo_hz: Doppler = key(
        0.0, "Standard deviation of a client's carrier frequency offset, fixed for the run: h turns within a slot [Hz]."
    )


class Channel(Section):
    """The radio channel."""

    fading: Fading = key(RayleighFading(), "Law of the small-scale fading h, mean power 1.")
    correlation: Correlation = key(IndependentFading(), "Fading in time.")
    pathloss: PathLoss = key(NoPathLoss(), "Large-scale path gain β.")
    placement: Placement = key(UniformDiscPlacement(), "Where the clients are; used only with a path loss.")
    csi: Csi = key(Csi(), "Channel state information.")
    sync: Sync = key(Sync(), "Residual phase and late arrival.")
    max_pieces: Annotated[int, Field(ge=1, le=10**6)] = key(
        256,
        "Largest number of pieces of a slot over the air, each so short that its channel hardly changes; a digital "
        "message that needs more is given up.",
    )
    noise_figure_db: Annotated[float, Field(ge=0, le=100)] = key(
        5.0, "Noise figure of the receiver [dB]; used only with uplink.tx_power_dbm."
    )
    profile: str | None = key(
        None,
        "Start from a shipped channel profile or a YAML file; keys beside it replace its own. null once resolved.",
    )
