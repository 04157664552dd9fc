"""Claims about methods at the settings that won: no lead is decided over a setting at an end of its grid."""

from __future__ import annotations

import pytest

from publications.claims import Outcome, not_tested, verdict
from publications.studies import Size
from publications.sweep_keys import LR
from publications.sweeps import SWEEPS
from publications.tables import RunRow, StudyTable, Tables, value_of
from publications.tuned_claims import ahead_when_tuned, decided_where_tuned
from publications.tuning_runs import tuned_point

ZCDP = ("zcdp-secure-aggregation", "full", ("paper's scheme", "DP-SGD shuffled", "DP-SGD Poisson"))
MECHANISM, SIGMA = "training.privacy.mechanism", "training.privacy.noise_multiplier"
AIR = ("ota-cross-layer-dp", "small", ("FedProx", "FedAvg"))
MOO = ("moo-adaptive-clipping", "small", ("tempered sigmoid", "DP-SGD"))


@pytest.mark.parametrize(
    ("compared", "sweep", "lead", "outcome"),
    [
        (ZCDP, "network", 0.02, Outcome.CONFIRMED),
        (ZCDP, "logistic", 0.02, Outcome.UNDECIDED),  # DP-SGD's learning rate won at the end of its grid
        (ZCDP, "logistic", -0.02, Outcome.CONTRADICTED),  # the scheme's did not
        (MOO, "clipping", 0.02, Outcome.CONFIRMED),  # DP-SGD's is inside
        (MOO, "clipping", -0.02, Outcome.UNDECIDED),  # that of tempered sigmoids at an end
        (AIR, "algorithms", 0.02, Outcome.UNDECIDED),  # τ of both
        (AIR, "algorithms", -0.02, Outcome.UNDECIDED),
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
        ("optimizers", "medium", True, Outcome.CONFIRMED),
        ("optimizers", "medium", False, Outcome.CONTRADICTED),
        ("optimizers", "small", True, Outcome.UNDECIDED),  # no sweep of that study there
        ("optimizers", "small", False, Outcome.UNDECIDED),
        ("optimizers", "small", None, Outcome.NOT_TESTED),
        ("sample", "small", True, Outcome.CONFIRMED),
        ("client-gradients", "full", True, Outcome.UNDECIDED),
    ],
)
def test_nothing_is_decided_at_a_rate_that_was_not_tuned(
    study: str, size: Size, holds: bool | None, outcome: Outcome
) -> None:
    first = not_tested("no run") if holds is None else verdict(holds, "numbers", "as seen")
    runs = (RunRow({LR: "0.01"}, 1, 20, {}),)
    found = decided_where_tuned("wavelet-dp-fl", study, lambda tables: first)(
        Tables({"size": size}, {study: StudyTable(study, (LR,), runs)})
    )
    assert found.outcome is outcome and found.numbers == first.numbers
    assert found.reason.endswith(first.reason)
    assert ("not tuned at this size" in found.reason) is (outcome is Outcome.UNDECIDED)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(("plain", "wavelet"), [(0, 1), (1, -1), (1, 1)])
def test_nothing_is_decided_at_a_rate_that_won_at_an_end_of_its_grid(plain: int, wavelet: int, holds: bool) -> None:
    """At z = 1.5 alone; MNIST, on which the sweep ran, tells."""
    (sweep,) = (one for one in SWEEPS["wavelet-dp-fl"] if one.study == "client-gradients")
    methods = {one.name: one for one in sweep.methods}
    rates = {
        ("gaussian", "mnist"): methods["plain, z = 1.5"].grid[LR][plain],
        ("wavelet", "mnist"): methods["wavelet, z = 1.5"].grid[LR][wavelet],
        ("gaussian", "cifar10"): methods["plain, z = 1.5"].grid[LR][0],
    }
    runs = [
        RunRow({"data.dataset.name": data, MECHANISM: mechanism, SIGMA: "1.5", LR: value_of(rate)}, 1, 20, {})
        for (mechanism, data), rate in rates.items()
    ]
    table = StudyTable(sweep.study, tuple(runs[0].point), tuple(runs))
    first = verdict(holds, "numbers", "as seen")
    found = decided_where_tuned("wavelet-dp-fl", sweep.study, lambda tables: first)(
        Tables({"size": "medium"}, {table.name: table})
    )
    ends = [f"{name}, z = 1.5" for name, at in (("plain", plain), ("wavelet", wavelet)) if at in (0, -1)]
    assert (found == first) is not bool(ends)
    if ends:
        assert found.outcome is Outcome.UNDECIDED
        assert found.reason == f"as seen; the learning rate of {' and '.join(ends)} won at an end of the grid"
