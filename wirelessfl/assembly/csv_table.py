"""CSV files of numbers, below a first line that names the columns."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition

# Rounds and clients of a scenario have the same bound
_LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class CsvTable:
    """The numbers of a file, and where they stand.

    Attributes:
        path: of the file.
        key: of the scenario that names it, for messages.
        columns: their names.
        rows: (n, columns).
        lines: (n,) of the file, from 1.
    """

    path: Path
    key: str
    columns: tuple[str, ...]
    rows: NDArray[np.float64]
    lines: NDArray[np.int64]

    def column(self, name: str) -> NDArray[np.float64]:
        """(n,) the numbers of a column."""
        return self.rows[:, self.columns.index(name)]

    def whole(self, name: str, least: int, most: int = _LARGEST_INDEX, also: int | None = None) -> NDArray[np.int64]:
        """(n,) the whole numbers of a column.

        Args:
            name: of the column.
            least: the smallest that is allowed.
            most: the largest that is allowed.
            also: one that is allowed beside them, the jammer's.

        Raises:
            DataError: one is none, or out of range.
        """
        found = self.column(name)
        allowed = (found == np.floor(found)) & (found >= least) & (found <= most)
        if also is not None:
            allowed |= found == also
        wrong = np.flatnonzero(~allowed)
        if len(wrong):
            jammer = "" if also is None else f", and {also} for the jammer"
            raise self._refusal(
                int(wrong[0]), f"found {name} {found[wrong[0]]:.17g}", f"whole numbers from {least} to {most}{jammer}"
            )
        return found.astype(np.int64)

    def once(self, *names: str) -> None:
        """Checks that no two lines have the same numbers in these columns.

        Raises:
            DataError: two have.
        """
        rows = np.stack([self.column(name) for name in names], axis=1)
        _, first, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[of.ravel()] != np.arange(len(rows)))
        if len(again):
            row = int(again[0])
            named = ", ".join(f"{name} {number:g}" for name, number in zip(names, rows[row].tolist(), strict=True))
            before = int(self.lines[first[of.ravel()[row]]])
            raise self._refusal(row, f"found {named} again, as in line {before}", "one line for each")

    def _refusal(self, row: int, found: str, allowed: str) -> DataError:
        return DataError(f"{self.key}: {self.path}:{self.lines[row]}: {found}; allowed: {allowed}")


def read_csv(path: Path, columns: tuple[str, ...], key: str) -> CsvTable:
    """Numbers from a CSV file whose first line names its columns, in any order.

    Raises:
        DataError: it is not that; the message names the place and never what stands there, which may be another file.
    """
    rows, lines, wanted = list[list[float]](), list[int](), ", ".join(columns)
    try:
        with path.open(encoding="utf-8-sig") as file:
            header = [name.strip() for name in file.readline().split(",")]
            missing = [name for name in columns if name not in header]
            lacking = f"{key}: {path}:1: found no column {', '.join(missing)}; allowed: a first line with {wanted}"
            precondition(not missing, lacking, DataError)
            twice = [name for name in columns if header.count(name) > 1]
            several = f"{key}: {path}:1: found several columns {', '.join(twice)}; allowed: one {wanted} each"
            precondition(not twice, several, DataError)
            order = [header.index(name) for name in columns]
            for place, cells in ((place, line.split(",")) for place, line in enumerate(file, start=2) if line.strip()):
                more = f"{key}: {path}:{place}: found {len(cells)} cells below {len(header)} columns"
                precondition(
                    not "".join(cells[len(header) :]).strip(),
                    f"{more}; allowed: one in each, and decimal points",
                    DataError,
                )
                try:
                    rows.append([float(cells[index]) for index in order])
                except (ValueError, IndexError):
                    allowed = f"a number in each of the columns {wanted}"
                    raise DataError(f"{key}: {path}:{place} cannot be read as numbers; allowed: {allowed}") from None
                lines.append(place)
    except OSError as error:
        raise DataError(f"{key}: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise DataError(f"{key}: {path} is no text; allowed: a CSV file with the columns {wanted}") from None
    table = np.array(rows)
    precondition(rows, f"{key}: {path} cannot be read as numbers: it has no line below its header", DataError)
    precondition(np.all(np.isfinite(table)), f"{key}: {path} holds numbers that are not finite", DataError)
    return CsvTable(path, key, columns, table, np.array(lines))


def existing(file: str, key: str) -> Path:
    """The path of a file that is there."""
    path = Path(file)
    precondition(path.is_file(), f"{key}: found no file {file}", DataError)
    return path
