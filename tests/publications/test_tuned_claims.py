"""Claims about methods at the settings that won: no lead is decided over a setting at an end of its grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from publications import tuned_claims
from publications.catalogue import PAPERS, find_paper
from publications.claims import Outcome, Verdict, not_tested, verdict
from publications.effects import MissingRuns
from publications.results import judge_all, read_results
from publications.studies import STUDIES, Size
from publications.sweep_keys import LR
from publications.sweeps import SWEEPS
from publications.tables import RunRow, StudyTable, Tables, value_of
from publications.tuned_claims import ahead_when_tuned, decided_between_rates, decided_where_tuned
from publications.tuning_runs import tuned_point

ZCDP = ("zcdp-secure-aggregation", "full", ("paper's scheme", "DP-SGD shuffled", "DP-SGD Poisson"))
ROOT = Path(__file__).resolve().parents[2]
MECHANISM, SIGMA = "training.privacy.mechanism", "training.privacy.noise_multiplier"
AIR = ("ota-cross-layer-dp", "small", ("FedProx", "FedAvg"))
WAVELET = ("wavelet-dp-fl", "small", ("wavelet, weighted", "wavelet, coefficients clipped"))
MOO = ("moo-adaptive-clipping", "small", ("tempered sigmoid", "DP-SGD"))
DYNAMIC = ("moo-adaptive-clipping", "small", ("dynamic DP", "DP-SGD"))


@pytest.mark.parametrize(
    ("compared", "sweep", "lead", "outcome"),
    [
        (ZCDP, "network", 0.02, Outcome.CONFIRMED),
        (WAVELET, "sample", 0.02, Outcome.UNDECIDED),  # the learning rate of clipped coefficients won at an end
        (WAVELET, "sample", -0.02, Outcome.CONTRADICTED),  # that of the weighted form did not
        (MOO, "clipping", 0.02, Outcome.CONFIRMED),  # DP-SGD's is inside
        (MOO, "clipping", -0.02, Outcome.UNDECIDED),  # that of tempered sigmoids at an end
        (DYNAMIC, "clipping", 0.02, Outcome.CONFIRMED),
        (DYNAMIC, "clipping", -0.02, Outcome.UNDECIDED),  # its ratios won at ends
        (AIR, "algorithms", 0.02, Outcome.CONFIRMED),
        (AIR, "algorithms", -0.02, Outcome.UNDECIDED),  # μ of FedProx won at an end
    ],
)
def test_no_lead_is_decided_over_a_setting_at_an_end_of_its_grid(
    compared: tuple[str, Size, tuple[str, ...]], sweep: str, lead: float, outcome: Outcome
) -> None:
    paper, size, methods = compared
    runs = []
    for name in methods:
        point = {key: value_of(value) for key, value in tuned_point(paper, sweep, size, name).items()}
        # The spread over the seeds gives the interval a width
        accuracies = [0.8 + (lead + 0.001 * seed if name == methods[0] else 0.0) for seed in (1, 2, 3)]
        runs += [RunRow(point, seed, 20, {"test_accuracy": one}) for seed, one in enumerate(accuracies, start=1)]
    table = StudyTable(f"tuned-{sweep}", tuple(runs[0].point), tuple(runs))
    found = ahead_when_tuned(paper, sweep, *methods)(Tables({"size": size}, {table.name: table}))
    assert found.outcome is outcome
    assert found.effect is not None
    told = outcome is Outcome.UNDECIDED
    assert ("at an end of the grid" in found.reason) == told
    assert ("at an end of its grid" in found.effect.name) == (told and lead > 0)


@pytest.mark.parametrize(
    ("study", "size", "holds", "outcome"),
    [
        ("optimizers", "medium", True, Outcome.CONFIRMED),  # every rate inside its grid
        ("optimizers", "medium", False, Outcome.CONTRADICTED),
        ("optimizers", "small", True, Outcome.UNDECIDED),  # no sweep of that study there
        ("optimizers", "small", False, Outcome.UNDECIDED),
        ("optimizers", "small", None, Outcome.NOT_TESTED),
        ("sample", "small", True, Outcome.UNDECIDED),  # its sweep has a study of its own
        ("client-gradients", "full", True, Outcome.UNDECIDED),
    ],
)
def test_nothing_is_decided_at_a_rate_that_was_not_tuned(
    study: str, size: Size, holds: bool | None, outcome: Outcome
) -> None:
    first = not_tested("no run") if holds is None else verdict(holds, "numbers", "as seen")
    stored = read_results(find_paper("wavelet-dp-fl"), STUDIES.parents[1] / "results")
    tables = stored.get(size, Tables({"size": size}, {}))
    found = decided_where_tuned("wavelet-dp-fl", study, lambda tables: first)(tables)
    assert found.outcome is outcome and found.numbers == first.numbers
    assert found.reason.endswith(first.reason)
    assert ("no sweep of this size chose" in found.reason) is (outcome is Outcome.UNDECIDED)


(GRADIENTS,) = (one for one in SWEEPS["wavelet-dp-fl"] if one.study == "client-gradients")


def clipped(name: str, rate: float, data: str = "mnist") -> RunRow:
    """A run of a method of the sweep of Algorithm 2."""
    (method,) = (one for one in GRADIENTS.methods if one.name == name)
    private = method.fixed["training.privacy"]
    point = {"data.dataset.name": data, MECHANISM: private["mechanism"]}
    return RunRow({**point, SIGMA: value_of(private["noise_multiplier"]), LR: value_of(rate)}, 1, 20, {})


def judged_clipped(runs: Sequence[RunRow], holds: bool = True) -> Verdict:
    """Whether a claim on Algorithm 2 that is decided otherwise stays so with these runs."""
    table = StudyTable(GRADIENTS.study, tuple(runs[0].point), tuple(runs))
    check = decided_where_tuned("wavelet-dp-fl", GRADIENTS.study, lambda tables: verdict(holds, "numbers", "as seen"))
    return check(Tables({"size": "medium"}, {table.name: table}))


NAMES = [one.name for one in GRADIENTS.methods]


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("ends", [{}, {"plain, z = 1": 0}, {"wavelet, z = 3": -1}, {"plain, z = 1.5": 0, NAMES[-1]: 0}])
def test_nothing_is_decided_at_a_rate_that_won_at_an_end_of_its_grid(ends: dict[str, int], holds: bool) -> None:
    """MNIST, on which the sweep ran, tells."""
    rates = GRADIENTS.methods[0].grid[LR]
    runs = [clipped(name, rates[ends.get(name, 1)]) for name in NAMES]
    found = judged_clipped([*runs, clipped(NAMES[0], rates[0], data="cifar10")], holds)
    assert (found == verdict(holds, "numbers", "as seen")) is not bool(ends)
    if ends:
        assert found.outcome is Outcome.UNDECIDED
        assert found.reason == f"as seen; the learning rate of {' and '.join(ends)} won at an end of the grid"


def test_a_study_that_does_not_follow_its_sweep_is_refused() -> None:
    runs = [clipped(name, 1.6) for name in NAMES]
    with pytest.raises(MissingRuns, match=r"client-gradients: wavelet, z = 3 has not run"):
        judged_clipped(runs[:-1])
    with pytest.raises(ValueError, match=r"plain, z = 1: client-gradients has the learning rate 0\.7"):
        judged_clipped([clipped(NAMES[0], 0.7), *runs[1:]])
    alike = [replace(run, point={key: run.point[key] for key in (SIGMA, LR)}) for run in runs]
    with pytest.raises(ValueError, match="does not tell wavelet, z = 1 from another method"):
        judged_clipped(alike)


@pytest.mark.parametrize(
    ("rates", "outcome"),
    [
        ((2, 8), Outcome.CONFIRMED),
        ((0.5, 8), Outcome.CONFIRMED),
        ((8, 8), Outcome.UNDECIDED),
        ((0.5, 1), Outcome.UNDECIDED),
    ],
)
def test_one_rate_decides_between_those_that_tuning_chose_alone(
    rates: tuple[float, float], outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network of the zCDP paper trains with the rate 2."""
    chosen = dict(zip(("scheme", "baseline"), rates, strict=True))
    monkeypatch.setattr("publications.tuned_claims.tuned_point", lambda paper, sweep, size, name: {LR: chosen[name]})
    paper, methods = "zcdp-secure-aggregation", tuple(chosen)

    def judged(holds: bool) -> Verdict:
        given = verdict(holds, "1 point", "sure")
        check = decided_between_rates(paper, "against-dp-sgd-network", "network", methods, lambda tables: given)
        return check(Tables({"size": "full"}, {}))

    assert judged(True).outcome is outcome
    assert judged(False).outcome is (Outcome.CONTRADICTED if outcome is Outcome.CONFIRMED else outcome)
    if outcome is Outcome.UNDECIDED:
        told = dict.fromkeys(f"{rate:g}" for rate in rates)
        assert f"is 2 for all, and tuning chose {' to '.join(told)}, so" in judged(True).reason
        assert judged(True).reason.endswith("at it: sure")


@pytest.mark.slow
def test_how_many_verdicts_rest_on_batches_and_norms_whose_ends_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said on the index; all else stays as it is."""
    results = {paper.name: read_results(paper, ROOT / "results") for paper in PAPERS.values()}

    def outcomes() -> dict[tuple[str, str], Outcome]:
        return {
            (paper.name, one.claim.text): one.verdict.outcome
            for paper in PAPERS.values()
            for one in judge_all(paper, results[paper.name])
        }

    before = outcomes()
    monkeypatch.setattr(tuned_claims, "_NO_END", ())
    after = outcomes()
    opened = {claim for claim, outcome in before.items() if after[claim] is not outcome}
    assert all(after[claim] is Outcome.UNDECIDED for claim in opened)
    decided = {Outcome.CONFIRMED, Outcome.CONTRADICTED}
    tuned = {claim for claim, outcome in before.items() if "uned alike" in claim[1] and outcome in decided}
    assert opened <= tuned
    page = " ".join((ROOT / "docs" / "papers" / "index.md").read_text("utf-8").split())
    told = f"{len(opened)} of the {len(tuned)} decided verdicts on tuned methods"
    assert f"If they counted, {told} would be open." in page
