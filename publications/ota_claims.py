"""The claims of the over-the-air paper."""

from __future__ import annotations

from publications.bound_pages import OTA_BOUND_CLAIMS
from publications.claims import Claim
from publications.ota_checks import (
    EARLY,
    METRIC,
    SIGNIFICANT,
    accounting_of_steps,
    accounting_of_updates,
    accuracy_of_exact,
    at_one_clip_norm,
    even_iterations_are_free,
    falls_with_epsilon,
    iid_beats_baseline,
    impeded,
    ordered,
    over_baseline,
    power_of_exact,
    step_beats_update,
    upcycled_at_equal_epsilon,
    with_jammer,
)
from publications.ota_points import ALGORITHMS
from publications.repetition import REPETITION_CLAIMS
from publications.tuned_claims import ahead_when_tuned

_WHEN = {"in the first quarter of the rounds": EARLY, "in the last quarter": METRIC}

CLAIMS = (
    *(
        Claim(
            f"At the learning rate 0.05, {ALGORITHMS[first]} is more accurate than {ALGORITHMS[second]}, {when}.",
            "V-A, Fig. 2, 4",
            ordered(first, second, metric=metric),
        )
        for first, second in (
            ("upcycled", "fedprox"),
            ("upcycled", "fedavg"),
            ("fedprox", "fedavg"),
        )
        for when, metric in _WHEN.items()
    ),
    *(
        Claim(
            "At the learning rate 0.05, Upcycled-FL leads FedProx and FedAvg significantly (our reading: by more than "
            f"1 point), {when}.",
            "V-A, Fig. 2, 4",
            ordered("upcycled", "fedprox", "fedavg", metric=metric, least=SIGNIFICANT),
        )
        for when, metric in _WHEN.items()
    ),
    *(
        Claim(
            "At the learning rate 0.05, each of the three is more accurate than the baseline [13] at the "
            f"same ε, {when}.",
            "V-A, Fig. 2, 4",
            at_one_clip_norm(over_baseline(metric)),
        )
        for when, metric in _WHEN.items()
    ),
    *(
        Claim(
            f"At the learning rate 0.05, with the jammer, Upcycled-FL surpasses FedProx and FedAvg, {when}.",
            "V-A, Fig. 6-8",
            at_one_clip_norm(with_jammer(metric)),
        )
        for when, metric in _WHEN.items()
    ),
    Claim("As ε decreases, accuracy falls.", "V-A, Fig. 6-8", falls_with_epsilon),
    Claim(
        "At ε = 0.1 the noise significantly impedes convergence (our reading: more than 10 points below ε = 1).",
        "V-A, Fig. 6-8",
        impeded,
    ),
    Claim(
        "On iid data at (0.15, 0.01), FedAvg is more accurate than the baseline, in the last quarter.",
        "V-B, Fig. 9",
        iid_beats_baseline(),
    ),
    Claim(
        "On iid data, FedAvg leads it significantly (our reading: by more than 1 point), in the last quarter.",
        "V-B, Fig. 9",
        iid_beats_baseline(SIGNIFICANT),
    ),
    Claim(
        "A run of the scheme is (ε, δ)-DP for one sample at the ε stated.",
        "Theorems 1-4",
        accounting_of_updates,
        everywhere=True,
    ),
    Claim(
        "It has that ε where an update is one step of per-sample-clipped gradients on all of a client's data.",
        "ours; Theorems 1-4",
        accounting_of_steps,
        everywhere=True,
    ),
    Claim("Even iterations of Upcycled-FL cost no privacy.", "Lemma 1", even_iterations_are_free, everywhere=True),
    Claim(
        "At τ = 1 and equal accounted ε for one sample, Upcycled-FL is more accurate than FedProx and FedAvg.",
        "ours",
        upcycled_at_equal_epsilon,
    ),
    Claim(
        "At equal accounted ε for one sample, one clipped step a round (learning rate 2, τ = 2) is more accurate than "
        "a whole update (learning rate 0.05, τ = 1).",
        "ours",
        step_beats_update,
    ),
    Claim("Exact calibration of the jammer saves power against Theorem 2.", "ours", power_of_exact),
    Claim("Exact calibration of the jammer gains accuracy against Theorem 2.", "ours", accuracy_of_exact),
    *(
        Claim(
            f"All tuned alike, at published ε = 6.52, {first} is more accurate than {' and '.join(others)}.",
            "ours",
            ahead_when_tuned("ota-cross-layer-dp", "algorithms", *methods),
        )
        for first, others, methods in (
            ("Upcycled-FL", ("FedProx", "FedAvg"), ("Upcycled", "FedProx", "FedAvg")),
            ("FedProx", ("FedAvg",), ("FedProx", "FedAvg")),
        )
    ),
    *OTA_BOUND_CLAIMS,
    *REPETITION_CLAIMS,
)
