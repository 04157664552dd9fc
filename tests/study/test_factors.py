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
