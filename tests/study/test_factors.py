"""How factors and points are put into words."""

from __future__ import annotations

from typing import Any

import pytest

from wirelessfl.study import Factor
from wirelessfl.study.factors import point_text

SNR = Factor(("uplink.snr_db",), ((-5,), (2.5,)))
TOGETHER = Factor(("clients.count", "data.limit"), ((2, 20), (4, 40)))


def of(*mappings: dict[str, Any]) -> list[str]:
    factor = Factor(("training.privacy",), tuple((mapping,) for mapping in mappings))
    return [factor.label(level) for level in range(len(mappings))]


def test_points() -> None:
    assert point_text((SNR, TOGETHER), (1, 0)) == "uplink.snr_db=2.5, clients.count=2, data.limit=20"
    assert point_text((), ()) == "the base"
    assert [TOGETHER.label(level) for level in (0, 1)] == ["2, 20", "4, 40"]


def test_a_mapping_among_keys_that_move_together_says_all() -> None:
    air, digital = {"kind": "over_the_air", "clip": 4.0}, {"kind": "digital", "clip": 4.0}
    same, other = {"noise": 1}, {"noise": 0}
    factor = Factor(("uplink", "training.privacy"), ((air, other), (digital, same)))
    assert [factor.label(level) for level in range(2)] == ["over_the_air", "digital"]
    assert factor.setting(1) == "uplink=digital, training.privacy=noise 1"
    both = Factor(("uplink", "training.privacy"), ((air, other), (air, same), (digital, same)))
    assert [both.label(level) for level in range(3)][:2] == ["over_the_air, noise 0", "over_the_air, noise 1"]


@pytest.mark.parametrize(
    ("mappings", "expected"),
    [
        (  # names alone
            [
                {"mechanism": "gaussian", "clip": 1.0},
                {"mechanism": "gaussian", "clip": 1.0, "clipping": {"name": "quantile", "lr": 0.2}},
                {"mechanism": "zcdp", "clip": 1.0},
            ],
            ["gaussian", "gaussian, quantile", "zcdp"],
        ),
        (  # one name tells all apart
            [{"kind": "digital", "codec": {"name": "a"}}, {"kind": "ideal"}, {"kind": "over_the_air", "bits": 3}],
            ["digital", "ideal", "over_the_air"],
        ),
        (  # what all have is left out, and names do not suffice
            [{"name": "sgd", "lr": 0.1}, {"name": "sgd", "lr": 0.2}],
            ["lr 0.1", "lr 0.2"],
        ),
        (  # one has nothing but what all have
            [{"name": "sgd"}, {"name": "sgd", "lr": 0.2}],
            ["{name: sgd}", "{name: sgd, lr: 0.2}"],
        ),
        ([{"name": "sgd"}], ["{name: sgd}"]),
    ],
)
def test_mappings_are_told_apart_in_few_words(mappings: list[dict[str, Any]], expected: list[str]) -> None:
    assert of(*mappings) == expected
