"""Import of a file from one of the sources."""

from pathlib import Path
from typing import Any, Literal, assert_never, get_args

from wirelessfl.channels.file import form_of, load_npz
from wirelessfl.channels.record import ChannelRecord
from wirelessfl.channels.sources.deepmimo import from_deepmimo
from wirelessfl.channels.sources.matlab import from_matlab, load_mat
from wirelessfl.channels.sources.options import ImportOptions
from wirelessfl.channels.sources.sionna import from_sionna
from wirelessfl.channels.sources.table import from_csv
from wirelessfl.errors import DataError

Source = Literal["sionna", "deepmimo", "mat", "csv"]
SOURCES: tuple[Source, ...] = get_args(Source)

# Options that a source does not take, and why
_OF_ITSELF = {
    "sionna": {"bandwidth_hz", "names", "ofdm_subcarriers"},
    "deepmimo": {"clients_are", "names"},
    "mat": {"clients_are", "receiver", "antenna", "ofdm_subcarriers"},
    "csv": {"clients_are", "receiver", "antenna", "interval_s", "names", "ofdm_subcarriers"},
}


def import_channels(path: str | Path, source: Source, options: ImportOptions | None = None) -> ChannelRecord:
    """Channels from a file of another tool.

    Args:
        path: The file.
        source: Which tool it is from.
        options: What the file itself does not say.

    Raises:
        DataError: The file cannot be read, holds no such channels, or an option does not apply to it.
    """
    options = ImportOptions() if options is None else options
    try:
        _check(options, source)
        record = _read(Path(path), source, options)
        return record if options.clients is None else record.chosen(options.clients)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _check(options: ImportOptions, source: Source) -> None:
    given = [name for name in sorted(_OF_ITSELF[source]) if getattr(options, name) not in (None, {})]
    if given:
        name = {"names": "name"}.get(given[0], given[0].replace("_", "-"))
        raise DataError(f"--{name}: found with --from {source}, which has no use for it; allowed: without")


def _read(path: Path, source: Source, options: ImportOptions) -> ChannelRecord:
    match source:
        case "csv":
            form_of(path)  # it is there, and a file
            return from_csv(path, options)
        case "sionna":
            return from_sionna(_arrays(path), options)
        case "deepmimo":
            return from_deepmimo(_arrays(path), options)
        case "mat":
            return from_matlab(_arrays(path), options)
        case _:
            assert_never(source)


def _arrays(path: Path) -> dict[str, Any]:
    form = form_of(path)
    if form == "npz":
        return load_npz(path)
    if form in ("mat", "mat73"):
        return load_mat(path, form)
    raise DataError("found another format; allowed: NPZ (numpy.savez), or a MATLAB file")
