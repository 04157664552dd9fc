"""The uplink: how updates reach the server, with what power, and under whose jamming."""

from typing import Annotated, Literal, assert_never

from pydantic import Field

from wirelessfl.scenario.base import (
    BitsPerSecond,
    CoreVariant,
    Count,
    Decibel,
    External,
    Norm,
    Probability,
    Rule,
    Section,
    Wait,
    key,
)
from wirelessfl.scenario.codec import Codec, NoCodec
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.jammer import Jammer, jamming_rules
from wirelessfl.scenario.modulation import AnalogModulation, Modulation
from wirelessfl.scenario.power_control import CrossLayer, PowerControl
from wirelessfl.scenario.reception import ArrayReceiver, Receiver, SharedBandReceiver, SumCombiner

Tolerated = Annotated[float, Field(ge=0, lt=0.5)]


class Ideal(Section):
    """Noise-free aggregation, the reference."""

    kind: Literal["ideal"] = key("ideal", "The server receives the exact weighted sum.")
    clip: Norm | None = key(None, "Clip norm τ of the local update. null: no clipping.")


class OverTheAir(Section, exclusive=(("snr_db", "tx_power_dbm"),), otherwise={"snr_db": 1.0}):
    """All clients send at once and the radio channel adds them up."""

    kind: Literal["over_the_air"] = key("over_the_air", "Analogue: the radio channel adds up all clients' signals.")
    snr_db: Decibel | None = key(
        None, "SNR_i = P_i/(d σ_c²), the same for every client [dB]; default 1 without tx_power_dbm."
    )
    tx_power_dbm: Decibel | None = key(None, "Transmit power of a client [dBm], instead of snr_db.")
    iq_packing: bool = key(
        False,
        "Two real symbols in each channel use: half the airtime, cross-talk with imperfect CSI. At a given snr_db the "
        "energy stays and the power doubles.",
    )
    peak_power_db: Decibel | None = key(
        None,
        "Largest power of a complex symbol over the mean P_i/num_symbols: what exceeds it is clipped, phase kept [dB]. "
        "null: no limit.",
    )
    clip: Norm = key(1.0, "Clip norm τ of the local update; the transmit power is set for it.")
    power_control: PowerControl = key(CrossLayer(), "How server and clients set their gains.")
    receiver: Receiver = key(SumCombiner(), "Antennas of each receiver, and how they are combined.")
    modulation: Modulation = key(AnalogModulation(), "How updates become symbols.")
    jammer: Jammer | None = key(None, "Cooperative jammer. null: none.")
    slot_groups: Annotated[int, Field(ge=1)] = key(
        1,
        "Random groups of the clients of a round that send in slots of their own: training.robust combines the sums of "
        "the groups.",
    )

    def rules(self) -> list[Rule]:
        """A jammer covers both quadratures where they carry data, and only signals that are known."""
        if self.jammer is None:
            return []
        outside = [part for part in (self.receiver, self.modulation) if isinstance(part, External)]
        antennas = self.receiver.antennas if isinstance(self.receiver, ArrayReceiver) else 1
        foreign = "jammer: null with code from outside"
        return [
            *jamming_rules(self.jammer, self.iq_packing, antennas),
            *((True, "jammer", f"a jammer with {one.tag}: {one.reference}", foreign) for one in outside),
        ]


class Packets(Section):
    """Packets so short that they fall behind Shannon's rate."""

    blocklength: Annotated[int, Field(ge=100, le=10**9)] = key(500, "Complex channel uses of a packet.")
    error_probability: Annotated[float, Field(gt=0, le=0.5)] = key(
        1.0e-3, "Probability that a packet is lost; it is repeated until it arrives."
    )


class AdaptiveRate(Section):
    """Every upload at the rate that the client's channel carries."""

    model: Literal["adaptive"] = key("adaptive", "Shannon's rate of the client's own band and channel.")
    min_rate_bps: BitsPerSecond = key(
        1.0e4,
        "A client whose channel carries less stays silent [bit/s]; at 0 Rayleigh fading has an infinite mean airtime.",
    )
    outage: Annotated[float, Field(gt=0, lt=1)] | None = key(
        0.01,
        "With imperfect CSI: probability that the channel carries less than the rate, so that the upload is lost. "
        "null: the estimate is taken as exact, and about half of all uploads are lost.",
    )
    power: Literal["equal", "water_filling"] = key(
        "equal", "How a client divides its power over groups of subcarriers (channel.fading.groups)."
    )
    packets: Packets | None = key(
        None, "Rate of packets of finite length (Polyanskiy, Poor, Verdú 2010), with repetitions. null: Shannon's."
    )


class FixedRate(Section):
    """Every upload at one rate."""

    model: Literal["fixed"] = key("fixed", "One rate, whatever the channel: where it carries less, the upload is lost.")
    rate_bps: BitsPerSecond = key(1.0e5, "The rate R [bit/s].")


class McsRate(Section):
    """Every upload at the rate of a modulation and coding scheme of NR."""

    model: Literal["mcs"] = key(
        "mcs",
        "The most efficient scheme of TS 38.214 Table 5.1.3.1-1 that the channel carries; below the first a client "
        "stays silent.",
    )
    gap_db: Annotated[float, Field(ge=0, le=60)] = key(
        3.0, "Gap Γ: how much more SNR a scheme needs than Shannon's limit, η = log2(1 + γ/Γ) [dB]."
    )
    outage: Annotated[float, Field(gt=0, lt=1)] | None = key(
        0.01,
        "With imperfect CSI: probability that the channel carries less than the scheme, so that the upload is lost. "
        "null: the estimate is taken as exact.",
    )


class RecordedRate(CoreVariant, core="wirelessfl.assembly.link_log:recorded_rates", files=("file",)):
    """Rates, delays and losses of a log."""

    model: Literal["recorded"] = key(
        "recorded", "Rate, delay and loss of each client from a log, in place of its channel and its share of the band."
    )
    file: str | None = key(
        None,
        "CSV file with the columns time_s, client, rate_bps, delay_s, loss; each line holds to the client's next, "
        "the last one ends its log.",
    )


Rate = Annotated[AdaptiveRate | FixedRate | McsRate | RecordedRate, Family("model", default="adaptive")]


class HarqProcess(Section):
    """Retransmissions of a message within its round, with Chase combining."""

    max: Annotated[int, Field(ge=1, le=64)] = key(4, "Transmissions of a message, the first included.")
    combining: Literal["chase"] = key("chase", "Chase: the receiver adds up the SNR of all transmissions.")
    feedback_s: Annotated[float, Field(ge=0, le=1e6)] = key(
        0.0, "From the end of a transmission that was lost to the beginning of the next [s]."
    )
    channel: Literal["same", "independent"] = key(
        "same",
        "same: the block of fading outlasts the round; independent: a new draw for each transmission, as with "
        "frequency hopping.",
    )


class DigitalLink(Section, exclusive=(("snr_db", "tx_power_dbm"),), otherwise={"snr_db": 1.0}):
    """Base of the digital uplinks: every client sends a message of its own."""

    kind: str = key("", "The kind.")
    snr_db: Decibel | None = key(
        None, "SNR 2p/(N0 B) over the whole band, the same for every client [dB]; default 1 without tx_power_dbm."
    )
    tx_power_dbm: Decibel | None = key(None, "Transmit power of a client [dBm], instead of snr_db.")
    rate: Rate = key(AdaptiveRate(), "How fast a client sends.")
    codec: Codec = key(NoCodec(), "How the vectors of an upload become bits.")
    receiver: SharedBandReceiver | None = key(
        None, "digital: an array of antennas, by which groups of clients share a band. null: one antenna."
    )
    harq: HarqProcess | None = key(None, "Hybrid ARQ: lost messages are sent again. null: they are lost.")
    grant_delay_s: Annotated[float, Field(ge=0, le=1e6)] = key(
        0.0, "From a client's scheduling request to the grant of its band, before each message [s]."
    )


class Digital(DigitalLink):
    """Every client sends its update by itself, as soon as it has trained."""

    kind: Literal["digital"] = key("digital", "Digital: every client uploads a message of its own.")
    clip: Norm | None = key(None, "Clip norm τ of the local update. null: no clipping.")
    access: Literal["ofdma", "tdma"] = key(
        "ofdma", "ofdma: an equal part of the band each, at once; tdma: the whole band, one after the other as ready."
    )
    ofdma: Literal["fixed", "reallocate"] = key(
        "fixed",
        "fixed: every client of the round keeps its part of the band; reallocate: those that send at an instant divide "
        "the whole band, each with its power as it is.",
    )
    bits: Annotated[int, Field(ge=1, le=16)] | None = key(
        None,
        "The earlier name of codec: {name: uniform, bits: ...}. null: as the codec says.",
    )


class StageDropout(Section):
    """Probabilities that a client vanishes for good while it sends its message of a stage."""

    advertise_keys: Probability = key(0.0, "Probability of dropping out while advertising keys.")
    share_keys: Probability = key(0.0, "Probability of dropping out while sharing keys.")
    masked_input: Probability = key(0.0, "Probability of dropping out while sending the masked input.")
    unmask: Probability = key(0.0, "Probability of dropping out while sending shares for unmasking.")


class SecureAggregation(DigitalLink):
    """The server learns the sum of the updates and no single one (DESIGN §6)."""

    kind: Literal["secure_aggregation"] = key(
        "secure_aggregation", "Masked digital uploads: the server learns only their sum."
    )
    clip: Norm = key(1.0, "Clip norm τ of the local update; it bounds what the ring has to hold.")
    protocol: Literal["pairwise_prf", "secagg", "secagg_plus"] = key(
        "secagg_plus", "Seeds agreed once (Hu et al.), Bonawitz et al. 2017, or Bell et al. 2020 on a sparse graph."
    )
    bits: Annotated[int, Field(ge=2, le=64)] = key(
        32, "The sum is taken modulo 2^bits, in the finest steps at which it cannot overflow."
    )
    threshold: Annotated[int, Field(ge=2, le=10**9)] | None = key(
        None, "Shares that recover a secret. null: 2/3 of the clients (secagg), or as the graph needs (secagg_plus)."
    )
    neighbours: Annotated[int, Field(ge=1, le=10**9)] | None = key(
        None, "secagg_plus: degree of the graph. null: the least that tolerates max_colluding and max_dropouts."
    )
    max_colluding: Tolerated = key(0.1, "secagg_plus: share of a round's clients that may collude, at 40 bits.")
    max_dropouts: Tolerated = key(0.1, "secagg_plus: share of a round's clients that may drop out, at 30 bits.")
    hide_weights: bool = key(False, "The server learns the sum of the sample counts n_i and no single n_i.")
    max_samples: Count | None = key(
        None, "hide_weights: a public bound on every n_i. null: |D|, which always holds but costs resolution."
    )
    stage_timeout_s: Wait | None = key(
        None,
        "How long the server waits for the answers of a stage [s]. null: it knows who is lost, and waits for the rest.",
    )
    retries: Annotated[int, Field(ge=0, le=100)] = key(
        1, "pairwise_prf: further attempts, each with a new nonce and without the clients that were missing."
    )
    dropout: StageDropout = key(
        StageDropout(), "Clients that drop out during the protocol, in addition to those of faults."
    )


Uplink = Annotated[Ideal | OverTheAir | Digital | SecureAggregation, Family("kind", default="over_the_air")]


def jammer_of(uplink: Uplink) -> Jammer | None:
    """The jammer of an uplink, None without one."""
    return uplink.jammer if isinstance(uplink, OverTheAir) else None


def transmits_in_watts(uplink: Uplink) -> bool:
    """Whether clients transmit a power in watts, rather than one that is relative to the noise."""
    match uplink:
        case OverTheAir() | Digital() | SecureAggregation():
            return uplink.tx_power_dbm is not None
        case Ideal():
            return False
        case _:
            assert_never(uplink)


def earlier_names(uplink: Uplink) -> tuple[str, ...]:
    """Notes on keys of an uplink whose names are earlier ones."""
    if not isinstance(uplink, Digital) or uplink.bits is None:
        return ()
    now = f"{{name: uniform, bits: {uplink.bits}}}"
    return (f"uplink.bits: an earlier name, which does the same as uplink.codec: {now}",)
