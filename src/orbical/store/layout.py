"""The layout of a store: which arrays it has, with which dimensions, chunks and attributes.

Opened by xarray alone it is a complete data set, so attributes are what netCDF can hold: text and
numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..groups import Group, Layout
from .record import Json, Record

_MISSING = {"f": "NaN", "i": -1, "u": 0, "b": False}
_CHUNK_BYTES = 1 << 22
_LOOKED_AT = 1 << 10  # values of a sequence, for their type and size
_FACTS = ("metadata", "class names")
_MOST_IN_A_CHUNK = 1 << 31  # bytes that the compressor can hold
_OF_GROUP = ("spec", "measure", "identity", "closed", "exact_on_grid")
"""What is stored of a group as it is."""
_MOST_OF_GROUP = 1 << 24  # numbers that are read when a store is opened

_COORDINATES = {
    "model": ("", "name of the model"),
    "name": ("", "name of the sample"),
    "label": ("", "true class"),
    "weight": ("1", "weight of the element in means over the group"),
    "angle": ("degrees", "angle of rotation"),
    "azimuth": ("degrees", "direction of the axis of rotation in its plane"),
    "plane": ("", "plane of the axis of rotation"),
    "rx": ("degrees", "rotation vector, x"),
    "ry": ("degrees", "rotation vector, y"),
    "rz": ("degrees", "rotation vector, z"),
    "dx": ("input units", "shift along x, in pixels or in the units of points"),
    "dy": ("input units", "shift along y, in pixels or in the units of points"),
    "dz": ("input units", "shift along z, in voxels or in the units of points"),
    "scale": ("1", "factor of scale"),
    "scale_x": ("1", "factor of scale along x"),
    "scale_y": ("1", "factor of scale along y"),
    "shear": ("1", "shear along x"),
    "shift": ("samples", "shift along the signal"),
    "hue": ("degrees", "rotation of the hue"),
    "brightness": ("1", "factor of brightness"),
    "sign": ("1", "sign of the signal"),
    "gain": ("1", "factor of the amplitude"),
    "decibels": ("dB", "gain of the amplitude"),
    "speed": ("1", "factor of the speed"),
    "semitones": ("semitones", "change of pitch, by a change of speed"),
    "longitude": ("degrees", "turn of the globe to the east"),
    "share_x": ("1", "shift to the right, as a share of the period"),
    "share_y": ("1", "shift upwards, as a share of the period"),
    "operation": ("", "symmetry operation"),
    "inversion": ("1", "sign of space"),
    "flip": ("", "reflection"),
    "time": ("1", "direction of time"),
    "permutation": ("", "number of the permutation"),
    "order": ("", "order of the rows"),
    "variation": ("", "version of the sample"),
}


@dataclass(frozen=True)
class ArraySpec:
    """An array of results: its dimensions, shape, type and attributes."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    attributes: Json


@dataclass(frozen=True)
class Fixed:
    """What is written once, when a store is created: an array, or a sequence, read in parts."""

    dims: tuple[str, ...]
    values: Any
    attributes: Json


def fixed_arrays(models: list[str], group: Group, facts: Mapping[str, Fixed]) -> dict[str, Fixed]:
    """Return all that is written once: coordinates, what is known about samples, the group."""
    return {**_coordinates_in_layout(models, group), **facts, **_group_arrays(group)}


def _coordinates_in_layout(models: list[str], group: Group) -> dict[str, Fixed]:
    found = {"model": ("model", np.array(models))}
    found |= {name: ("element", np.asarray(values)) for name, values in group.coords.items()}
    found["weight"] = ("element", group.weights)
    return {
        name: Fixed((dim,), values, dict(zip(("units", "long_name"), about, strict=True)))
        for name, (dim, values) in found.items()
        for about in [_COORDINATES.get(name, ("", f"{name} of the group element"))]
    }


def _group_arrays(group: Group) -> dict[str, Fixed]:
    """Return the arrays that the group is read from, in a folder of their own."""
    parts = {**group.parts, "weights": group.weights, "index": group.layout.index}
    return {
        f"group/{name}": Fixed((), np.ascontiguousarray(values), {})
        for name, values in parts.items()
    }


def data_attributes(record: Record, group: Group, arrays: Mapping[str, Fixed | ArraySpec]) -> Json:
    """Return the attributes of the data set."""
    known = {"model", "name", "label", "weight", *group.coords}
    known |= {name for name in arrays if arrays[name].attributes.get("meaning") in _FACTS}
    return {
        "coordinates": " ".join(name for name in arrays if name in known),  # for xarray
        "group": group.spec,
        "layout": group.layout.kind,
        "task": record.task.name,
        "score": record.score.meaning,
        "higher_is_better": int(record.score.higher_is_better),
    }


def result_metadata(spec: ArraySpec, chunk: int) -> Json:
    """Return the metadata of an array of results, one chunk for each unit."""
    sizes = {"model": 1, "sample": chunk}
    chunks = tuple(
        min(sizes.get(dim, size), max(size, 1))
        for dim, size in zip(spec.dims, spec.shape, strict=True)
    )
    return _array_metadata_in_layout(spec, chunks)


def fixed_metadata(fixed: Fixed) -> Json:
    """Return the metadata of an array that is written once, in chunks of a few megabytes."""
    count, few = len(fixed.values), np.asarray(fixed.values[:_LOOKED_AT])
    rows = max(1, _CHUNK_BYTES // max(1, few[:1].nbytes))
    first = 1 if fixed.dims == ("model",) else min(rows, max(1, count))
    dtype = "string" if few.dtype.kind in "UO" else few.dtype.newbyteorder("=").name
    chunks = (first, *(max(1, size) for size in few.shape[1:]))
    spec = ArraySpec(fixed.dims, (count, *few.shape[1:]), dtype, fixed.attributes)
    return _array_metadata_in_layout(spec, chunks)


def _array_metadata_in_layout(spec: ArraySpec, chunks: tuple[int, ...]) -> Json:
    """Return the metadata of an array, as Zarr's specification has them."""
    text = spec.dtype == "string"
    size = 1 if text else np.dtype(spec.dtype).itemsize
    encoding = {"configuration": {"endian": "little"}} if size > 1 else {}
    blosc = {
        "typesize": size,
        "cname": "zstd",
        "clevel": 1,
        "shuffle": "noshuffle" if text else "bitshuffle",
        "blocksize": 0,
    }
    return {
        "shape": [*spec.shape],
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*chunks]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "" if text else _MISSING[np.dtype(spec.dtype).kind],
        "codecs": [
            {"name": "vlen-utf8", "configuration": {}} if text else {"name": "bytes", **encoding},
            {"name": "blosc", "configuration": blosc},
            {"name": "crc32c"},
        ],
        "attributes": {key: _for_netcdf(value) for key, value in spec.attributes.items()},
        **({"dimension_names": [*spec.dims]} if spec.dims else {}),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def _for_netcdf(value: object) -> str | int | float:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, str | int | float) else json.dumps(value)


def array_dims(metadata: Json) -> tuple[str, ...]:
    """Return the dimensions of an array from its metadata."""
    return tuple(metadata.get("dimension_names") or ())


def check_array_sizes(record: Record, arrays: Json, fixed: Json) -> None:
    """Check the sizes of all arrays against the record, before anything is allocated."""
    sizes = {"model": len(record.models), "sample": record.data.samples}
    elements = {
        arrays[name]["shape"][array_dims(arrays[name]).index("element")]
        for name in arrays
        if "element" in array_dims(arrays[name])
    }
    if len(elements) != 1:
        raise ValueError("its arrays have different numbers of elements")
    for name, metadata in arrays.items():
        dims, shape = array_dims(metadata), metadata["shape"]
        chunk = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        expected = [sizes.get(dim, size) for dim, size in zip(dims, shape, strict=False)]
        if dims and (len(dims) != len(shape) or expected != list(shape)):
            raise ValueError(f"the shape of {name} does not fit the record")
        if not 0 < math.prod(chunk) <= _MOST_IN_A_CHUNK:
            raise ValueError(f"the chunks of {name} are too large")
        if name in fixed:
            cells = math.prod(-(-size // each) for size, each in zip(shape, chunk, strict=True))
            at_once = name.startswith("group/") or dims == ("element",)
            if cells > len(fixed[name]) or (at_once and math.prod(shape) > _MOST_OF_GROUP):
                raise ValueError(f"{name} is larger than its files")
        else:
            if "sample" not in dims:
                raise ValueError(f"the dimensions of {name} do not fit the record")
            lead = [1] if dims[0] == "model" else []
            rows = min(record.run.chunk, record.data.samples)
            expected = [*lead, rows, *(max(1, size) for size in shape[len(lead) + 1 :])]
            if list(chunk) != expected:
                raise ValueError(f"the chunks of {name} do not fit the record")


def group_metadata_in_layout(group: Group) -> Json:
    """Return the metadata of the folder with the arrays of a group, and what is none of these."""
    about = {name: getattr(group, name) for name in _OF_GROUP} | {
        "parts": sorted(group.parts),
        "coords": {name: values.tolist() for name, values in group.coords.items()},
        "layout": group.layout.kind,
        "axes": {name: values.tolist() for name, values in group.layout.axes.items()},
    }
    return {
        "attributes": {"group": json.dumps(about)},
        "zarr_format": 3,
        "consolidated_metadata": consolidated_metadata({}),
        "node_type": "group",
    }


def _part(stored: object) -> np.ndarray:
    """Return numbers as they are, and words as text of fixed width, as groups are made of."""
    values = np.asarray(stored)
    return values if values.dtype.kind in "fiub" else np.array(values.tolist())


def consolidated_metadata(metadata: Json) -> Json:
    """Return the metadata of all that is in a folder, as its root has them for xarray."""
    order = sorted(metadata, key=lambda name: (name.count("/"), name))
    every = {name: metadata[name] for name in order}
    return {"kind": "inline", "must_understand": False, "metadata": every}


def group_from_layout_metadata(metadata: Json, read: Callable[[str], np.ndarray]) -> Group:
    """Return the group of a store from the metadata of its folder and from its arrays."""
    about: Json = json.loads(metadata["attributes"]["group"])
    weights = read("group/weights")
    return Group(
        **{name: about[name] for name in _OF_GROUP},
        parts={name: _part(read(f"group/{name}")) for name in about["parts"]},
        count=len(weights),
        weights=weights,
        coords={name: np.asarray(values) for name, values in about["coords"].items()},
        layout=Layout(
            about["layout"],
            read("group/index"),
            {name: np.asarray(values) for name, values in about["axes"].items()},
        ),
    )
