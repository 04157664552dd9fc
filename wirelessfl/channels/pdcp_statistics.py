"""Link logs from the PDCP statistics of ns-3's 5G-LENA: ``python -m wirelessfl.channels.pdcp_statistics --help``."""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

COLUMNS = ("time_s", "client", "rate_bps", "delay_s", "loss")
_DIGITS = 10  # of a number in a log
_SIGNALLING = 2  # logical channels 1 and 2 carry signalling, those from 3 on data


def link_log(sent: Path, received: Path, interval_s: float) -> list[tuple[float, int, float, float, float]]:
    """Lines of a link log from NrUlPdcpTxStats.txt and NrUlPdcpRxStats.txt.

    Clients are the terminals (cellId, rnti) in ascending order. The loss is one number for each, the share of its
    bytes that do not arrive before the end, and rates are those of what arrived in an interval over 1 − loss, so that a
    message takes as long as its bytes took. Delays are means over the packets of an interval, or of the one before.

    Raises:
        ValueError: a file lacks a column, holds what is no number, or nothing was received.
    """
    arrived, offered = list(_packets(received)), list(_packets(sent))
    terminals = sorted({one[1:3] for one in offered} | {one[1:3] for one in arrived})
    if not arrived:
        raise ValueError(f"{received}: found no packets of data; allowed: the statistics of an uplink that was used")
    intervals = int(max(one[0] for one in arrived) // interval_s) + 1
    lines = []
    for client, terminal in enumerate(terminals):
        mine = np.array([(time, size, delay) for time, *who, size, delay in arrived if tuple(who) == terminal])
        total = sum(size for _, *who, size, _ in offered if tuple(who) == terminal)
        loss = max(0.0, 1.0 - (mine[:, 1].sum() if len(mine) else 0.0) / total) if total else 0.0
        delay = float(mine[0, 2]) if len(mine) else 0.0
        for interval in range(intervals):
            here = mine[(mine[:, 0] // interval_s) == interval] if len(mine) else mine
            delay = float(here[:, 2].mean()) if len(here) else delay
            bits = 8.0 * float(here[:, 1].sum()) if len(here) else 0.0
            rate = bits / interval_s / (1.0 - loss) if bits else 0.0
            lines.append((interval * interval_s, client, rate, delay, loss))
        lines.append((intervals * interval_s, client, 0.0, delay, loss))
    return lines


def _packets(path: Path) -> Iterator[tuple[float, int, int, float, float]]:
    # Time, cell, terminal, bytes and delay of each packet of data; the delay is 0 where it is no column
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        lacking = {"time(s)", "cellId", "rnti", "lcid", "packetSize"} - set(rows.fieldnames or ())
        if lacking:
            raise ValueError(
                f"{path}:1: found no column {', '.join(sorted(lacking))}; allowed: PDCP statistics of 5G-LENA"
            )
        for line, row in enumerate(rows, start=2):
            try:
                if int(row["lcid"]) > _SIGNALLING:
                    delay = float(row.get("delay(s)") or 0.0)
                    yield float(row["time(s)"]), int(row["cellId"]), int(row["rnti"]), float(row["packetSize"]), delay
            except (TypeError, ValueError):
                raise ValueError(f"{path}:{line}: found no numbers; allowed: one in each column") from None


def main(arguments: list[str] | None = None) -> None:
    """The command: reads two files, writes one."""
    parser = argparse.ArgumentParser(prog="python -m wirelessfl.channels.pdcp_statistics", description=__doc__)
    parser.add_argument("sent", type=Path, help="NrUlPdcpTxStats.txt")
    parser.add_argument("received", type=Path, help="NrUlPdcpRxStats.txt")
    parser.add_argument("--interval", type=float, default=0.1, help="seconds of a line (default 0.1)")
    parser.add_argument("--out", type=Path, required=True, help="CSV file for uplink.rate.file")
    given = parser.parse_args(arguments)
    if not given.interval > 0:
        parser.error(f"--interval: found {given.interval:g}; allowed: above 0")
    try:
        lines = link_log(given.sent, given.received, given.interval)
        with given.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *([f"{one:.{_DIGITS}g}" for one in line] for line in lines)])
    except (OSError, ValueError) as error:
        parser.exit(2, f"Error: {error}\n")


if __name__ == "__main__":
    main()
