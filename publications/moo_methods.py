"""The methods of Table III of the paper on multi-objective clipping, and where their runs stand."""

from __future__ import annotations

from publications.levels import DATASET, DATASETS, Method

EPSILON, MECHANISM = "training.privacy.epsilon", "training.privacy.mechanism"
KAPPA, NORM_RATE = "training.privacy.clipping.kappa", "training.privacy.clipping.lr"
KEYS = (DATASET, EPSILON)
WORDS = {
    DATASET: "data",
    EPSILON: "target ε",
    MECHANISM: "noise",
    "model.name": "model",
    KAPPA: "κ",
    NORM_RATE: "η_C",
    "gaussian": "DP-SGD",
    "wavelet": "DP-SGD-WAV",
    **DATASETS,
}

DP_SGD, WAV = (Method("sample", {MECHANISM: noise}) for noise in ("gaussian", "wavelet"))
FEDAVG, DYNAMIC, TEMPERED, MOO = (Method(name) for name in ("client", "dynamic", "tempered", "moo"))
DYNAMIC_EQUAL, WEIGHTED, MOO_PRIVATE = (Method(name) for name in ("dynamic-equal", "weighted", "moo-private"))
MOO_STEP = Method("moo-step")
MOO_ONCE, DP_SGD_ONCE = Method("moo-once"), Method("sample-once")

TUNED_NAMES: tuple[tuple[Method, str], ...] = (
    (DP_SGD, "DP-SGD"),
    (DP_SGD_ONCE, "DP-SGD"),
    (WAV, "DP-SGD-WAV"),
    (DYNAMIC, "dynamic DP"),
    (TEMPERED, "tempered sigmoid"),
    (MOO, "MOO"),
    (MOO_ONCE, "MOO"),
    (MOO_STEP, "MOO"),
    (MOO_PRIVATE, "MOO, private"),
)
"""What the sweep calls a method. DP-FedAvg, whose ε is a client's, is in none, nor are the forms at equal accounted ε
of dynamic DP and wavelets, whose noise is another."""

METHODS: dict[str, tuple[Method, Method | None]] = {
    "FL w/ DP-SGD": (DP_SGD, DP_SGD),
    "FL w/ DP-FedAvg": (FEDAVG, None),
    "FL w/ Dynamic DP": (DYNAMIC, DYNAMIC_EQUAL),
    "FL w/ DP-SGD-WAV": (WAV, WEIGHTED),
    "DP-FL w/ Tempered Sigmoid": (TEMPERED, TEMPERED),
    "DP-FL w/ MOO": (MOO, MOO_PRIVATE),
}
"""The methods of Table III: as published, and at equal accounted ε. DP-FedAvg protects clients: no ε compares there."""
