"""What the reader explores of a run: every cell, every event and every place of the trace, within a bounded page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from benchmarks.explorer import write_made_up_trace
from tests.analysis.unpack import PageData
from tests.simulation.scenarios import small
from wirelessfl.analysis.replay.recording import open_recording
from wirelessfl.analysis.report import cells as cells_module
from wirelessfl.analysis.report.cells import choose
from wirelessfl.analysis.report.colours import (
    by_night,
    colour_variables,
    contrast,
    is_faint,
    palette,
    ramp,
    ramp_by_night,
)
from wirelessfl.analysis.report.explorer import read_explorer
from wirelessfl.analysis.report.packing import FINE
from wirelessfl.analysis.report.page import report_html
from wirelessfl.analysis.report.rounds import QUANTILES, quantiles, read_rounds
from wirelessfl.analysis.report.scripts import SCRIPTS, data_text, scripts
from wirelessfl.trace import Status

GEOGRAPHY = {"channel__pathloss": {"model": "log_distance"}, "channel__placement": {"scheme": "uniform_disc"}}


def simulate(folder: Path, **overrides: Any) -> Path:
    return wfl.simulate(small(**overrides), folder, device="cpu", threads=1, pictures=False).trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the clients in each round, with gaps."""
    selection = {"scheme": "uniform", "count": 4}
    folder = tmp_path_factory.mktemp("runs") / "x"
    return simulate(
        folder,
        clients__selection=selection,
        faults__availability={"p": 0.7},
        uplink__jammer={"epsilon": 1.0},
        **GEOGRAPHY,
    )


@pytest.fixture(scope="module")
def page(trace: Path) -> PageData:
    return PageData(report_html([trace]))


def test_cells_are_those_of_the_trace(trace: Path, page: PageData) -> None:
    run = page.data["run"]
    ids = page.doubles(run["clients"]["ids"]).astype(np.int64)
    offsets, client, status = (
        page.whole(run["cells"]["offsets"]),
        page.whole(run["cells"]["client"]),
        page.whole(run["cells"]["status"]),
    )
    with h5py.File(trace) as file:
        selected = file["client_id"][:3]
        assert offsets.tolist() == [0, *np.cumsum((selected >= 0).sum(axis=1)).tolist()]
        inside = selected >= 0
        np.testing.assert_array_equal(ids[client], selected[inside])
        np.testing.assert_array_equal(status, file["status"][:3][inside])
        for name in ("backoff", "tx_energy", "update_norm_raw", "compute_time", "path_gain"):
            np.testing.assert_allclose(page.cells(name), file[name][:3][inside], rtol=2 * FINE)
        power = file["channel_re"][:3][inside] ** 2 + file["channel_im"][:3][inside] ** 2
        np.testing.assert_allclose(page.cells("gain"), power, rtol=2 * FINE)


def test_a_perfect_estimate_is_not_written_twice(page: PageData) -> None:
    assert "csi" not in [column["name"] for column in page.data["run"]["cells"]["columns"]]


def test_events_are_those_of_the_trace(trace: Path, page: PageData) -> None:
    messages = page.data["run"]["messages"]
    ids = page.doubles(page.data["run"]["clients"]["ids"])
    (block,) = messages["blocks"]
    with h5py.File(trace) as file:
        events = {name: np.asarray(file["events"][name]) for name in ("time", "node", "kind", "round", "bits")}
    # Clients that were told to be away before they were selected are not on the page.
    count = int(file_count(trace))
    known = (events["node"][:count] < 0) | np.isin(events["node"][:count], ids)
    assert messages["all"] == count and messages["count"] == block["count"] == known.sum()
    times = block["begin"] + block["tick"] * np.cumsum(page.whole(block["time"]))
    np.testing.assert_allclose(times, events["time"][:count][known], atol=block["tick"])
    places = page.whole(block["node"])
    nodes = np.where(places < 2, places - 2, ids[np.maximum(places - 2, 0)])
    np.testing.assert_array_equal(nodes, events["node"][:count][known])
    np.testing.assert_array_equal(page.whole(block["kind"]), events["kind"][:count][known])
    np.testing.assert_array_equal(page.whole(block["round"]) + block["first"], events["round"][:count][known])


def file_count(trace: Path) -> int:
    with h5py.File(trace) as file:
        return int(file["event_count"][2])


def test_clients_at_rest_are_as_far_as_the_trace_says(trace: Path, page: PageData) -> None:
    where = page.data["run"]["map"]
    assert where["note"] == "" and where["sites"] == [[0.0, 0.0]] and where["spacing"] is None
    distance = np.hypot(page.doubles(where["x"]), page.doubles(where["y"]))
    with h5py.File(trace) as file:
        recorded = dict(zip(file["client"][()].tolist(), file["distance"][()].tolist(), strict=True))
    ids = page.doubles(page.data["run"]["clients"]["ids"]).astype(int)
    np.testing.assert_allclose(distance, [recorded[client] for client in ids.tolist()])


def test_clients_on_the_move_are_where_the_run_had_them(tmp_path: Path) -> None:
    moving = {"scheme": "random_waypoint", "min_speed": 20.0, "max_speed": 30.0}
    trace = simulate(tmp_path / "x", **GEOGRAPHY | {"channel__placement": moving}, rounds=4)
    page = PageData(report_html([trace]))
    frames = page.data["run"]["map"]["frames"]
    x, y = (frames["begin"] + frames["step"] * page.whole(frames[side]).reshape(4, 6) for side in "xy")
    with h5py.File(trace) as file:
        # The slot ends the round: where clients were last heard is at most a slot's way from there.
        recorded, lasted = file["distance"][()], float(file["airtime"][3]) + 0.1
    np.testing.assert_allclose(np.hypot(x[-1], y[-1]), recorded, atol=30.0 * lasted + 2 * frames["step"])
    assert np.abs(np.diff(x, axis=0)).max() > 0


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({}, "no path loss"),
        (GEOGRAPHY | {"channel__placement": {"scheme": "tests.analysis.test_report_explorer:Corner"}}, "outside"),
    ],
)
def test_without_places_the_map_says_why(tmp_path: Path, overrides: dict[str, Any], words: str) -> None:
    page = PageData(report_html([simulate(tmp_path / "x", rounds=1, **overrides)]))
    assert words in page.data["run"]["map"]["note"]


class Corner:
    """A placement from outside."""

    def place(self, stream: Any) -> Any:
        return np.full((len(stream.nodes), 2), 100.0)


def test_other_streams_have_no_places(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.h5"
    copy.write_bytes(trace.read_bytes())
    with h5py.File(copy, "r+") as file:
        file.attrs.modify("stream_version", 999)
    assert "other random streams" in PageData(report_html([copy])).data["run"]["map"]["note"]


def test_a_trace_with_few_variables_is_shown_as_far_as_it_goes(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.h5"
    copy.write_bytes(trace.read_bytes())
    with h5py.File(copy, "r+") as file:
        for name in (
            "path_gain",
            "backoff",
            "aggregate_noise_std",
            "compute_time",
            "distance",
            "client_epsilon_accounted",
        ):
            del file[name]
    charts = {chart["name"] for chart in PageData(report_html([copy])).data["charts"]}
    assert "accuracy" in charts and "gain" in charts and not {"backoff", "law"} & charts


def test_a_long_run_of_many_clients_has_a_page_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_made_up_trace(tmp_path / "trace.h5", clients=60, rounds=10)
    with wfl.open_trace(trace) as opened:
        kept = choose(opened, 300)
        assert len(kept.clients) == 30 and kept.seen == 60 and kept.clients[[0, -1]].tolist() == [0, 59]
        recording = open_recording(trace)
        whole = read_explorer("s0", recording, opened)
        assert whole.data["clients"]["count"] == 60
        size = sum(map(len, whole.blobs.values()))
        monkeypatch.setattr("wirelessfl.analysis.report.explorer.MOST_BYTES", size // 2)
        less = read_explorer("s0", recording, opened)
    assert 0 < less.data["clients"]["count"] < 60 and sum(map(len, less.blobs.values())) <= size // 2
    held = less.data["messages"]
    assert 0 < held["count"] <= held["all"]
    assert cells_module.MOST_CELLS >= 1_000_000  # ten thousand clients for a hundred rounds


def test_curves_are_those_of_the_trace(trace: Path, page: PageData) -> None:
    with h5py.File(trace) as file:
        np.testing.assert_array_equal(page.curve("accuracy", "test accuracy"), 100 * file["test_accuracy"][:3])
        np.testing.assert_array_equal(page.curve("privacy", "accounted"), file["epsilon_accounted"][:3])
        heard = (file["status"][:3] == Status.PARTICIPATED).sum(axis=1)
    np.testing.assert_array_equal(page.curve("outcomes", "participated"), heard)


def test_rounds_are_read_block_by_block_to_the_same_numbers(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wfl.open_trace(trace) as opened:
        at_once = read_rounds(opened)
        monkeypatch.setattr("wirelessfl.analysis.report.rounds._MOST_VALUES", 1)
        one_by_one = read_rounds(opened)
    np.testing.assert_array_equal(at_once.gain_db, one_by_one.gain_db)
    np.testing.assert_array_equal(at_once.outcomes, one_by_one.outcomes)
    np.testing.assert_array_equal(at_once.columns["tx_energy"], one_by_one.columns["tx_energy"])


def test_quantiles_are_of_what_is_known() -> None:
    values = np.array([[3.0, np.nan, 1.0, 2.0], [np.nan] * 4])
    found = quantiles(values)
    assert found[0].tolist() == [1.0, 2.0, 3.0, 3.0] and np.isnan(found[1]).all() and len(QUANTILES) == 4


def test_by_night_every_colour_is_as_visible_as_by_day() -> None:
    for name, colour in palette().items():
        by_day, night = contrast(colour, "#ffffff"), contrast(by_night(colour), "#1d2127")
        assert night >= min(by_day, 4.5) - 0.1, name
        if is_faint(colour):
            assert night <= by_day + 0.1, f"{name} is faint by day and glares by night"


def test_a_bright_yellow_stays_one_by_night() -> None:
    assert not is_faint("#eedd55") and by_night("#eedd55") == "#eedd55" and is_faint("#dce9f2")


def test_colours_of_numbers_stand_out_by_night_and_become_lighter() -> None:
    for colours in (list(ramp().values()), list(ramp_by_night().values())):
        from_black = [contrast(colour, "#000000") for colour in colours]
        assert from_black == sorted(set(from_black))  # ever lighter
    assert min(contrast(colour, "#1d2127") for colour in ramp_by_night().values()) > 2.5
    assert f"--ramp-0: {ramp_by_night()['ramp-0']};" in colour_variables().split("dark")[1].split("@media")[0]


def test_nothing_in_the_data_ends_its_element() -> None:
    text = data_text({"name": "</script><script>alert(1)</script><!--", "and": "&amp;"})
    assert not re.search("[<>&]", text)


def test_the_library_is_the_one_that_its_page_names() -> None:
    import hashlib

    folder = Path(cells_module.__file__).parent / "static" / "vendor"
    digest = hashlib.sha256((folder / "echarts.min.js").read_bytes()).hexdigest()
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert digest in readme and "Apache-2.0" in readme
    library, own = scripts()
    assert "Apache License" in library[:2000] and "BSD 3-Clause" in library
    assert not re.search(r"\beval\(|new Function\(|\bfetch\(|XMLHttpRequest|import\(", own)
    assert not re.search(r"[^\w.$]eval\(|new Function\(", library)
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"static/vendor/{name}" in project for name in ("LICENSE", "NOTICE"))  # go with every wheel
    names = {path.stem for path in folder.parent.glob("*.js")}
    assert names == set(SCRIPTS)
