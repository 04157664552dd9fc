"""Log of recorded links that comes with the package: PDCP statistics as 5G-LENA writes them, and the log of them.

python docs/link_log.py channels/campus-uplink.csv
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from wirelessfl.channels import pdcp_statistics

TERMINALS, SECONDS, STEP_S, INTERVAL_S = 12, 30.0, 0.02, 0.5
PACKET = 1400  # bytes
BAND_HZ = 10.0e6


def statistics(sent: Path, received: Path) -> None:
    """Tables of a saturated uplink of twelve walking terminals, two of which lose coverage for a while.

    They are drawn from a model (log-distance path loss, correlated shadowing, equal shares of the band, 0.6 of
    Shannon's rate, a queue of some packets), in the columns that 5G-LENA writes.
    """
    generator = np.random.default_rng(20)
    times = np.arange(0.0, SECONDS, STEP_S)
    distance = np.linspace(40.0, 420.0, TERMINALS)[:, None] + generator.normal(0.0, 1.2, TERMINALS)[:, None] * times
    shadow, keeps = np.zeros((TERMINALS, len(times))), np.exp(-STEP_S / 4.0)
    for now in range(1, len(times)):
        shadow[:, now] = keeps * shadow[:, now - 1] + np.sqrt(1 - keeps**2) * generator.normal(0.0, 5.0, TERMINALS)
    snr_db = 44.0 - 35.0 * np.log10(np.abs(distance) / 40.0) + shadow
    rate = 0.6 * BAND_HZ / TERMINALS * np.log2(1.0 + 10.0 ** (snr_db / 10.0))
    rate[-1, (times > 8.0) & (times < 10.0)] = rate[-3, (times > 18.0) & (times < 19.0)] = 0.0
    lost = np.linspace(0.0, 0.06, TERMINALS)
    with sent.open("w", encoding="utf-8") as tx, received.open("w", encoding="utf-8") as rx:
        tx.write("time(s)\tcellId\trnti\tlcid\tpacketSize\n")
        rx.write("time(s)\tcellId\trnti\tlcid\tpacketSize\tdelay(s)\n")
        credit = np.zeros(TERMINALS)
        for now, time in enumerate(times.tolist()):
            credit += rate[:, now] * STEP_S / (8 * PACKET)
            for terminal in range(TERMINALS):
                count = int(credit[terminal])
                credit[terminal] -= count
                for number in range(count):
                    begin = time + STEP_S * number / count
                    tx.write(f"{begin:.6f}\t1\t{terminal + 1}\t4\t{PACKET}\n")
                    if generator.random() >= lost[terminal]:
                        delay = 0.004 + 3 * PACKET * 8 / rate[terminal, now]
                        if begin + delay < SECONDS:
                            rx.write(f"{begin + delay:.6f}\t1\t{terminal + 1}\t4\t{PACKET}\t{delay:.6f}\n")


def main(log: str) -> None:
    """Both tables in a folder of their own, and the log."""
    with tempfile.TemporaryDirectory() as folder:
        sent, received = (Path(folder) / f"NrUlPdcp{way}Stats.txt" for way in ("Tx", "Rx"))
        statistics(sent, received)
        pdcp_statistics.main([str(sent), str(received), "--interval", f"{INTERVAL_S}", "--out", log])


if __name__ == "__main__":
    main(sys.argv[1])
