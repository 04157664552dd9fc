"""What the wavelet page says of the paper's setting and of what it would cost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from publications.files import read_rows
from publications.studies import STUDIES, Size
from publications.wavelet_methods import MECHANISM
from publications.wavelet_numbers import EPSILONS, ROUNDS, least_epsilon, most_affordable_rounds
from publications.wavelet_setting import SETTING
from wirelessfl.privacy import SampledGaussian, composed_epsilon

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "results" / "papers" / "wavelet-dp-fl"
PAGE = " ".join((ROOT / "docs" / "papers" / "wavelet-dp-fl.md").read_text("utf-8").split())


@pytest.mark.parametrize(("size", "folder"), [("small", ""), ("medium", "medium")])
def test_epsilons_of_plain_noise_in_the_setting(size: Size, folder: str) -> None:
    rows = [
        row
        for row in read_rows(STORED / folder / "sample.csv")
        if row["data.dataset.name"] == "mnist" and row["training.privacy.mechanism"] == "gaussian"
    ]
    found = {row["training.privacy.noise_multiplier"]: float(row["epsilon_published"]) for row in rows}
    (setting,) = (one for one in SETTING if one.name.startswith("ε of DP-SGD"))
    assert setting.ours[size] == ", ".join(f"{found[sigma]:.3g}" for sigma in EPSILONS["mnist"])
    assert setting.paper == ", ".join(f"{stated:g}" for stated in EPSILONS["mnist"].values())


def test_what_the_stated_training_costs() -> None:
    mnist, cifar = ([least_epsilon(float(sigma), samples) for sigma in EPSILONS["mnist"]] for samples in (600, 500))
    told = [f"{one:.3g}" for one in (*mnist, *cifar)]
    assert "cost {}, {} and {} on MNIST and {}, {} and {} on CIFAR-10, and larger".format(*told) in PAGE
    seldom = [least_epsilon(float(sigma), share=0.05) for sigma in EPSILONS["mnist"]]
    assert "such batches cost {:.3g}, {:.3g} and {:.3g} on MNIST".format(*seldom) in PAGE
    assert all(0.95 < cost / stated < 1.2 for cost, stated in zip(seldom, EPSILONS["mnist"].values(), strict=True))
    larger = [least_epsilon(float(sigma), batch=20, share=0.01) for sigma in EPSILONS["mnist"]]
    assert all(cost > 2 * stated for cost, stated in zip(larger, EPSILONS["mnist"].values(), strict=True))
    assert "Batches of 20 samples cost more than is stated already at 1 %." in PAGE
    few = most_affordable_rounds(EPSILONS["mnist"])
    assert f"in {few} of the {ROUNDS} rounds or fewer no more than what is stated at every σ (in 13 by PLD," in PAGE
    for rounds, enough in ((13, True), (14, False)):
        tighter = [
            composed_epsilon(0.0, ((SampledGaussian(float(sigma), 1 / 600), rounds * 50 * 600),), 1e-5, "pld")
            for sigma in EPSILONS["mnist"]
        ]
        assert all(cost <= one for cost, one in zip(tighter, EPSILONS["mnist"].values(), strict=True)) is enough


def test_what_larger_sizes_would_take() -> None:
    rows = read_rows(STORED / "medium" / "sample.runs.csv")
    sample = [float(row["seconds"]) for row in rows]
    wavelets = sum(float(row["seconds"]) for row in rows if row[MECHANISM] == "wavelet") / 3600
    assert 5.5 <= wavelets < 6.5 and "would take some six hours of a core at the medium size" in PAGE
    assert 570 <= sum(sample) / len(sample) < 630 and "a run of DP-SGD takes some ten minutes of a core" in PAGE

    full = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "base.yaml").read_text("utf-8"))
    medium = yaml.safe_load((STUDIES / "wavelet-dp-fl" / "medium" / "sample.yaml").read_text("utf-8"))["set"]
    assert full["rounds"] * full["training"]["epochs"] == 150 * medium["rounds"] * medium["training.epochs"]
    assert not (STORED / "full").exists() and "it has not run" in PAGE
