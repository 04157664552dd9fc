"""Damage to the objects of an HDF5 file: deleted, resized, retyped, altered, linked elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.fuzz.case import Step
from tests.fuzz.verdict import CANARY

_HUGE = 10**11


def apply_hdf5(path: Path, step: Step) -> None:
    """Carry out one step; what an earlier step has made impossible is left out."""
    with h5py.File(path, "r+") as file:
        name, attribute = step["object"], step.get("attribute")
        found = file.get(name)  # None also where a link leads nowhere
        if found is None or (attribute is not None and attribute not in found.attrs):
            return
        match step["op"]:
            case "delete":
                _delete(file, name, attribute)
            case "resize":
                _replace(file, name, _reshaped(file[name], step["how"]))
            case "retype":
                _retype(file, name, attribute, step["as"])
            case "alter":
                _alter(file, name, attribute, step["at"], step["value"])
            case "link":
                _link(file, path, name, step["how"])
            case other:
                raise ValueError(f"no damage to objects is called {other!r}")


def _delete(file: h5py.File, name: str, attribute: str | None) -> None:
    if attribute is None:
        del file[name]
    else:
        del file[name].attrs[attribute]


def _replace(file: h5py.File, name: str, made: dict[str, Any] | None) -> None:
    """Another dataset under the same name, with the same attributes but those that tie it to others."""
    old = file[name]
    if made is None or not isinstance(old, h5py.Dataset):
        return
    kept = {one: old.attrs[one] for one in old.attrs if one not in ("REFERENCE_LIST", "CLASS", "NAME")}
    del file[name]
    new = file.create_dataset(name, **made)
    for one, value in kept.items():
        new.attrs[one] = value


def _reshaped(old: h5py.Dataset, how: str) -> dict[str, Any] | None:
    """The dataset in another shape, or None where its own shape was changed in place."""
    shape, first = old.shape, (old.shape or (0,))[0]
    lengths = {"none": 0, "one more": first + 1, "one less": max(first - 1, 0), "double": 2 * first, "huge": _HUGE}
    if how in lengths and shape:
        if old.chunks and (old.maxshape[0] is None or old.maxshape[0] >= lengths[how]):
            old.resize(lengths[how], axis=0)
            return None
        new = (lengths[how], *shape[1:])
        return {"shape": new, "dtype": old.dtype, "chunks": tuple(max(1, min(64, size)) for size in new)}
    values = old[()]
    shapes = {"scalar": (), "flat": (-1,), "extra axis": (*shape, 1), "lost axis": (-1, *shape[2:])}
    if how == "scalar":
        return {"data": values.reshape(-1)[0] if values.size else 0}
    return {"data": values.reshape(shapes[how])} if how in shapes and values.size else {"data": values.reshape(-1)}


def _retype(file: h5py.File, name: str, attribute: str | None, kind: str) -> None:
    values = np.asarray(file[name].attrs[attribute] if attribute is not None else _values(file[name]))
    made = _of_type(file, values, kind)
    if attribute is not None:
        del file[name].attrs[attribute]
        if isinstance(made, h5py.Empty):
            file[name].attrs[attribute] = made
        else:
            file[name].attrs.create(attribute, made["data"], dtype=made.get("dtype"))
    elif isinstance(made, h5py.Empty):
        _replace(file, name, {"data": made})
    else:
        _replace(file, name, made)


def _values(thing: Any) -> Any:
    return thing[()] if isinstance(thing, h5py.Dataset) else np.zeros(1)


def _of_type(file: h5py.File, values: Any, kind: str) -> Any:
    """The values in another type, as keywords of a new dataset."""
    shape = values.shape
    match kind:
        case "empty":
            return h5py.Empty("f8")
        case "text":
            return {
                "data": np.full(shape, "[/nope] \x1b[31m ε \udcff".encode("utf-8", "replace"), dtype=object),
                "dtype": h5py.string_dtype(),
            }
        case "reference":
            return {"data": np.full(shape, file.ref, dtype=h5py.ref_dtype), "dtype": h5py.ref_dtype}
        case "vlen":
            lists = np.empty(shape or (1,), dtype=object)
            for at in np.ndindex(lists.shape):
                lists[at] = np.arange(3)
            return {"data": lists, "dtype": h5py.vlen_dtype(np.int64)}
        case "compound":
            return {"data": np.zeros(shape, dtype=[("a", "f8"), ("b", "i4")])}
    numbers = values if values.dtype.kind in "iufb" else np.ones(shape)
    with np.errstate(all="ignore"):
        return {"data": numbers.astype(kind)}


def _alter(file: h5py.File, name: str, attribute: str | None, at: int, value: str) -> None:
    """One number, or one letter of a text, changed."""
    thing = file[name]
    if attribute is not None:
        old = thing.attrs[attribute]
        new = _altered_text(old, at) if isinstance(old, str) else _altered(np.asarray(old), at, value)
        if new is not None:
            thing.attrs[attribute] = new
    elif isinstance(thing, h5py.Dataset) and thing.size:
        changed = _altered(thing[()], at, value)
        if changed is not None:
            thing[...] = changed


def _altered_text(old: str, at: int) -> str:
    if not old:
        return "x"
    at %= len(old)
    return old[:at] + chr(ord("0") + (ord(old[at]) + 1) % 75) + old[at + 1 :]


def _altered(values: Any, at: int, value: str) -> Any:
    array = np.array(values)
    if array.dtype.kind not in "iufSb" or not array.size:
        return None
    flat = array.reshape(-1)
    at %= flat.size
    old = flat[at]
    if array.dtype.kind == "S":
        flat[at] = bytes([*(old[:-1]), 63]) if old else b"?"
    elif value == "flip" or array.dtype.kind == "b":
        raw = flat[at : at + 1].view(np.uint8)
        raw[0] ^= 1
    else:
        with np.errstate(all="ignore"):
            flat[at] = _number(array.dtype, old, value)
    return array


def _number(dtype: np.dtype[Any], old: Any, value: str) -> Any:
    if value == "step":
        return np.nextafter(old, np.inf) if dtype.kind == "f" else old + dtype.type(1)
    if value == "negate":
        return -old if dtype.kind != "u" else ~old
    number = float(value)
    if dtype.kind == "f":
        return number
    info = np.iinfo(dtype)
    return info.min if not np.isfinite(number) else min(max(int(number), int(info.min)), int(info.max))


def _link(file: h5py.File, path: Path, name: str, how: str) -> None:
    """A link, or storage, in the place of a dataset; what lies outside holds a text that must never be shown."""
    outside = path.parent.parent / "outside"
    outside.write_text(f"{CANARY} " * 4000)
    old = file[name]
    if not isinstance(old, h5py.Dataset):
        return
    shape, dtype = old.shape, old.dtype
    plain = dtype if dtype.kind in "iufS" else np.dtype("S32")
    del file[name]
    match how:
        case "external":
            file[name] = h5py.ExternalLink(str(outside), "/round")
        case "soft":
            file[name] = h5py.SoftLink("/nowhere")
        case "soft out":
            file[name] = h5py.SoftLink("../../outside")
        case "cycle":
            file[name] = file["/"]
        case "storage":
            size = int(np.prod(shape, dtype=np.int64)) * plain.itemsize
            file.create_dataset(name, shape=shape, dtype=plain, external=[(str(outside), 0, max(size, 1))])
        case "virtual":
            layout = h5py.VirtualLayout(shape, plain)
            if shape and all(shape):
                layout[...] = h5py.VirtualSource(str(outside), "/x", shape=shape)
            file.create_virtual_dataset(name, layout)
        case "hard":
            # a link made before may lead nowhere
            other = next((one for one in file if isinstance(file.get(one), h5py.Dataset)), None)
            if other is not None:
                file[name] = file[other]
        case unknown:
            raise ValueError(f"no link is called {unknown!r}")
