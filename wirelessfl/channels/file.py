"""Channel files: HDF5 or NPZ of arrays with the same names."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.record import MOST_GAINS, ChannelRecord
from wirelessfl.errors import DataError, TraceError, precondition
from wirelessfl.outputs import replacing
from wirelessfl.trace import inspect_sizes, opened_values, refuse_irregular

Format = Literal["auto", "hdf5", "npz"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""Formats of channel files; auto looks at the first bytes."""
REQUIRED = ("gains", "time_s")
OPTIONAL = ("frequency_hz", "position_m", "receiver_m", "carrier_hz", "jammer")
_SIGNATURES = {b"\x89HDF\r\n\x1a\n": "hdf5", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_MOST_BYTES = 20 * MOST_GAINS
_SAME_TIME = (1980, 1, 1, 0, 0, 0)  # so that the same channels give the same bytes


def read_channels(path: str | Path, form: Format = "auto", key: str = "FILE") -> ChannelRecord:
    """The channels in a file.

    Args:
        path: The file.
        form: Its format.
        key: Where it is named, for messages.

    Raises:
        DataError: It is missing, damaged, no channel file, or holds what no channel is.
    """
    place = Path(path)
    try:
        found = form_of(place)
        wanted = found if form == "auto" else form
        if found != wanted or found not in ("hdf5", "npz"):
            allowed = "HDF5 or NPZ; `channels import` makes one of other files" if form == "auto" else form
            raise DataError(f"found {found or 'another format'}; allowed: {allowed}")
        arrays, source = _from_hdf5(place) if wanted == "hdf5" else (load_npz(place), "")
        missing = [name for name in REQUIRED if name not in arrays]
        if missing:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise DataError(f"found no {' and no '.join(missing)} (found: {held}); allowed: {', '.join(REQUIRED)}")
        return _record(arrays, source)
    except DataError as error:
        raise DataError(f"{key}: {path}: {error}") from error


def _record(arrays: dict[str, Any], source: str) -> ChannelRecord:
    taken = {name: arrays[name] for name in (*REQUIRED, *OPTIONAL) if name in arrays}
    carrier = taken.pop("carrier_hz", None)
    if carrier is not None:
        number = np.asarray(carrier)
        scalar = number.size == 1 and number.dtype.kind in "iuf" and bool(np.isfinite(number).all())
        precondition(scalar, f"carrier_hz: found {number}; allowed: one number of hertz", DataError)
        carrier = float(number.reshape(()))
    source = str(arrays["source"]) if "source" in arrays and arrays["source"].dtype.kind == "U" else source
    return ChannelRecord(**taken, carrier_hz=carrier, source=source)


def form_of(path: Path) -> str:
    """The format that the first bytes of a file tell: hdf5, npz, or nothing for any other.

    Raises:
        DataError: It is not there, a folder, or cannot be read.
    """
    try:
        refuse_irregular(path)
        precondition(not path.is_dir(), "found a folder; allowed: a file", DataError)
        with path.open("rb") as file:
            begin = file.read(8)
            if begin.startswith(b"MATLAB 7"):  # MATLAB writes HDF5 behind a header of its own
                file.seek(512)
                return "mat73" if file.read(8) in _SIGNATURES else ""
    except TraceError as error:
        raise DataError(str(error)) from error
    except FileNotFoundError as error:
        raise DataError("found no file") from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}") from error
    if begin.startswith(b"MATLAB 5"):
        return "mat"
    return next((form for bytes_, form in _SIGNATURES.items() if begin.startswith(bytes_)), "")


def _from_hdf5(path: Path) -> tuple[dict[str, Any], str]:
    try:
        with opened_values(path, _inspect) as file:
            return {name: plain(one) for name, one in _datasets(file).items()}, str(file.attrs.get("source", ""))
    except TraceError as error:
        raise DataError(str(error).removeprefix(f"{path}: ")) from error


def _datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    named = {name: file.get(name) for name in (*REQUIRED, *OPTIONAL)}
    return {name: one for name, one in named.items() if isinstance(one, h5py.Dataset)}


def _inspect(path: Path, file: h5py.File) -> None:
    # Run in a process of its own; other datasets are not read
    found = _datasets(file)
    for name, one in found.items():
        complex_ = name in ("gains", "jammer")
        allowed = "complex amplitudes, or pairs of real and imag" if complex_ else "real numbers"
        kind = pairs_of(one.dtype) if complex_ else None
        if one.dtype.kind not in "biufc" and kind is None:
            raise TraceError(f"{path}: {name}: found values of type {one.dtype}; allowed: {allowed}")
        if one.shape is None:
            raise TraceError(f"{path}: {name}: found an empty dataset; allowed: {allowed}")
        if complex_ and one.size > MOST_GAINS:
            raise TraceError(f"{path}: {name}: found {one.size:,}; allowed: at most {MOST_GAINS:,} gains")
    inspect_sizes(file, found.values())


# Names of the parts of complex numbers in HDF5, by whoever writes them: MATLAB and others, h5py
_PARTS = (("real", "imag"), ("r", "i"))


def pairs_of(kind: np.dtype[Any]) -> tuple[str, str] | None:
    """The names of the real and the imaginary part in a compound type of two real numbers; None of any other."""
    if kind.names is None or any(kind[name].kind not in "iuf" or kind[name].shape for name in kind.names):
        return None
    return next((names for names in _PARTS if set(names) == set(kind.names)), None)


def plain(node: h5py.Dataset) -> NDArray[Any]:
    """The numbers of a dataset; pairs of a real and an imaginary part are complex ones."""
    values = np.asarray(node[()])
    names = pairs_of(values.dtype)
    if names is None:
        return values
    real, imag = (values[name] for name in names)
    found = np.empty(values.shape, dtype=np.result_type(real, imag, np.complex64))
    found.real, found.imag = real, imag
    return found


def load_npz(path: Path) -> dict[str, Any]:
    """The arrays of an NPZ file, none of which holds Python objects.

    Raises:
        DataError: It is damaged, too large, or holds pickled objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        precondition(size <= _MOST_BYTES, f"found {size:,} bytes unpacked; allowed: {_MOST_BYTES:,}", DataError)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: _array_of(name, arrays) for name in arrays.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise DataError(f"no readable NPZ file: {error}") from error


def _array_of(name: str, arrays: Any) -> Any:
    try:
        return arrays[name]
    except ValueError as error:
        if "pickle" in str(error).lower() or "Object arrays" in str(error):
            raise DataError(f"{name}: found pickled Python objects, which are not read; allowed: numbers") from error
        raise


def write_channels(record: ChannelRecord, path: str | Path) -> Path:
    """A channel file, in the format of its suffix: .h5 (or .hdf5), or .npz.

    Gains are written in single precision, whose error of 6e-8 is 144 dB below them.

    Args:
        record: The channels.
        path: Where.

    Returns:
        The file.

    Raises:
        DataError: The suffix is another one.
        OutputError: The place cannot be written.
    """
    place = Path(path)
    arrays: dict[str, Any] = {name: getattr(record, name) for name in (*REQUIRED, *OPTIONAL)}
    arrays = {name: np.asarray(one) for name, one in arrays.items() if one is not None}
    for name in ("gains", "jammer"):
        if name in arrays:
            arrays[name] = arrays[name].astype(np.complex64)
    allowed = ".h5, .hdf5 or .npz"
    precondition(
        place.suffix in (".h5", ".hdf5", ".npz"), f"{path}: found {place.suffix!r}; allowed: {allowed}", DataError
    )
    with replacing(place) as new:
        if place.suffix == ".npz":
            _write_npz(new, {**arrays, "source": np.asarray(record.source)})
        else:
            _write_hdf5(new, arrays, record.source)
    return place


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            held = io.BytesIO()
            np.lib.format.write_array(held, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _SAME_TIME), held.getvalue(), zipfile.ZIP_DEFLATED)


_UNITS = {"time_s": "s", "frequency_hz": "Hz", "position_m": "m", "receiver_m": "m", "carrier_hz": "Hz"}


def _write_hdf5(path: Path, arrays: dict[str, Any], source: str) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["source"] = source
        for name, array in arrays.items():
            packed = {"compression": "gzip", "shuffle": True} if array.ndim > 1 else {}
            dataset = file.create_dataset(name, data=array, track_times=False, **packed)
            dataset.attrs["units"] = _UNITS.get(name, "1")
