"""The methods of the wavelet paper: where their runs stand in the studies, and what they gain."""

from __future__ import annotations

from typing import Any

from publications.effects import MissingRuns
from publications.levels import DATASET, DATASETS, Method, levels_of_any
from publications.studies import Point
from publications.tables import Tables
from publications.wavelet_numbers import GAINS, SIGMAS

SIGMA, MECHANISM, OPTIMIZER = (
    "training.privacy.noise_multiplier",
    "training.privacy.mechanism",
    "training.optimizer.name",
)
KEYS = (DATASET, SIGMA)
WORDS = {
    DATASET: "data",
    SIGMA: "σ",
    MECHANISM: "noise",
    OPTIMIZER: "optimizer",
    "training.privacy.epsilon": "target ε",
    "model.name": "model",
    "training.optimizer.lr": "learning rate",
    "training.privacy.clip": "C",
    "training.privacy.gradient_clip": "C",
    "gaussian": "plain",
    "wavelet": "wavelet",
    "0.33333333": "1/3",
    "adam": "Adam",
    "adagrad": "AdaGrad",
    **DATASETS,
}
CLIENT_WORDS = {**WORDS, SIGMA: "z"}
"""Words of studies of a client's privacy: Algorithm 2 calls its multiplier z."""

DP_SGD, WAV = (Method("sample", {MECHANISM: noise}) for noise in ("gaussian", "wavelet"))
DYNAMIC, WEIGHTED, BASELINE = Method("dynamic"), Method("weighted"), Method("baseline")
THIRD, FIFTH = Method("third"), Method("fifth")
DYNAMIC_EQUAL = Method("dynamic-equal")
FEDAVG, FEDAVG_WAV = (Method("client", {MECHANISM: noise}) for noise in ("gaussian", "wavelet"))
CLIPPED, CLIPPED_WAV = (Method("client-gradients", {MECHANISM: noise}) for noise in ("gaussian", "wavelet"))
FEDAVG_DYNAMIC, FEDAVG_WEIGHTED = Method("client-dynamic"), Method("weighted-client")
PLAIN = {name: Method("optimizers", {OPTIMIZER: name, MECHANISM: "gaussian"}) for name in ("adam", "adagrad")}
PLAIN_WAV = {name: Method("optimizers", {OPTIMIZER: name, MECHANISM: "wavelet"}) for name in PLAIN}
PLAIN_WEIGHTED = {name: Method("weighted-optimizers", {OPTIMIZER: name}) for name in PLAIN}

ROWS = (
    ("DP-SGD", DP_SGD, WAV, WEIGHTED),
    ("Dyn-DP-SGD", DYNAMIC, WAV, None),
    ("DP-Adam", PLAIN["adam"], PLAIN_WAV["adam"], PLAIN_WEIGHTED["adam"]),
    ("DP-AdaGrad", PLAIN["adagrad"], PLAIN_WAV["adagrad"], PLAIN_WEIGHTED["adagrad"]),
    ("DP-FedAvg", FEDAVG, FEDAVG_WAV, FEDAVG_WEIGHTED),
    ("Dyn-DP-FedAvg", FEDAVG_DYNAMIC, FEDAVG_WAV, None),
)
"""Who is improved upon, its runs, those with wavelets as published, and those with wavelets at equal accounted ε."""


PAPER_LEVELS = tuple({DATASET: data, SIGMA: sigma} for data in DATASETS for sigma in SIGMAS)
"""The levels at which the paper states gains."""

NOT_RUN = "not run"


def gain_rows(tables: Tables) -> list[dict[str, Any]]:
    """``gains.csv``: every gain that the paper states, and ours at equal σ and at equal accounted ε.

    Raises:
        MissingRuns: no method has a finished point.
    """
    levels_of_any(tables, [method for _, *methods in ROWS for method in methods if method is not None], KEYS)
    return [
        {
            "over": name,
            "data": DATASETS[level[DATASET]],
            "σ": level[SIGMA],
            "paper, points": f"+{GAINS[name][level[DATASET]][level[SIGMA]]:g}",
            "here at equal σ": _gain(tables, wavelet, plain, level),
            "here at equal accounted ε": "–" if weighted is None else _gain(tables, weighted, plain, level),
        }
        for name, plain, wavelet, weighted in ROWS
        for level in PAPER_LEVELS
    ]


def _gain(tables: Tables, method: Method, plain: Method, level: Point) -> str:
    try:
        return tables.difference(method.at(level), plain.at(level)).text()
    except MissingRuns:
        return NOT_RUN
