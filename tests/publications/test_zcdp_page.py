"""The numbers in the prose of the zCDP page are those of the stored results, and its claims fit their picture."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from publications.catalogue import PAPERS
from publications.claims import Outcome
from publications.effects import Difference, average
from publications.files import read_rows
from publications.forest import _LINE
from publications.results import read_results, size_folder
from publications.sweeps import find_sweep
from publications.tables import Tables
from publications.texts import epsilon, percent
from publications.tuning import scores
from publications.tuning_runs import read_trials, tuned_point
from publications.zcdp_curves import least_window, network_rises_again, window
from publications.zcdp_measured import FIRST_DROP, LAST, LOSS_RISE
from publications.zcdp_noise import NOISE_TABLES
from publications.zcdp_points import (
    EPSILONS,
    KINDS,
    NOISE,
    PAPER_LEVELS,
    PAPER_NOISES,
    STEPS,
    convergence_point,
    method_point,
    trade_off_point,
)

ROOT = Path(__file__).resolve().parents[2]
NAME = "zcdp-secure-aggregation"
RATE = "training.optimizer.lr"


@pytest.fixture(scope="module")
def page() -> str:
    """The page with every run of blanks as one."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / "papers" / f"{NAME}.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small() -> Tables:
    return read_results(PAPERS[NAME], ROOT / "results")["small"]


@pytest.fixture(scope="module")
def full() -> Tables:
    return read_results(PAPERS[NAME], ROOT / "results")["full"]


def points(found: Difference, digits: int = 2, half_digits: int = 2) -> str:
    """A difference of accuracies as in the prose."""
    return f"{100 * found.mean:+.{digits}f} ± {100 * found.half_width:.{half_digits}f}".replace("-", "−")


def tuned(tables: Tables, kind: str, other: str) -> Difference:
    """The scheme's lead over a form of DP-SGD, all tuned."""
    study, size = f"tuned-{kind}", tables.about["size"]
    first, second = (tuned_point(NAME, kind, size, one) for one in ("paper's scheme", other))
    return tables.difference((study, first), (study, second))


def masks(tables: Tables, kind: str) -> list[Difference]:
    """Masked less plain uploads at each published ε."""
    study = f"trade-off-{kind}"
    first, second = (
        [(study, trade_off_point("full", kind, one, uplink)) for one in EPSILONS]
        for uplink in ("secure_aggregation", "ideal")
    )
    return [tables.difference(*pair) for pair in zip(first, second, strict=True)]


def test_leads_over_dp_sgd(page: str, small: Tables, full: Tables) -> None:
    shuffled, poisson = (tuned(full, "network", one) for one in ("DP-SGD shuffled", "DP-SGD Poisson"))
    assert f"the network's lead is {points(shuffled)} points over shuffled and {points(poisson)} over Poisson" in page
    shuffled, poisson = (tuned(small, "logistic", one) for one in ("DP-SGD shuffled", "DP-SGD Poisson"))
    assert f"at the small size the lead is {points(shuffled)} and {points(poisson)} points" in page
    ours, baseline = (
        [(f"against-dp-sgd-{kind}", method_point("full", kind, method)) for kind in KINDS] for method in (0, 1)
    )
    logistic, network = (full.difference(*pair) for pair in zip(ours, baseline, strict=True))
    assert f"has {points(logistic)} points for logistic regression" in page
    assert f"and {points(network)} for the network" in page


def test_epsilons_of_the_ledger_and_the_audit(page: str, full: Tables) -> None:
    told = [
        epsilon(float(full.band(f"against-dp-sgd-{kind}", method_point("full", kind, 0), "epsilon_accounted").mean[0]))
        for kind in KINDS
    ]
    audit = full.study("against-dp-sgd-logistic").audit({STEPS: 10})
    assert audit is not None
    assert f"the ledger has {told[0]} (Fig. 5) and {told[1]} (Fig. 6)" in page
    assert (
        f"an audit of single uploads in the study of Fig. 5 finds {epsilon(audit.epsilon_empirical)} at least" in page
    )


def test_factors_of_theorem_1_and_lemma_5(page: str) -> None:
    found = {
        row["claim"]: row["effect"]
        for row in read_rows(size_folder(ROOT / "results", PAPERS[NAME], "small") / "claims.csv")
    }
    assert found["Each device has the (ε, δ) of Theorem 1."].startswith("× 12.8,")
    assert found["Exchanging one sample moves an upload by 2ητG/γ at most."].startswith("× 9.1,")
    assert "by up to 9.1 times what Lemma 5 allows" in page and "up to 12.8 times the published one" in page
    one = read_rows(size_folder(ROOT / "results", PAPERS[NAME], "full") / "uploads.csv")[0]
    exact, published = one["ε of the sum, exactly"], one["ε published (Theorem 1)"]
    assert f"the exact curve of a Gaussian has {exact} where the conversion from ρ gives {published}" in page


def test_masks_at_each_epsilon(page: str, full: Tables) -> None:
    digits = {"logistic": (1, 2, 2), "network": (1, 1, 2)}
    first, second = (
        [points(one, 2, places) for one, places in zip(masks(full, kind), digits[kind], strict=True)] for kind in KINDS
    )
    assert f"{first[0]}, {first[1]} and {first[2]} points for logistic regression" in page
    assert f"{second[0]}, {second[1]} and {second[2]} for the network" in page


def test_plain_uploads_cost_less_than_published(page: str, full: Tables) -> None:
    for kind in KINDS:
        factors = []
        for stated in EPSILONS:
            where = trade_off_point("full", kind, stated, "ideal")
            accounted = full.band(f"trade-off-{kind}", where, "epsilon_accounted").mean[0]
            factors.append(f"{stated / float(accounted):.1f}")
        assert f"by a factor of {factors[0]} at ε = 0.1, {factors[1]} at 1 and {factors[2]} at 10" in page


def test_noise_in_the_papers_range(page: str, full: Tables) -> None:
    moved, least = [], []
    for kind, ((low, high), steps) in PAPER_LEVELS.items():
        mean = average(
            [full.difference(convergence_point(kind, low, one), convergence_point(kind, high, one)) for one in steps]
        )
        moved.append(points(mean).removeprefix("+"))
        stated = [full.band(*convergence_point(kind, high, one), "epsilon_published").mean[0] for one in steps]
        least.append(epsilon(float(min(stated))))
    assert f"by {moved[0]} points (logistic regression) and {moved[1]} (network)" in page
    assert f"at a published ε of {least[0]} and of {least[1]} at least" in page


def test_what_larger_noise_costs(page: str, full: Tables) -> None:
    rows = read_rows(size_folder(ROOT / "results", PAPERS[NAME], "full") / "noise-cost.csv")
    costs = {row["ε published"]: row["accuracy"].split(" ")[0] for row in rows}
    told = [f"{-float(costs[one]):.1f}" for one in ("14.4", "2.35", "27.9", "6.4")]
    assert told == ["0.3", "3.8", "0.9", "8.7"]
    assert (
        f"a published ε of 14.4 costs {told[0]} points and one of 2.35 costs {told[1]}; for the network 27.9 costs "
        f"{told[2]} points and 6.4 costs {told[3]}"
    ) in page
    digit = [row for row in rows if float(row["ε published"].replace(",", "")) < 10]
    times = sorted(float(row["times the paper's largest σ"]) for row in digit)
    assert (times[0], times[-1]) == (3, 500) and "[3 to 500 times as large]" in page
    assert max(-float(row["accuracy"].split(" ")[0]) for row in digit) == pytest.approx(8.7, abs=0.05)
    for kind, (low, _), _ in ((kind, *levels) for kind, levels in PAPER_LEVELS.items()):
        ledger = full.study(f"convergence-{kind}")
        assert all(
            ledger.band("epsilon_accounted", {NOISE: low, STEPS: one}).mean[0] > 800_000
            for one in PAPER_LEVELS[kind][1]
        )


def test_stored_tables_are_those_of_the_stored_runs(small: Tables, full: Tables) -> None:
    for size, tables in (("small", small), ("full", full)):
        folder = size_folder(ROOT / "results", PAPERS[NAME], "small" if size == "small" else "full")
        for table in NOISE_TABLES:
            made = [{key: str(value) for key, value in row.items()} for row in table.make(tables)]
            assert read_rows(folder / f"{table.name}.csv") == made


def test_more_local_steps(page: str, full: Tables) -> None:
    early, loss = [], []
    for kind in KINDS:
        few, many = PAPER_LEVELS[kind][1][0], PAPER_LEVELS[kind][1][-1]
        pairs = [
            (convergence_point(kind, one, many), convergence_point(kind, one, few))
            for one in PAPER_NOISES["full", kind]
        ]
        early.append(average([full.difference(*pair, "early_accuracy") for pair in pairs]))
        loss.append(average([full.difference(*pair, "test_loss") for pair in pairs]))
    assert f"({points(early[0])} and {points(early[1])} points over the first quarter of the rounds)" in page
    told = [f"({one.mean:+.3f} ± {one.half_width:.3f})".replace("-", "−") for one in loss]
    assert f"for logistic regression {told[0]} and contradicted for the network {told[1]}" in page
    for row in read_rows(size_folder(ROOT / "results", PAPERS[NAME], "full") / "local-steps.csv"):
        mean, half = (float(one) for one in row["test loss, end"].split(" ± "))
        assert (mean - half > 0) == (float(row["times the paper's largest σ"]) > 1)


def test_the_loss_that_rises(page: str, full: Tables) -> None:
    table = full.study("convergence-logistic")
    found = Difference(table.by_seed(LOSS_RISE, {NOISE: 1e-3, STEPS: 40}))
    told = f"{found.mean:+.4f} ± {found.half_width:.4f}"
    assert f"The difference is {told}. The mean" in page
    assert f"from rounds 37-44 to the last eight by {told} with logistic regression" in page
    places = {}
    for noise in (1e-5, 1e-3, 0.1, 0.5):
        curve = table.curve({NOISE: noise, STEPS: 40}, "train_loss")
        places[noise] = (*least_window(curve), window(curve, *LAST))
    first, least, end = places[1e-3]
    assert first == 22 and places[1e-5][0] == 22 and f"rises from {least:.4f} there to {end:.4f}" in page
    assert f"With σ = 10⁻⁵ it rises from {places[1e-5][1]:.4f} to {places[1e-5][2]:.4f}" in page
    curve = full.study("unscaled-logistic").curve({NOISE: 1e-3, STEPS: 40}, "train_loss")
    fall = Difference(full.study("unscaled-logistic").by_seed(LOSS_RISE, {NOISE: 1e-3, STEPS: 40}))
    assert f"falls from the one to the other by {-fall.mean:.3f} ± {fall.half_width:.3f}; its mean ends" in page
    assert f"its mean ends {window(curve, *LAST) - least_window(curve)[1]:.4f} above its least" in page
    more, less = (convergence_point("logistic", one, 40) for one in (1e-3, 1e-5))
    paired = full.difference(more, less, "train_loss")
    assert max(abs(one) for one in paired.by_seed.values()) < 0.0002
    assert (places[0.1][0], places[0.5][0]) == (4, 3) and "in rounds 4-11 and 3-10" in page
    larger = [places[one][2] - places[one][1] for one in (0.1, 0.5)]
    assert f"and is {larger[0]:.3f} and {larger[1]:.2f} above it at the end" in page


def test_the_loss_of_the_network_rises_or_falls_by_the_local_steps(page: str, full: Tables) -> None:
    table = full.study("convergence-network")
    found = {one: Difference(table.by_seed(LOSS_RISE, {NOISE: 1e-2, STEPS: one})) for one in (1, 5, 10, 20)}
    told = {one: f"{abs(rise.mean):.3f} ± {rise.half_width:.3f}" for one, rise in found.items()}
    assert f"rises with τ = 1 (+{told[1]}), and with τ = 20 it falls (−{told[20]})" in page
    assert f"it rises by {told[1]} with τ = 1" in page and f"and falls by {told[20]} with τ = 20" in page
    assert all(abs(found[one].mean) < found[one].half_width for one in (5, 10)) and "with τ = 5 and 10 its sign" in page
    curve = table.curve({NOISE: 1e-4, STEPS: 1}, "train_loss")
    assert f"(means from {window(curve, 37, 44):.3f} to {window(curve, *LAST):.3f})" in page
    claim = network_rises_again(full)
    assert (
        claim.outcome is Outcome.UNDECIDED and "confirmed at τ = 1; undecided at τ = 5, τ = 10, τ = 20" in claim.reason
    )


def test_one_local_step_has_not_settled(page: str, full: Tables) -> None:
    for noise in PAPER_NOISES["full", "logistic"]:
        curve = full.study("convergence-logistic").curve({NOISE: noise, STEPS: 1}, "test_loss")
        assert min(curve, key=lambda row: row.mean).round == 100
    for noise in PAPER_NOISES["full", "network"]:
        curve = full.study("convergence-network").curve({NOISE: noise, STEPS: 1}, "test_loss")
        assert min(curve, key=lambda row: row.mean).round < 50
    assert "τ = 1 is at no stationary point" in page


def test_more_noise_costs_the_network_some_loss(page: str, full: Tables) -> None:
    (low, high), steps = PAPER_LEVELS["network"]
    pairs = [(convergence_point("network", high, one), convergence_point("network", low, one)) for one in steps]
    mean = average([full.difference(*pair, "test_loss") for pair in pairs])
    assert f"test loss is larger by {mean.mean:.3f} ± {mean.half_width:.3f}" in page


def test_batches_that_won(page: str) -> None:
    folder, found = size_folder(ROOT / "results", PAPERS[NAME], "full"), {}
    for kind in KINDS:
        sweep = find_sweep(NAME, kind, "full")
        trials = read_trials(folder, sweep)
        for method in sweep.methods:
            won = max(scores(sweep, method, trials), key=lambda one: one.accuracy).values["training.batch_size"]
            grid = method.grid["training.batch_size"]
            found[kind, method.name] = (won, min(grid), max(grid))
    won, least, _ = found.pop(("network", "DP-SGD Poisson"))
    assert won == least and f"it chose the smallest, {won}, and" in page
    assert all(won == largest for won, _, largest in found.values())


def test_the_accuracy_that_does_not_fall(page: str, full: Tables) -> None:
    table = full.study("convergence-network")
    drops = [table.by_seed(FIRST_DROP, {NOISE: 1e-2, STEPS: steps}) for steps in (1, 5, 10, 20)]
    assert all(one == drops[0] for one in drops) and len(drops[0]) == 5
    gains = sorted(-one for one in drops[0].values())
    assert gains[:3] == [0, 0, 0] and f"gains {100 * gains[3]:.0f} and {100 * gains[4]:.0f} points" in page
    after = {round(table.curve({NOISE: 1e-2, STEPS: steps})[0].mean, 2) for steps in (1, 5, 10, 20)}
    assert after == {0.76} and "the larger class, 76 %" in page
    assert {round(0.76 - one, 1) for one in gains[3:]} == {0.2}


def test_the_unstable_rate(page: str, full: Tables) -> None:
    sweep = find_sweep(NAME, "logistic", "full")
    trials = read_trials(size_folder(ROOT / "results", PAPERS[NAME], "full"), sweep)
    scheme, dp_sgd = (scores(sweep, method, trials) for method in sweep.methods[:2])
    won = max(dp_sgd, key=lambda one: one.accuracy)
    next_rate = max((one for one in dp_sgd if one.values[RATE] == 8), key=lambda one: one.accuracy)
    assert won.values[RATE] == 32 == sweep.methods[1].grid[RATE][-1]
    assert f"{100 * won.low:.2f} to {100 * won.high:.2f} % on validation samples" in page
    best = max(one.accuracy for one in scheme)
    assert f"8, has {100 * next_rate.accuracy:.2f} % on validation samples, and the scheme {100 * best:.2f} %" in page
    where = tuned_point(NAME, "logistic", "full", "DP-SGD shuffled")
    seeds = sorted(full.study("tuned-logistic").by_seed("test_accuracy", where).values(), reverse=True)
    *most, last = [f"{100 * one:.1f}" for one in seeds]
    assert f"{', '.join(most)} and {last} % on test samples" in page
    before = next(row for row in full.study("tuned-logistic").curve(where) if row.round == 15)
    assert f"still {percent(before.mean, before.half_width)})" in page
    lead = tuned(full, "logistic", "DP-SGD shuffled")
    assert f"{points(lead, 2, 1)} points, measures a rate" in page
    other = tuned_point(NAME, "logistic", "full", "DP-SGD Poisson")
    assert full.difference(("tuned-logistic", where), ("tuned-logistic", other)).by_seed == dict.fromkeys(
        range(1, 6), 0
    )


def test_labels_of_claims_fit_into_two_lines() -> None:
    """The forest plot cuts longer ones off."""
    for at, claim in enumerate(PAPERS[NAME].claims, start=1):
        assert len(textwrap.wrap(f"{at}. {claim.text}", _LINE)) <= 2, claim.text
