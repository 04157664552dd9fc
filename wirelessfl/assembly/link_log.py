"""Recorded rates, delays and losses of links, from a CSV file."""

from pathlib import Path

import numpy as np

from wirelessfl.assembly.csv_table import existing, read_csv
from wirelessfl.errors import DataError
from wirelessfl.inputs import LINK_LOG
from wirelessfl.radio import LinkLog, client_log

_KEY = LINK_LOG


def recorded_rates(file: str | None, clients: int) -> LinkLog:
    """The log of each client from the columns time_s, client, rate_bps, delay_s and loss.

    Raises:
        DataError: the file is missing or damaged, lacks a client, or holds what no link has.
    """
    assert file is not None, "the scenario was checked"
    path, name = existing(file, _KEY), Path(file).name
    table = read_csv(path, ("time_s", "client", "rate_bps", "delay_s", "loss"), _KEY)
    numbers = table.whole("client", 0)
    logs = []
    for client in range(clients):
        rows = table.rows[numbers == client][:, [0, 2, 3, 4]]
        if not len(rows):
            held = len(np.unique(numbers))
            raise DataError(
                f"{_KEY}: {name}: found lines of {held} clients, and none of client {client}; allowed: {clients} "
                "(clients.count), 0, 1, ..."
            )
        try:
            logs.append(client_log(rows))
        except ValueError as error:
            raise DataError(f"{_KEY}: {name}: client {client}: {error}") from error
    return LinkLog(name, tuple(logs))
