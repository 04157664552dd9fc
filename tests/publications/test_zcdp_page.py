"""The numbers in the prose of the zCDP page are those of the stored results, and its claims fit their picture."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from publications.catalogue import PAPERS
from publications.claims import Outcome
from publications.effects import Difference
from publications.files import read_rows
from publications.forest import _LINE
from publications.results import read_results, size_folder
from publications.runner import load_designs
from publications.studies import Size
from publications.sweep_keys import BATCH, CLIP, LR
from publications.sweeps import find_sweep
from publications.tables import Tables
from publications.texts import epsilon
from publications.tuning import Score, TunedMethod, scores, winner
from publications.tuning_runs import read_trials, tuned_point
from publications.zcdp_claims import MASKED, PLAIN
from publications.zcdp_curves import gradient_norms_apart, least_window, network_rises_again, window
from publications.zcdp_measured import FIRST_DROP, LAST, LOSS_RISE
from publications.zcdp_points import (
    CHOSEN,
    DEVICES,
    EPSILONS,
    KINDS,
    NOISE,
    PAPER_LEVELS,
    SIZES_OF,
    STEPS,
    convergence_point,
    method_point,
    trade_off_point,
)
from publications.zcdp_sum import NOISE_STD, SAMPLES
from publications.zcdp_uploads import _DEVICES, _NOISE_STD

ROOT = Path(__file__).resolve().parents[2]
NAME = "zcdp-secure-aggregation"


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


def test_leads_over_dp_sgd(page: str, full: Tables) -> None:
    shuffled, poisson = (tuned(full, "network", one) for one in ("DP-SGD shuffled", "DP-SGD Poisson"))
    assert f"{points(shuffled)} and {points(poisson)} for the network" in page
    wide = [f"± {100 * one.half_width_at(0.025):.2f}" for one in (shuffled, poisson)]
    assert f"at 97.5 %, where the network's intervals are {wide[0]} and {wide[1]}." in page
    shuffled, poisson = (tuned(full, "logistic", one) for one in ("DP-SGD shuffled", "DP-SGD Poisson"))
    assert f"is {points(shuffled)} and {points(poisson)} points for logistic regression" in page
    ours, baseline = (
        [(f"against-dp-sgd-{kind}", method_point("full", kind, method)) for kind in KINDS] for method in (0, 1)
    )
    logistic, network = (full.difference(*pair) for pair in zip(ours, baseline, strict=True))
    assert f"give {points(logistic)} points for logistic regression" in page
    assert f"and {points(network)} for the network" in page
    norms = gradient_norms_apart(full)
    assert norms.outcome is Outcome.UNDECIDED and "ends lower than DP-SGD's, as in Fig. 6, is open" in page
    theirs, ours_end = re.findall(r"[\d.]+ ± [\d.]+", norms.numbers)
    assert f"{ours_end} against {theirs}." in page


def test_epsilons_of_the_ledger_and_the_audit(page: str, full: Tables) -> None:
    told = [
        epsilon(float(full.band(f"against-dp-sgd-{kind}", method_point("full", kind, 0), "epsilon_accounted").mean[0]))
        for kind in KINDS
    ]
    audit = full.study("against-dp-sgd-logistic").audit({STEPS: 10})
    assert audit is not None
    assert f"where ε = 10 is published it has {told[0]} (Fig. 5) and {told[1]} (Fig. 6)" in page
    assert f"finds {epsilon(audit.epsilon_empirical)} at least (Fig. 5)" in page
    one_step = full.study("against-dp-sgd-logistic").audit({STEPS: 1})
    assert one_step is not None and one_step.epsilon_empirical > one_step.epsilon_published
    assert "1/r does not hold for one who sees what the masks hide, with one step too" in page


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
    assert (_DEVICES, _NOISE_STD) == (10**6, 1e-3) and "for one round with r = 10⁶ and σ = 10⁻³ G" in page
    assert (SAMPLES, NOISE_STD) == (100, 0.02) and "τ = 100 steps over m = 100 samples, σ = 0.02 G" in page


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


def test_the_loss_that_rises(page: str, full: Tables) -> None:
    table = full.study("convergence-logistic")
    found = Difference(table.by_seed(LOSS_RISE, {NOISE: 1e-3, STEPS: 40}))
    told = f"{found.mean:+.4f} ± {found.half_width:.4f}"
    assert f"The difference is {told}. The mean" in page
    assert f"from rounds 37-44 to the last eight by {told} with logistic regression on scaled features" in page
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
    assert f"rises with τ = 1 (+{told[1]}); with τ = 5, 10 and 20 (−{told[20]}) its sign is open" in page
    assert f"the loss rises by {told[1]} with τ = 1" in page and f"With τ = 20 it falls by {told[20]}" in page
    assert found[20].mean + found[20].half_width < 0 < found[20].mean + found[20].half_width_at(0.05 / 4)
    assert all(abs(found[one].mean) < found[one].half_width for one in (5, 10)) and "with τ = 5 and 10 its sign" in page
    curve = table.curve({NOISE: 1e-4, STEPS: 1}, "train_loss")
    assert f"(means from {window(curve, 37, 44):.3f} to {window(curve, *LAST):.3f})" in page
    claim = network_rises_again(full)
    assert (
        claim.outcome is Outcome.UNDECIDED and "confirmed at τ = 1; undecided at τ = 5, τ = 10, τ = 20" in claim.reason
    )


def test_what_losses_are_on_features_as_they_stand(page: str, full: Tables) -> None:
    """σ = 10⁻³, as in the paper's words."""
    table = full.study("unscaled-logistic")
    many, one = (
        {row.round: row.mean for row in table.curve({NOISE: 1e-3, STEPS: steps}, "train_loss")} for steps in (40, 1)
    )
    assert one[1] == pytest.approx(np.log(2), abs=1e-6) and "it is 0.69 at the first model" in page
    assert f"with τ = 40 its mean over the steps of round 1 is {many[1]:.2f}" in page
    assert f"comes down to {many[40]:.2f} in round 40 and {many[100]:.2f} in round 100" in page
    assert f"nearer to the paper's ({many[40]:.2f} after 40 rounds, 7 there)" in page
    assert f"With τ = 1 it is {one[2]:.2f} in round 2" in page and max(one, key=lambda at: one[at]) == 2


def best(kind: str, size: Size) -> dict[str, tuple[Score, TunedMethod]]:
    """What won on validation samples, by method."""
    sweep = find_sweep(NAME, kind, size)
    trials = read_trials(size_folder(ROOT / "results", PAPERS[NAME], size), sweep)
    return {one.name: (winner(scores(sweep, one, trials)), one) for one in sweep.methods}


def test_batches_that_won(page: str) -> None:
    found = {
        (kind, name): (won.values[BATCH], method.grid[BATCH])
        for kind in KINDS
        for name, (won, method) in best(kind, "full").items()
    }
    batch, grid = found.pop(("network", "DP-SGD Poisson"))
    assert batch == 245 and min(grid) < batch < max(grid)
    assert found.pop(("logistic", "DP-SGD Poisson")) == (245, (245, 735, 2442))
    words = (
        "it chose 245, the least of 245, 735 and 2,442 with logistic regression and inside its grid with the network."
    )
    assert words in page
    assert len(found) == 4 and all(batch == max(grid) for batch, grid in found.values())


def test_the_networks_sweep_in_the_small_size(page: str) -> None:
    won, method = best("network", "small")["DP-SGD Poisson"]
    assert won.values[BATCH] == min(method.grid[BATCH])
    told = f"{won.values[BATCH]} samples a batch, the least, and from {100 * won.low:.1f} to {100 * won.high:.1f} %"
    assert f"with {told} on validation samples" in page
    results = read_results(PAPERS[NAME], ROOT / "results")["small"]
    small = results.study("tuned-network")
    ends = {
        name: list(small.by_seed("test_accuracy", tuned_point(NAME, "network", "small", name)).values())
        for name in ("DP-SGD Poisson", "DP-SGD shuffled")
    }
    (majority,) = set(ends["DP-SGD Poisson"])
    assert "all five seeds of the study stay at the majority class" in page
    above = [100 * (one - majority) for one in ends["DP-SGD shuffled"]]
    told = f"end {sum(above) / len(above):.2f} points above it on average, and {max(above):.2f} at most."
    assert min(above) >= 0 and told in page
    leads = {f"{100 * tuned(results, 'network', one).mean:.0f}" for one in ends}
    assert len(leads) == 1 and f"a lead of some {leads.pop()} points, rests on that" in page


def test_the_accuracy_that_does_not_fall(page: str, full: Tables) -> None:
    table = full.study("convergence-network")
    drops = [table.by_seed(FIRST_DROP, {NOISE: 1e-2, STEPS: steps}) for steps in (1, 5, 10, 20)]
    assert all(one == drops[0] for one in drops) and len(drops[0]) == 5
    gains = sorted(-one for one in drops[0].values())
    assert gains[:3] == [0, 0, 0] and f"gains {100 * gains[3]:.0f} and {100 * gains[4]:.0f} points" in page
    after = {round(table.curve({NOISE: 1e-2, STEPS: steps})[0].mean, 2) for steps in (1, 5, 10, 20)}
    assert after == {0.76} and "the larger class, 76 %" in page
    assert {round(0.76 - one, 1) for one in gains[3:]} == {0.2}


def test_the_unstable_rate(page: str) -> None:
    sweep = find_sweep(NAME, "logistic", "full")
    trials = read_trials(size_folder(ROOT / "results", PAPERS[NAME], "full"), sweep)
    assert len(sweep.seeds) == 6 and "the sweep of logistic regression has six seeds." in page
    won = best("logistic", "full")["DP-SGD shuffled"][0].values
    assert (won[LR], won[CLIP]) == (64, 0.125) and "With six the rate 64 wins, with C = 0.125." in page
    wild = {CLIP: 1.0, LR: 32.0, BATCH: 2442}
    (at,) = (at for at, setting in enumerate(sweep.methods[1].settings(sweep.budget)) if setting == wild)
    by_seed = {one.seed: one.accuracy for one in trials if (one.method, one.setting) == ("DP-SGD shuffled", at)}
    seeds = sorted(by_seed.values(), reverse=True)
    told = [f"{100 * one:.1f}" for one in seeds]
    assert f"has {told[3]} to {told[0]} % on validation samples at four of the seeds" in page
    assert f"and {told[4]} and {told[5]} % at the other two" in page
    first: dict[int, list[float]] = {one.setting: [] for one in trials if one.method == "DP-SGD shuffled"}
    for one in trials:
        if one.method == "DP-SGD shuffled" and one.seed in sweep.seeds[:3]:
            first[one.setting].append(one.accuracy)
    assert max(first, key=lambda setting: sum(first[setting])) == at


def test_rounds_of_a_device() -> None:
    """T r/n of Fig. 5 and 6."""
    taken = [SIZES_OF["full", kind]["rounds"] * CHOSEN / DEVICES for kind in KINDS]
    told = next(one.paper for one in PAPERS[NAME].setting if one.name == "who takes part")
    assert f"({taken[0]:g} and {taken[1]:g} rounds)" in told


def test_labels_of_claims_fit_into_two_lines() -> None:
    """The forest plot cuts longer ones off."""
    for at, claim in enumerate(PAPERS[NAME].claims, start=1):
        assert len(textwrap.wrap(f"{at}. {claim.text}", _LINE)) <= 2, claim.text


def test_what_a_larger_epsilon_gives_from_one_to_ten(page: str, full: Tables) -> None:
    told = []
    for uplink in (MASKED, PLAIN):
        high, low = (("trade-off-logistic", trade_off_point("full", "logistic", one, uplink)) for one in (10, 1))
        found = full.difference(high, low)
        assert abs(found.mean) < found.half_width
        told.append(f"{100 * found.mean:+.2f} ± {100 * found.half_width:.2f}".replace("-", "−"))
    assert f"from 1 to 10 it is open ({told[0]} points with masks, {told[1]} without)" in page


def test_what_the_smaller_clip_is_worth_in_the_sweep(page: str) -> None:
    sweep = find_sweep(NAME, "logistic", "full")
    trials, gains, further = read_trials(size_folder(ROOT / "results", PAPERS[NAME], "full"), sweep), {}, []
    for method in sweep.methods:
        tried = scores(sweep, method, trials)
        least, next_one, one = (
            max(t.accuracy for t in tried if t.values[CLIP] == clip) for clip in (min(method.grid[CLIP]), 0.25, 1)
        )
        gains[method.name] = 100 * (least - one)
        further.append(100 * (least - next_one))
    told = [f"{gains[name]:.1f}" for name in ("DP-SGD shuffled", "DP-SGD Poisson", "paper's scheme")]
    words = f"0.125, is worth {told[0]} points (shuffled) and {told[1]} (Poisson) to it on validation data"
    assert f"{words}, and {told[2]} to the scheme; against 0.25 it is {max(further):.2f} at most" in page
    assert min(further) > 0
    sizes: tuple[Size, ...] = ("small", "full")
    for size in sizes:
        at_least = [won.values[CLIP] == min(method.grid[CLIP]) for won, method in best("logistic", size).values()]
        assert all(at_least) and "With logistic regression all three chose the least C in both sizes." in page
    worth = {}
    for name, (won, method) in best("network", "full").items():
        sweep = find_sweep(NAME, "network", "full")
        trials = read_trials(size_folder(ROOT / "results", PAPERS[NAME], "full"), sweep)
        one = max(t.accuracy for t in scores(sweep, method, trials) if t.values[CLIP] == 1)
        worth[name] = f"{100 * (won.accuracy - one):.1f}"
    assert worth == {"paper's scheme": "0.1", "DP-SGD shuffled": "0.2", "DP-SGD Poisson": "0.2"}
    assert "With the network the best C is worth 0.2 points to DP-SGD and 0.1 to the scheme." in page


def test_the_last_batch_of_a_pass_is_short(page: str) -> None:
    """In the figures in which a smaller τ uses less of the data; the largest takes all batches of one epoch."""
    told, designs = [], load_designs(PAPERS[NAME], "full")
    for kind in KINDS:
        (training,) = {
            (one.batch_size, one.steps)
            for one in (run.scenario.training for run in designs[f"convergence-{kind}"].runs)
            if one.steps == PAPER_LEVELS[kind][1][-1]
        }
        batch, steps = training
        samples = SIZES_OF["full", kind]["samples"]
        assert steps == -(-samples // batch)
        told.append((samples - (steps - 1) * batch, batch))
    (last, batch), (of_network, network) = told
    assert (
        f"whose last batch has {last} samples instead of {batch} (network: {of_network} instead of {network})" in page
    )
