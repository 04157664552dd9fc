"""What secure aggregation cost, in the report: the numbers of the trace."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.replay.recording import open_recording
from wirelessfl.analysis.report.elements import cost_facts, cost_table, secure_aggregation_costs
from wirelessfl.analysis.report.page import report_html
from wirelessfl.trace import SecAggStage

BITS = {"bits_up", "bits_down"}
COLUMNS = ("messages_up", "bits_up", "messages_down", "bits_down", "seconds", "energy", "dropouts", "refused")


def simulate(folder: Path, **uplink: Any) -> Path:
    keys = {"kind": "secure_aggregation", "stage_timeout_s": 1.0, **uplink}
    scenario = small(uplink=keys, rounds=6, clients__count=8)
    return wfl.simulate(scenario, folder, device="cpu", threads=1, pictures=False).trace


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clients are lost, and some of the rounds given up."""
    lost = {"advertise_keys": 0.05, "share_keys": 0.1, "masked_input": 0.2, "unmask": 0.1}
    return simulate(tmp_path_factory.mktemp("lossy") / "run", tx_power_dbm=10, dropout=lost)


def recorded(trace: Path, name: str, rounds: slice = slice(None)) -> dict[str, float]:
    """Sums over rounds by stage, read without the package's own reader."""
    with h5py.File(trace) as file:
        sums = np.asarray(file["secagg"][name])[rounds].sum(axis=0)
    return dict(zip((stage.name.lower().replace("_", " ") for stage in SecAggStage), sums.tolist(), strict=True))


def shown(page: str) -> dict[str, list[tuple[str, float]]]:
    """The table on the page: by stage, each cell's words and the number that it is sorted by."""
    table = re.search(r"<caption>Secure aggregation: .*?</table>", page, re.DOTALL)
    assert table is not None
    rows = re.findall(r'<tr><td data-value="([^"]+)" class="words">(.*?)</tr>', table[0], re.DOTALL)
    cells = r'<td data-value="([^"]+)">([^<]*)</td>'
    return {stage: [(unescape(text), float(key)) for key, text in re.findall(cells, row)] for stage, row in rows}


def test_the_numbers_are_those_of_the_trace(lossy: Path) -> None:
    table = shown(report_html([lossy]))
    assert list(table) == ["advertise keys", "share keys", "masked input", "unmask"]
    for column, name in enumerate(COLUMNS):
        sums = recorded(lossy, name)
        assert sums["set up"] == 0  # the stage that this protocol lacks
        for stage, cells in table.items():
            text, value = cells[column]
            expected = sums[stage] / 8 if name in BITS else sums[stage]
            assert value == pytest.approx(expected, rel=1e-12)
            if name not in ("seconds", "energy"):
                assert int(text.replace(",", "")) == expected
    assert sum(recorded(lossy, "dropouts").values()) > 0 and sum(recorded(lossy, "energy").values()) > 0


def test_what_all_stages_cost_comes_first(lossy: Path) -> None:
    with h5py.File(lossy) as file:
        outcomes = np.asarray(file["secagg/outcome"])
    assert 0 < (outcomes == 1).sum() < len(outcomes) == 6
    costs = secure_aggregation_costs(open_recording(lossy))
    assert costs is not None
    up, down = (sum(recorded(lossy, name).values()) / 8e6 for name in ("bits_up", "bits_down"))
    seconds = sum(recorded(lossy, "seconds").values())
    assert cost_facts(costs) == [
        ("secure aggregation", f"secagg_plus, {(outcomes == 1).sum()} of 6 rounds summed"),
        ("secure messages", f"{up:.4g} MB up, {down:.4g} MB down, {seconds:.4g} s"),
    ]


def test_only_the_rounds_of_the_recording_count(lossy: Path) -> None:
    costs = secure_aggregation_costs(open_recording(lossy, 2, 3))
    assert costs is not None
    masked_input = next(row for row in cost_table(costs).rows if row[0].text == "masked input")
    expected = recorded(lossy, "messages_up", slice(1, 3))["masked input"]
    assert masked_input[1].value == expected < recorded(lossy, "messages_up")["masked input"]


def test_a_set_up_has_its_row_and_unknown_watts_stay_unknown(tmp_path: Path) -> None:
    trace = simulate(tmp_path / "run", protocol="pairwise_prf")
    table = shown(report_html([trace]))
    assert list(table) == ["set up", "masked input"]
    assert all(np.isnan(list(recorded(trace, "energy").values())))
    assert [cells[COLUMNS.index("energy")][0] for cells in table.values()] == ["–", "–"]


@pytest.mark.slow
def test_a_run_without_has_no_such_table(tmp_path: Path) -> None:
    trace = wfl.simulate(small(), tmp_path / "run", device="cpu", threads=1, pictures=False).trace
    assert secure_aggregation_costs(open_recording(trace)) is None
    assert "ecure aggregation" not in report_html([trace]).partition("<details>")[0]
