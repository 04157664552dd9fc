"""How large the page of a large run is, how long it takes to write it, and how long a browser needs to open it.

    python -m benchmarks.explorer [--clients 10000] [--rounds 100] [--out FOLDER]

The run is made up: clients on the move under Rayleigh fading, with back-off, deadlines and crashes, all columns and all
events of a run over the air, drawn at random so that nothing about them compresses better than in a real run. Opening
is measured by the page's own marks, in headless Chromium, from the start of navigation until everything is drawn.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.analysis.report.page import write_report
from wirelessfl.scenario import dump_scenario, parse_scenario
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import (
    SERVER_NODE,
    EventBatch,
    EventKind,
    RoundRecord,
    Status,
    TraceHeader,
    TraceWriter,
    scenario_digest,
)

SEED, DIMENSION, ROUND_S, AIRTIME_S = 17, 10_000, 1.0, 0.02
_SCENARIO = """
name: many-clients
seed: 17
rounds: {rounds}
data: {{dataset: {{name: synthetic}}, partition: {{scheme: natural}}}}
clients: {{count: {clients}}}
channel:
  pathloss: {{model: log_distance}}
  placement: {{scheme: random_waypoint}}
  correlation: {{model: independent}}
"""


def write_made_up_trace(path: Path, clients: int, rounds: int) -> Path:
    """Trace of a made-up run of so many clients, all of them selected in every round."""
    text = dump_scenario(parse_scenario(_SCENARIO.format(clients=clients, rounds=rounds), "made up"))
    header = TraceHeader(
        attributes={
            "name": "many-clients",
            "scenario": text,
            "scenario_digest": scenario_digest(text),
            "seed": SEED,
            "stream_version": STREAM_VERSION,
            "run_id": "0" * 32,
            "created": "2026-01-01T00:00:00+00:00",
            "package_version": "0",
            "torch_version": "0",
            "processor": "any",
            "device": "cpu",
            "delta": 1e-5,
            "dimension": DIMENSION,
            "total_samples": 20 * clients,
        },
        privacy={
            **{"delta": 1e-5, "unit": "sample", "adjacency": "add_remove", "adversary": "server", "colluding": 0},
            **{"total_samples": 20 * clients, "largest_weight": 1.0 / clients},
        },
        model={"dimension": DIMENSION},
    )
    generator = np.random.default_rng(SEED)
    with TraceWriter.create(path, header, clients) as writer:
        for index in range(1, rounds + 1):
            writer.append(_round(index, clients, generator))
        writer.finish("complete", {"samples": np.full(clients, 20), "weight": np.full(clients, 1 / clients)})
    return path


def _round(index: int, clients: int, generator: np.random.Generator) -> RoundRecord:
    begin = (index - 1) * ROUND_S
    path_gain = generator.lognormal(-20.0, 2.0, clients)
    channel = np.sqrt(path_gain / 2) * (generator.normal(size=clients) + 1j * generator.normal(size=clients))
    error = 0.05 * np.sqrt(path_gain / 2) * (generator.normal(size=clients) + 1j * generator.normal(size=clients))
    compute = 0.1 + np.minimum(generator.exponential(0.2, clients), 0.85)
    status = np.where(compute > 0.8, Status.LATE, Status.PARTICIPATED)
    status = np.where(generator.random(clients) < 0.02, Status.CRASHED, status)
    heard = status == Status.PARTICIPATED
    norm, sent = (
        generator.lognormal(-1.0, 0.3, clients),
        np.where(heard, generator.lognormal(3.0, 1.0, clients), np.nan),
    )
    slots = {
        "client_id": np.arange(clients),
        "status": status,
        "channel_re": channel.real,
        "channel_im": channel.imag,
        "csi_re": (channel + error).real,
        "csi_im": (channel + error).imag,
        "path_gain": path_gain,
        "backoff": np.maximum(1.0, 0.3 * np.sqrt(path_gain) / np.abs(channel)),
        "tx_gain_abs": np.where(heard, 1.0 / np.abs(channel), np.nan),
        "tx_energy": sent,
        "update_norm": np.minimum(norm, 0.5),
        "update_norm_raw": norm,
        "compute_time": compute,
        "cell": np.zeros(clients),
    }
    values = {
        "sim_time": index * ROUND_S,
        "wall_time": float(index),
        "test_accuracy": 1.0 - 0.9 * np.exp(-index / 30),
        "test_loss": 2.3 * np.exp(-index / 40),
        "train_loss": 2.2 * np.exp(-index / 40),
        "participants": int(heard.sum()),
        "airtime": AIRTIME_S,
        "jammer_energy": float(generator.lognormal(5.0, 1.0)),
        "effective_noise_std": 0.01,
        "aggregate_noise_std": 0.01,
        "epsilon_published": 0.2 * np.sqrt(index),
        "epsilon_accounted": 20.0 * np.sqrt(index),
    }
    return RoundRecord(index, values, slots, events=_events(begin, compute, heard))


def _events(begin: float, compute: NDArray[np.float64], heard: NDArray[np.bool_]) -> EventBatch:
    everyone, slot = np.arange(len(compute)), begin + ROUND_S - AIRTIME_S
    order, senders = np.argsort(compute), np.flatnonzero(heard)
    parts: list[tuple[NDArray[Any], NDArray[Any], EventKind, float]] = [
        (np.array([begin]), np.array([SERVER_NODE]), EventKind.BROADCAST, 32.0 * DIMENSION),
        (np.full(len(compute), begin + 0.01), everyone, EventKind.COMPUTE_START, np.nan),
        (begin + 0.01 + compute[order], everyone[order], EventKind.COMPUTE_END, np.nan),
        (np.full(len(senders), slot), senders, EventKind.TRANSMIT, 32.0 * DIMENSION),
        (np.array([begin + ROUND_S]), np.array([SERVER_NODE]), EventKind.SUPERPOSE, np.nan),
        (np.array([begin + ROUND_S]), np.array([SERVER_NODE]), EventKind.EVALUATE, np.nan),
    ]
    return EventBatch(
        time=np.concatenate([part[0] for part in parts]),
        node=np.concatenate([part[1] for part in parts]),
        kind=np.concatenate([np.full(len(part[0]), part[2]) for part in parts]),
        bits=np.concatenate([np.full(len(part[0]), part[3]) for part in parts]),
    )


@dataclass(frozen=True)
class Opened:
    """A page in a browser.

    Attributes:
        seconds: from the start of navigation until everything is drawn.
        errors: words on the console.
    """

    seconds: float
    errors: tuple[str, ...]


def browser() -> Any:
    """Headless Chromium.

    Raises:
        FileNotFoundError: there is none, or no driver of it.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    program, driver = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    if program is None or driver is None:
        raise FileNotFoundError("chromium and chromedriver are needed to open the page")
    options = ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(driver))


def open_page(driver: Any, page: Path, patience_s: float = 60.0) -> Opened:
    """The page opened until everything is drawn.

    Raises:
        TimeoutError: it is not after so many seconds.
    """
    driver.get(page.resolve().as_uri())
    until = time.monotonic() + patience_s
    while driver.execute_script("return document.documentElement.dataset.state") != "ready":
        if time.monotonic() > until:
            raise TimeoutError(f"{page} is not drawn after {patience_s:g} s: {driver.get_log('browser')}")
        time.sleep(0.02)
    (milliseconds,) = driver.execute_script(
        "return performance.getEntriesByName('report-opened').map((entry) => entry.duration)"
    )
    return Opened(milliseconds / 1e3, tuple(entry["message"] for entry in driver.get_log("browser")))


def main() -> None:
    """Measurement of one page, printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, help="folder to keep trace and page in; by default they are thrown away")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirelessfl-explorer-") as temporary:
        folder = Path(temporary) if given.out is None else given.out
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "trace.h5").unlink(missing_ok=True)
        trace = write_made_up_trace(folder / "trace.h5", given.clients, given.rounds)
        begin = time.perf_counter()
        page = write_report([trace])
        written_s = time.perf_counter() - begin
        driver = browser()
        try:
            opened = open_page(driver, page)
        finally:
            driver.quit()
        print(f"clients × rounds   {given.clients:,} × {given.rounds:,}")
        print(f"trace              {trace.stat().st_size / 1e6:.1f} MB")
        print(f"page               {page.stat().st_size / 1e6:.1f} MB, written in {written_s:.1f} s")
        print(f"opened in          {opened.seconds:.2f} s, {len(opened.errors)} words on the console")


if __name__ == "__main__":
    main()
