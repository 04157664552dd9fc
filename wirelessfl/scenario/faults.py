"""What goes wrong: absence, crashes, deep fades, empty batteries."""

from __future__ import annotations

from typing import Annotated, Literal

from wirelessfl.scenario.base import Family, NonNegative, Positive, Probability, Section, key


class BernoulliAvailability(Section):
    """Independent in every round."""

    model: Literal["bernoulli"] = key("bernoulli", "Each client is there with the same probability, independently.")
    p: Probability = key(1.0, "Probability that a selected client is available in a round.")


Availability = Annotated[BernoulliAvailability, Family("model", default="bernoulli")]


class Faults(Section):
    """What goes wrong."""

    availability: Availability = key(BernoulliAvailability(), "Who is there when a round begins.")
    crash_rate_per_s: NonNegative = key(0.0, "Hazard of a crash while a client computes [1/s].")
    fade_threshold: NonNegative = key(0.0, "A client stays silent while |ĥ|²/E|ĥ|² is below this.")
    battery_j: Positive | None = key(None, "Energy that a client can spend in the run [J]. null: no limit.")
