"""The cooperative jammer."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import Decibel, Epsilon, Probability, Rule, Section, key


class Jammer(Section):
    """The cooperative jammer, whose noise protects the updates."""

    epsilon: Epsilon = key(2.0, "ε that channel noise and jamming together have to meet at privacy.delta.")
    margin: Annotated[float, Field(gt=0, le=1e9)] = key(
        1.0, "Factor on the calibrated jammer gain; the paper's experiments use 7."
    )
    calibration: Literal["theorem", "exact"] = key(
        "theorem", "theorem: published sensitivity 1/|D|; exact: accounted sensitivity and exact composition."
    )
    role: Literal["external", "rotating"] = key(
        "external", "A separate node, or the clients in turn; the one that jams does not train in that round."
    )
    noise: Literal["complex", "real"] = key(
        "complex", "Circular noise in both quadratures, or in phase only (the published form)."
    )
    power_db: Decibel | None = key(None, "Power limit P_CJ/(d σ_c²) [dB]. null: unlimited.")
    max_shortfall: Probability = key(
        0.05, "Largest probability, in a round, that the power limit is too low for the jamming needed."
    )
    on_shortfall: Literal["record", "lower_gain"] = key(
        "record", "If the jammer's power is too low: record the higher ε, or lower α_u in that round and keep ε."
    )
    antennas: Annotated[int, Field(ge=1, le=64)] = key(
        1,
        "Antennas of an external jammer, which fade independently. Each sends noise of its own with an equal part of "
        "the power.",
    )
    position_m: Annotated[tuple[float, float], Field(strict=False)] | None = key(
        None, "Where an external jammer stands, [x, y], with a path loss [m]. null: placed as a client is."
    )


def jamming_rules(jammer: Jammer, iq_packing: bool, antennas: int) -> list[Rule]:
    """Contradictions of a jammer beside a receiver of so many antennas: real noise on one line of the complex plane."""
    real, count = jammer.noise == "real", jammer.antennas
    return [
        (real and iq_packing, "jammer.noise", "real with iq_packing: true", "complex, for data in both quadratures"),
        (
            real and antennas > 1,
            "jammer.noise",
            f"real with {antennas} antennas",
            "complex, which no phase of an antenna removes",
        ),
        (
            real and count > 1,
            "jammer.noise",
            f"real with jammer.antennas: {count}",
            "complex: the published form has one antenna, which turns its phase",
        ),
        (
            jammer.role == "rotating" and count > 1,
            "jammer.antennas",
            f"{count} with jammer.role: rotating",
            "1, the antennas of a client; or jammer.role: external",
        ),
    ]
