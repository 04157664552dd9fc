"""CSV: one gain a line."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.record import MOST_GAINS, ChannelRecord
from wirelessfl.channels.sources.options import ImportOptions
from wirelessfl.errors import DataError

_COLUMNS = ("time_s", "client", "re", "im")
_FURTHER = ("antenna", "subcarrier", "frequency_hz", "x_m", "y_m", "z_m")
_SHOWN = 30  # letters of a cell that a message shows


def from_csv(path: Path, options: ImportOptions) -> ChannelRecord:
    """Channels from the columns time_s, client, re, im, and antenna, subcarrier, frequency_hz, x_m, y_m, z_m.

    Raises:
        DataError: a line cannot be read, or a gain is missing or stands there twice.
    """
    table = _columns(path)
    count = len(table["re"])
    times, snapshot = np.unique(table["time_s"], return_inverse=True)
    axes = [snapshot, *(_whole(table, name, count) for name in ("client", "antenna", "subcarrier"))]
    shape = (len(times), *(int(one.max()) + 1 for one in axes[1:]))
    size = int(np.prod([float(one) for one in shape]))
    if size > MOST_GAINS:
        raise DataError(f"found numbers up to {shape} for {count} lines; allowed: at most {MOST_GAINS:,} gains")
    flat = np.ravel_multi_index(tuple(axes), shape)
    seen = np.bincount(flat, minlength=size)
    if np.any(seen != 1):
        at = np.unravel_index(int(seen.argmax() if np.any(seen > 1) else seen.argmin()), shape)
        how = "several gains" if np.any(seen > 1) else "no gain"
        time, client, antenna, subcarrier = float(times[at[0]]), *map(int, at[1:])
        raise DataError(
            f"found {how} for time_s {time:g}, client {client}, antenna {antenna}, subcarrier {subcarrier}; allowed: "
            "one line for each"
        )
    gains = np.empty(size, dtype=np.complex128)
    gains[flat] = table["re"] + 1j * table["im"]
    return ChannelRecord(
        gains=gains.reshape(shape),
        time_s=times,
        frequency_hz=_frequencies(table, axes[3], options),
        position_m=_places(table, axes[0], axes[1]),
        source="CSV",
    )


def _frequencies(
    table: dict[str, NDArray[np.float64]], subcarrier: NDArray[np.int64], options: ImportOptions
) -> NDArray[np.float64] | None:
    if "frequency_hz" not in table:
        return options.frequencies({}, "frequency_hz", int(subcarrier.max()) + 1)
    _, first = np.unique(subcarrier, return_index=True)
    found = table["frequency_hz"][first]
    if np.any(found[subcarrier] != table["frequency_hz"]):
        raise DataError("frequency_hz: found several for one subcarrier; allowed: one")
    return options.frequencies({"frequency_hz": found}, "frequency_hz", len(found))


def _places(
    table: dict[str, NDArray[np.float64]], snapshot: NDArray[np.int64], client: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    named = [name for name in ("x_m", "y_m", "z_m") if name in table]
    if not named:
        return None
    if named[:2] != ["x_m", "y_m"]:
        raise DataError(f"found {', '.join(named)} alone; allowed: x_m and y_m, with or without z_m")
    found = np.zeros((int(snapshot.max()) + 1, int(client.max()) + 1, 3))
    for axis, name in enumerate(named):
        found[snapshot, client, axis] = table[name]
    return found


def _whole(table: dict[str, NDArray[np.float64]], name: str, count: int) -> NDArray[np.int64]:
    if name not in table:
        return np.zeros(count, dtype=np.int64)
    found = table[name]
    if np.any(found != np.floor(found)) or np.any(found < 0) or np.any(found >= MOST_GAINS):
        at = int(np.flatnonzero((found != np.floor(found)) | (found < 0) | (found >= MOST_GAINS))[0])
        raise DataError(f"{name}: found {found[at]:g}; allowed: whole numbers from 0")
    return found.astype(np.int64)


def _number(cells: list[str], index: int, header: list[str], line: int) -> float:
    text = cells[index].strip() if index < len(cells) else ""
    try:
        if "_" not in text:  # which Python allows between digits
            return float(text)
    except ValueError:
        pass
    raise DataError(f"line {line}: {header[index]}: found {text[:_SHOWN] or 'nothing'}; allowed: a number")


def _columns(path: Path) -> dict[str, NDArray[np.float64]]:
    # The numbers of each column. Raises DataError: the file cannot be read, or a line of it.
    rows: list[list[float]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [name.strip() for name in next(lines, [])]
            missing = [name for name in _COLUMNS if name not in header]
            if missing:
                allowed = f"{', '.join(_COLUMNS)}, and {', '.join(_FURTHER)} if known"
                raise DataError(f"line 1: found no column {', '.join(missing)}; allowed: {allowed}")
            twice = [name for name in (*_COLUMNS, *_FURTHER) if header.count(name) > 1]
            if twice:
                raise DataError(f"line 1: found {header.count(twice[0])} columns {twice[0]}; allowed: one")
            order = [header.index(name) for name in (*_COLUMNS, *_FURTHER) if name in header]
            for cells in lines:
                if not cells:
                    continue
                if any(cells[len(header) :]):
                    raise DataError(
                        f"line {lines.line_num}: found {len(cells)} cells below {len(header)} columns; allowed: one in "
                        "each, and decimal points"
                    )
                rows.append([_number(cells, index, header, lines.line_num) for index in order])
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"no CSV file: {error}") from None
    if not rows:
        raise DataError("found no line below the header")
    table = np.array(rows)
    return {header[index]: table[:, column] for column, index in enumerate(order)}
