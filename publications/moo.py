"""Multi-objective adaptive clipping: the six methods of its Table III at three ε."""

from __future__ import annotations

from publications.levels import DATASET
from publications.moo_claims import CLAIMS
from publications.moo_methods import EPSILON, KEYS, MECHANISM, WORDS
from publications.moo_numbers import NON_PRIVATE, TABLE_III
from publications.moo_other_data import OTHER_DATA, other_data_rows
from publications.moo_page import CURVES, FIGURES
from publications.moo_rates import rates_rows
from publications.moo_setting import COVERAGE, SETTING
from publications.moo_table import all_numbers_rows, lead_rows, table_iii_rows
from publications.moo_theory import THEORY_FIGURE
from publications.paper import Paper, PaperTable
from publications.studies import AtEqualEpsilon, AuditOf, PaperNumber, PaperStudy, Point, Size
from publications.tuning_runs import tuned_studies


def _numbers_of(method: str, where: Point) -> tuple[PaperNumber, ...]:
    return tuple(
        PaperNumber({**where, DATASET: data, EPSILON: float(epsilon)}, accuracy / 100, "Table III")
        for data, by_epsilon in TABLE_III[method].items()
        for epsilon, accuracy in by_epsilon.items()
    )


def _same_level(study: str, only: str = "") -> AtEqualEpsilon:
    def place(point: Point) -> Point | None:
        return {key: point[key] for key in KEYS} if not only or point.get(MECHANISM) == only else None

    return AtEqualEpsilon(study, place)


EVERY: tuple[Size, ...] = ("small", "medium", "full")
TRIALS = 60
AUDIT = (AuditOf({DATASET: "mnist", EPSILON: 6.38}, TRIALS),)

MULTI_OBJECTIVE = Paper(
    name="moo-adaptive-clipping",
    title="Multi-Objective Optimization for Privacy-Utility Balance in Differentially Private Federated Learning",
    reference="Ranaweera, Smith, Pathirana, Ding, Rakotoarivelo, Seneviratne, 2025",
    studies=(
        PaperStudy(
            "baseline",
            "without privacy (Table III, first line)",
            numbers=tuple(
                PaperNumber({DATASET: data}, value / 100, "Table III") for data, value in NON_PRIVATE.items()
            ),
            sizes=EVERY,
            words=WORDS,
        ),
        PaperStudy(
            "sample",
            "DP-SGD and DP-SGD-WAV (Table III)",
            numbers=(
                *_numbers_of("FL w/ DP-SGD", {MECHANISM: "gaussian"}),
                *_numbers_of("FL w/ DP-SGD-WAV", {MECHANISM: "wavelet"}),
            ),
            equal=_same_level("weighted", "wavelet"),
            sizes=EVERY,
            words=WORDS,
        ),
        PaperStudy(
            "client", "DP-FedAvg (Table III)", numbers=_numbers_of("FL w/ DP-FedAvg", {}), sizes=EVERY, words=WORDS
        ),
        PaperStudy(
            "dynamic",
            "dynamic DP (Table III)",
            numbers=_numbers_of("FL w/ Dynamic DP", {}),
            equal=_same_level("dynamic-equal"),
            audits=AUDIT,
            sizes=EVERY,
            words=WORDS,
        ),
        PaperStudy(
            "tempered",
            "tempered sigmoids (Table III)",
            numbers=_numbers_of("DP-FL w/ Tempered Sigmoid", {}),
            sizes=EVERY,
            words=WORDS,
        ),
        PaperStudy(
            "moo",
            "MOO as published (Table III)",
            numbers=_numbers_of("DP-FL w/ MOO", {}),
            equal=_same_level("moo-private"),
            audits=AUDIT,
            sizes=EVERY,
            words=WORDS,
            curves=CURVES,
        ),
        PaperStudy(
            "moo-step",
            "MOO whose norm follows raw gradients once a step (a variant)",
            sizes=("small", "medium"),
            words=WORDS,
            curves=CURVES,
        ),
        PaperStudy("rates", "MOO over κ and η_C", sizes=("small", "medium"), words=WORDS, curves=CURVES),
        PaperStudy("rates-step", "MOO once a step, over κ and η_C", sizes=("small",), words=WORDS, curves=CURVES),
        PaperStudy(
            "rates-private", "MOO with private feedback, over κ and η_C", sizes=("small",), words=WORDS, curves=CURVES
        ),
        PaperStudy(
            "moo-private",
            "MOO with private feedback, at equal accounted ε",
            audits=AUDIT,
            sizes=EVERY,
            words=WORDS,
            curves=CURVES,
        ),
        PaperStudy(
            "falling-rate",
            "DP-SGD whose learning rate falls as the norm of MOO with private feedback does, tuned",
            sizes=("medium",),
            words=WORDS,
        ),
        PaperStudy(
            OTHER_DATA["fashion_mnist"],
            "the methods at the settings that won on MNIST, on Fashion-MNIST",
            sizes=("medium",),
            words=WORDS,
        ),
        PaperStudy(OTHER_DATA["cifar10"], "the same on CIFAR-10", sizes=("medium",), words=WORDS),
        PaperStudy("weighted", "DP-SGD-WAV at equal accounted ε", words=WORDS),
        PaperStudy(
            "moo-once",
            "MOO as published at the paper's size, one seed",
            numbers=_numbers_of("DP-FL w/ MOO", {}),
            sizes=("full",),
            words=WORDS,
            curves=CURVES,
        ),
        PaperStudy(
            "sample-once",
            "DP-SGD at the paper's size, one seed",
            numbers=_numbers_of("FL w/ DP-SGD", {}),
            sizes=("full",),
            words=WORDS,
        ),
        PaperStudy(
            "baseline-once",
            "without privacy at the paper's size, one seed",
            numbers=(PaperNumber({}, NON_PRIVATE["mnist"] / 100, "Table III"),),
            sizes=("full",),
            words=WORDS,
        ),
        PaperStudy("dynamic-equal", "dynamic DP at equal accounted ε", words=WORDS),
        *tuned_studies("moo-adaptive-clipping"),
    ),
    claims=CLAIMS,
    figures=(*FIGURES, THEORY_FIGURE),
    tables=(
        PaperTable("table-iii", "Table III, the paper's numbers and ours", table_iii_rows),
        PaperTable("table-iii-all", "Every number of Table III, and ours", all_numbers_rows),
        PaperTable("leads", "Lead of MOO over the best other method, as section V-C states it and here", lead_rows),
        PaperTable("other-data-beside", "Table III at ε = 3.61, every method as tuned on MNIST", other_data_rows),
        PaperTable("chosen-rates", "κ and η_C on validation samples", rates_rows),
    ),
    setting=SETTING,
    coverage=COVERAGE,
)
